output "stream_name" {
  description = "Name of the delivery stream."
  value       = aws_kinesis_firehose_delivery_stream.this.name
}

output "stream_arn" {
  description = "ARN of the delivery stream."
  value       = aws_kinesis_firehose_delivery_stream.this.arn
}

output "role_arn" {
  description = "ARN of the role that the stream delivers with."
  value       = aws_iam_role.this.arn
}
