output "database_names" {
  description = "Full names of the databases by zone: raw, standardized, curated, ops."
  value       = { for zone, database in aws_glue_catalog_database.this : zone => database.name }
}

output "database_arns" {
  description = "ARNs of the databases by zone."
  value       = { for zone, database in aws_glue_catalog_database.this : zone => database.arn }
}

output "table_arn_patterns" {
  description = "ARN pattern of all tables of a database, by zone, for policies."
  value       = { for zone, database in aws_glue_catalog_database.this : zone => "${local.glue_arn}:table/${database.name}/*" }
}

output "catalog_arn" {
  description = "ARN of the account's Glue Data Catalog, which every Glue permission needs beside database and table."
  value       = "${local.glue_arn}:catalog"
}
