output "iceberg_bucket_name" {
  description = "Name of the lake's bucket."
  value       = var.create_buckets ? aws_s3_bucket.this["iceberg"].bucket : data.aws_s3_bucket.given["iceberg"].bucket
}

output "iceberg_bucket_arn" {
  description = "ARN of the lake's bucket."
  value       = local.bucket_arns["iceberg"]
}

output "schema_bucket_name" {
  description = "Name of the schemas' bucket."
  value       = var.create_buckets ? aws_s3_bucket.this["schema"].bucket : data.aws_s3_bucket.given["schema"].bucket
}

output "schema_bucket_arn" {
  description = "ARN of the schemas' bucket."
  value       = local.bucket_arns["schema"]
}

output "kms_key_arn" {
  description = "ARN of the key that everything is encrypted with: the given one, or the one made here."
  value       = local.kms_key_arn
}

output "warehouse" {
  description = "Where all tables lie."
  value       = "s3://${var.iceberg_bucket}/warehouse"
}
