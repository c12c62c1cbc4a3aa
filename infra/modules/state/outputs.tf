output "table_names" {
  description = "Full names of the tables by short name, such as checkpoints."
  value       = { for name, table in aws_dynamodb_table.this : name => table.name }
}

output "table_arns" {
  description = "ARNs of the tables by short name."
  value       = { for name, table in aws_dynamodb_table.this : name => table.arn }
}

output "errors_by_topic_index_arn" {
  description = "ARN of the index by which the error tracker is read topic by topic."
  value       = "${aws_dynamodb_table.this["error_tracker"].arn}/index/by_topic"
}
