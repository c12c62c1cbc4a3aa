data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  # The names of src/lean_ops/model/tables.py.
  databases = {
    raw          = { name = "iceberg_raw_db", description = "Every message as it came, one table a topic, append-only." }
    standardized = { name = "iceberg_standardized_db", description = "Flat rows, every payload value a STRING, append-only." }
    curated      = { name = "iceberg_curated_db", description = "Typed and governed rows, the newest version of each key." }
    ops          = { name = "ops_db", description = "What the platform books about itself: runs, reconciliation, drift, alerts." }
  }

  glue_arn = "arn:${data.aws_partition.this.partition}:glue:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}"
}

# Tables are not made here: the ensure-table function makes them through pyiceberg, which alone knows their shapes.
resource "aws_glue_catalog_database" "this" {
  for_each = local.databases

  name         = "${var.database_prefix}${each.value.name}"
  description  = each.value.description
  location_uri = "${trimsuffix(var.warehouse, "/")}/${var.database_prefix}${each.value.name}"
  # Of several environments in one catalog, which one the database belongs to.
  parameters = { deployment = var.name }
  tags       = var.tags
}
