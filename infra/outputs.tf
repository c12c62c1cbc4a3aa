output "name" {
  description = "What every resource's name begins with."
  value       = local.name
}

output "iceberg_bucket" {
  description = "The bucket with the tables and the artifacts."
  value       = module.storage.iceberg_bucket_name
}

output "schema_bucket" {
  description = "The bucket with the schemas."
  value       = module.storage.schema_bucket_name
}

output "warehouse" {
  description = "Where the tables lie."
  value       = module.storage.warehouse
}

output "artifacts" {
  description = "Where `make upload` puts the jobs' scripts, the wheel and the jar."
  value       = "s3://${module.storage.iceberg_bucket_name}/artifacts/${var.artifact_version}"
}

output "kms_key_arn" {
  description = "The key that everything is encrypted with."
  value       = module.storage.kms_key_arn
}

output "database_names" {
  description = "Glue databases by zone."
  value       = module.catalog.database_names
}

output "table_names" {
  description = "DynamoDB tables by their short names."
  value       = module.state.table_names
}

output "queue_urls" {
  description = "The topics' queues, by topic."
  value       = module.messaging.queue_urls
}

output "dlq_url" {
  description = "The dead letter queue."
  value       = module.messaging.dlq_url
}

output "stream_name" {
  description = "The Firehose stream into RAW."
  value       = module.ingestion.stream_name
}

output "function_names" {
  description = "Functions by their short names."
  value       = module.compute.function_names
}

output "glue_job_names" {
  description = "Jobs by what they do."
  value       = module.compute.glue_job_names
}

output "event_source_mapping_uuids" {
  description = "What brings queues to functions, by topic, and dlq."
  value       = module.compute.event_source_mapping_uuids
}

output "state_machine_arns" {
  description = "The state machines: master, rebuilder, maintenance."
  value       = module.orchestration.state_machine_arns
}

output "alert_topic_arn" {
  description = "The SNS topic of alerts."
  value       = module.observability.alert_topic_arn
}

output "dashboard_name" {
  description = "The CloudWatch dashboard."
  value       = module.observability.dashboard_name
}
