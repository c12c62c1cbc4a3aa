data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  sqs_arn = "arn:${data.aws_partition.this.partition}:sqs:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}"

  topics   = { for topic in var.topics : topic => "${var.name}-${topic}" }
  dlq_name = "${var.name}-dlq"

  days                 = 24 * 60 * 60
  retention_seconds    = 14 * local.days
  longest_name         = 80
  receives_before_dlq  = 5
  function_timeout     = 60
  dlq_function_timeout = 300
  # AWS' advice: six times the function's timeout, so that a message is not given out again while it is worked on.
  visibility_timeout     = 6 * local.function_timeout
  dlq_visibility_timeout = 6 * local.dlq_function_timeout
  # A queue asks its key for a data key once in this time and for each sender: with hundreds of queues KMS is a cost.
  data_key_reuse_seconds = 60 * 60

  # SQS lists at most ten source queues by name; past that every queue of the account may use the DLQ, or none.
  most_listed_sources = 10
  redrive_allow_policy = (
    length(local.topics) == 0 ? jsonencode({ redrivePermission = "denyAll" }) :
    length(local.topics) > local.most_listed_sources ? jsonencode({ redrivePermission = "allowAll" }) :
    jsonencode({ redrivePermission = "byQueue", sourceQueueArns = [for queue in local.topics : "${local.sqs_arn}:${queue}"] })
  )

  tls_only = {
    for queue in concat([local.dlq_name], values(local.topics)) : queue => jsonencode({
      Version = "2012-10-17"
      Statement = [{
        Sid       = "TlsOnly"
        Effect    = "Deny"
        Principal = { AWS = "*" }
        Action    = "sqs:*" # a denial that names actions would let the next new one through
        Resource  = "${local.sqs_arn}:${queue}"
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      }]
    })
  }
}

# ARNs in its policies are put together by name: the allowed sources must be known here before their queues are made,
# because SQS refuses a queue that names a DLQ which does not let it.
resource "aws_sqs_queue" "dlq" {
  name                              = local.dlq_name
  message_retention_seconds         = local.retention_seconds
  visibility_timeout_seconds        = local.dlq_visibility_timeout
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = local.data_key_reuse_seconds
  redrive_allow_policy              = local.redrive_allow_policy
  policy                            = local.tls_only[local.dlq_name]
  tags                              = var.tags

  lifecycle {
    ignore_changes = [max_message_size] # see message_size.tf
  }
}

resource "aws_sqs_queue" "topic" {
  for_each = local.topics

  name                              = each.value
  message_retention_seconds         = local.retention_seconds
  visibility_timeout_seconds        = local.visibility_timeout
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = local.data_key_reuse_seconds
  policy                            = local.tls_only[each.value]
  tags                              = merge(var.tags, { topic = each.key })

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dlq.arn
    maxReceiveCount     = local.receives_before_dlq
  })

  lifecycle {
    ignore_changes = [max_message_size] # see message_size.tf

    precondition {
      condition     = length(each.value) <= local.longest_name
      error_message = "The queue of topic ${each.key} would be called ${each.value}: ${length(each.value)} characters, and SQS takes ${local.longest_name}."
    }
  }
}
