mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { name = "eu-central-1" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::000000000000:role/made" }
  }
}

variables {
  name                   = "lean-ops-test"
  iceberg_bucket_arn     = "arn:aws:s3:::lake"
  catalog_arn            = "arn:aws:glue:eu-central-1:000000000000:catalog"
  raw_database_name      = "iceberg_raw_db"
  raw_database_arn       = "arn:aws:glue:eu-central-1:000000000000:database/iceberg_raw_db"
  raw_table_arn_pattern  = "arn:aws:glue:eu-central-1:000000000000:table/iceberg_raw_db/*"
  transform_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:lean-ops-test-firehose-transform"
  kms_key_arn            = "arn:aws:kms:eu-central-1:000000000000:key/test"
}

run "delivery_to_iceberg" {
  command = plan

  assert {
    condition     = aws_kinesis_firehose_delivery_stream.this.name == "lean-ops-test-raw"
    error_message = "the processor is told this name"
  }

  assert {
    condition     = aws_kinesis_firehose_delivery_stream.this.destination == "iceberg"
    error_message = "records land in Iceberg tables"
  }

  assert {
    condition = (
      aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].buffering_size == 64
      && aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].buffering_interval == 300
    )
    error_message = "64 MB or 300 s: smaller buffers make small files and many commits"
  }

  assert {
    condition     = length(aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].destination_table_configuration) == 0
    error_message = "the transform routes; a list of tables would have to change with every topic"
  }

  assert {
    condition     = aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].catalog_arn == var.catalog_arn
    error_message = "the tables are in the account's own catalog"
  }
}

run "what_can_not_be_delivered_is_kept" {
  command = plan

  assert {
    condition = (
      aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].s3_configuration[0].error_output_prefix
      == "firehose-errors/!{firehose:error-output-type}/!{timestamp:yyyy/MM/dd/HH}/"
    )
    error_message = "docs/dead-letters.md tells people to look under firehose-errors/"
  }

  assert {
    condition = (
      aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].s3_configuration[0].bucket_arn == var.iceberg_bucket_arn
      && aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].s3_configuration[0].kms_key_arn == var.kms_key_arn
    )
    error_message = "undelivered records are kept in the lake's bucket, encrypted"
  }

  assert {
    condition     = aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].retry_duration == 3600
    error_message = "an outage of an hour heals without a person"
  }
}

run "the_transform_sees_at_most_a_megabyte" {
  command = plan

  assert {
    condition = {
      for parameter in aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].processing_configuration[0].processors[0].parameters :
      parameter.parameter_name => parameter.parameter_value
      } == {
      LambdaArn = "${var.transform_function_arn}:$LATEST"
    }
    error_message = "a call has at most 1 MB, which is Firehose's own value: an answer of more than 6 MB fails with all its records"
  }

  assert {
    condition     = aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].processing_configuration[0].enabled
    error_message = "without the transform no record knows its table"
  }
}

run "encrypted_and_logged" {
  command = plan

  assert {
    condition = (
      aws_kinesis_firehose_delivery_stream.this.server_side_encryption[0].enabled
      && aws_kinesis_firehose_delivery_stream.this.server_side_encryption[0].key_type == "CUSTOMER_MANAGED_CMK"
      && aws_kinesis_firehose_delivery_stream.this.server_side_encryption[0].key_arn == var.kms_key_arn
    )
    error_message = "the stream is encrypted with the given key"
  }

  assert {
    condition = (
      aws_cloudwatch_log_group.this.kms_key_id == var.kms_key_arn
      && aws_cloudwatch_log_group.this.retention_in_days == 30
      && aws_kinesis_firehose_delivery_stream.this.iceberg_configuration[0].cloudwatch_logging_options[0].enabled
    )
    error_message = "why a delivery failed is in a log that is encrypted and does not grow for ever"
  }
}

run "role_may_do_what_delivery_needs_and_no_more" {
  command = apply

  assert {
    condition = alltrue(flatten([
      for statement in jsondecode(aws_iam_role_policy.this.policy).Statement :
      [for action in flatten([statement.Action]) : !strcontains(action, "*")]
    ]))
    error_message = "every action is named"
  }

  assert {
    condition = alltrue(flatten([
      for statement in jsondecode(aws_iam_role_policy.this.policy).Statement :
      [for resource in flatten([statement.Resource]) : resource != "*"]
    ]))
    error_message = "no statement is about everything"
  }

  assert {
    condition = toset(flatten([
      for statement in jsondecode(aws_iam_role_policy.this.policy).Statement : statement.Resource
      if contains(flatten([statement.Action]), "s3:PutObject")
      ])) == toset([
      "arn:aws:s3:::lake/warehouse/iceberg_raw_db/*",
      "arn:aws:s3:::lake/firehose-errors/*",
    ])
    error_message = "it writes files of RAW tables and undelivered records, and nothing else of the lake"
  }

  assert {
    condition = toset(flatten([
      for statement in jsondecode(aws_iam_role_policy.this.policy).Statement : statement.Resource
      if contains(flatten([statement.Action]), "glue:UpdateTable")
    ])) == toset([var.catalog_arn, var.raw_database_arn, var.raw_table_arn_pattern])
    error_message = "it commits to RAW tables only"
  }

  assert {
    condition = alltrue([
      for statement in jsondecode(aws_iam_role_policy.this.policy).Statement :
      statement.Condition.StringEquals["kms:ViaService"] == ["firehose.eu-central-1.amazonaws.com", "s3.eu-central-1.amazonaws.com"]
      if contains(flatten([statement.Action]), "kms:Decrypt")
    ])
    error_message = "the key is used through S3 and Firehose only"
  }

  assert {
    condition = toset(flatten([
      for statement in jsondecode(aws_iam_role_policy.this.policy).Statement : statement.Action
      if anytrue([for resource in flatten([statement.Resource]) : startswith(resource, var.transform_function_arn)])
    ])) == toset(["lambda:GetFunctionConfiguration", "lambda:InvokeFunction"])
    error_message = "it calls the transform and does nothing else to it"
  }

  assert {
    condition = alltrue([
      for statement in jsondecode(aws_iam_role.this.assume_role_policy).Statement :
      statement.Principal.Service == "firehose.amazonaws.com"
      && statement.Condition.StringEquals["aws:SourceAccount"] == "000000000000"
    ])
    error_message = "only Firehose, and only for this account, takes the role"
  }
}
