output "function_names" {
  description = "Functions' names by their short names, such as sqs_processor."
  value       = { for function, made in aws_lambda_function.this : function => made.function_name }
}

output "function_arns" {
  description = "Functions' ARNs by their short names."
  value       = { for function, made in aws_lambda_function.this : function => made.arn }
}

output "glue_job_names" {
  description = "Jobs' names: standardized, curated, rebuild, maintenance."
  value       = { for job, made in aws_glue_job.this : job => made.name }
}

output "glue_job_arns" {
  description = "Jobs' ARNs: standardized, curated, rebuild, maintenance."
  value       = { for job, made in aws_glue_job.this : job => made.arn }
}

output "event_source_mapping_uuids" {
  description = "What brings queues to functions: topics by their names, and dlq (which no topic can be called)."
  value = merge(
    { for topic, mapping in aws_lambda_event_source_mapping.topic : topic => mapping.uuid },
    { dlq = aws_lambda_event_source_mapping.dlq.uuid },
  )
}
