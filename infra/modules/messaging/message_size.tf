# SQS takes messages of 1 MiB, and the product sends up to that. Version 5 of the AWS provider stops at 256 KiB, both in
# what it accepts and in what it asks for when nothing is said. A queue left at that would refuse messages, and the DLQ
# their letters, so the limit is raised by the AWS CLI once the queue is there; the provider leaves it alone afterwards.
# Replace this file by `max_message_size` as soon as the provider accepts it.
locals {
  max_message_bytes = 1024 * 1024

  # Version 1 of the CLI has an endpoint of its own for SQS and must be told of another, such as a local stand-in.
  raise_message_size = <<-EOT
    command -v aws >/dev/null || { echo "the AWS CLI is needed to set the size of messages" >&2; exit 1; }
    endpoint="$${AWS_ENDPOINT_URL_SQS:-$AWS_ENDPOINT_URL}"
    aws sqs set-queue-attributes $${endpoint:+--endpoint-url "$endpoint"} --region "$QUEUE_REGION" \
      --queue-url "$QUEUE_URL" --attributes MaximumMessageSize=${local.max_message_bytes}
  EOT
}

resource "terraform_data" "dlq_message_size" {
  for_each = var.raise_message_size ? { dlq = aws_sqs_queue.dlq.url } : {}

  triggers_replace = [each.value, local.max_message_bytes]

  lifecycle {
    replace_triggered_by = [aws_sqs_queue.dlq.arn] # a queue made anew has the same address
  }

  provisioner "local-exec" {
    command     = local.raise_message_size
    environment = { QUEUE_REGION = data.aws_region.this.name, QUEUE_URL = each.value }
    quiet       = true
  }
}

resource "terraform_data" "topic_message_size" {
  for_each = var.raise_message_size ? local.topics : {}

  triggers_replace = [aws_sqs_queue.topic[each.key].url, local.max_message_bytes]

  lifecycle {
    replace_triggered_by = [aws_sqs_queue.topic[each.key].arn]
  }

  provisioner "local-exec" {
    command     = local.raise_message_size
    environment = { QUEUE_REGION = data.aws_region.this.name, QUEUE_URL = aws_sqs_queue.topic[each.key].url }
    quiet       = true
  }
}
