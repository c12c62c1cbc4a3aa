output "queue_arns" {
  description = "ARNs of the queues by topic."
  value       = { for topic, queue in aws_sqs_queue.topic : topic => queue.arn }
}

output "queue_urls" {
  description = "Addresses of the queues by topic."
  value       = { for topic, queue in aws_sqs_queue.topic : topic => queue.url }
}

output "queue_names" {
  description = "Names of the queues by topic."
  value       = { for topic, queue in aws_sqs_queue.topic : topic => queue.name }
}

output "dlq_arn" {
  description = "ARN of the dead letter queue."
  value       = aws_sqs_queue.dlq.arn
}

output "dlq_url" {
  description = "Address of the dead letter queue."
  value       = aws_sqs_queue.dlq.url
}

output "dlq_name" {
  description = "Name of the dead letter queue."
  value       = aws_sqs_queue.dlq.name
}
