data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

locals {
  stream_name   = "${var.name}-raw"
  errors_prefix = "firehose-errors/"
  # A record that a person has to bring back costs more than one that waits: an outage of an hour heals by itself.
  retry_seconds = 60 * 60
}

resource "aws_cloudwatch_log_group" "this" {
  #checkov:skip=CKV_AWS_338:How long logs are kept is the owner's choice (log_retention_days); what must be kept for years is in ops_db.
  name              = "/aws/kinesisfirehose/${local.stream_name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_cloudwatch_log_stream" "this" {
  for_each = { delivery = "DestinationDelivery", errors = "BackupDelivery" }

  name           = each.value
  log_group_name = aws_cloudwatch_log_group.this.name
}

# One stream for all topics. Where a record goes is said by the transform in otfMetadata, record by record, so there is
# no destination_table_configuration: a new topic changes nothing here. Records are inserts only; version 5 of the
# provider can't say so to Firehose (AppendOnly), which costs automatic scaling of the stream and nothing else.
resource "aws_kinesis_firehose_delivery_stream" "this" {
  name        = local.stream_name
  destination = "iceberg"
  tags        = var.tags

  server_side_encryption {
    enabled  = true
    key_type = "CUSTOMER_MANAGED_CMK"
    key_arn  = var.kms_key_arn
  }

  iceberg_configuration {
    role_arn           = aws_iam_role.this.arn
    catalog_arn        = var.catalog_arn
    buffering_size     = 64
    buffering_interval = 300
    retry_duration     = local.retry_seconds
    s3_backup_mode     = "FailedDataOnly"

    # For Iceberg this is the place of what could not be delivered; `lean-ops ingest --from-firehose-errors` reads it.
    s3_configuration {
      role_arn            = aws_iam_role.this.arn
      bucket_arn          = var.iceberg_bucket_arn
      error_output_prefix = "${local.errors_prefix}!{firehose:error-output-type}/!{timestamp:yyyy/MM/dd/HH}/"
      buffering_size      = 5
      buffering_interval  = 300
      compression_format  = "UNCOMPRESSED"
      kms_key_arn         = var.kms_key_arn

      cloudwatch_logging_options {
        enabled         = true
        log_group_name  = aws_cloudwatch_log_group.this.name
        log_stream_name = aws_cloudwatch_log_stream.this["errors"].name
      }
    }

    processing_configuration {
      enabled = true

      # No other parameters: Firehose's own values are the ones that are wanted, 1 MB or 60 s a call and 3 retries, and
      # the provider shows a change for ever where they are written down. More than 1 MB must never be set: Lambda
      # answers at most 6 MB, and in an answer the smallest records have three times their size.
      processors {
        type = "Lambda"

        parameters {
          parameter_name  = "LambdaArn"
          parameter_value = "${var.transform_function_arn}:$LATEST"
        }
      }
    }

    cloudwatch_logging_options {
      enabled         = true
      log_group_name  = aws_cloudwatch_log_group.this.name
      log_stream_name = aws_cloudwatch_log_stream.this["delivery"].name
    }
  }

  # Firehose tries the role when the stream is made.
  depends_on = [aws_iam_role_policy.this]
}
