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
}

variables {
  name           = "lean-ops-test"
  iceberg_bucket = "lake"
  schema_bucket  = "schemas"
}

run "given_buckets_are_left_alone" {
  command = plan

  assert {
    condition = 0 == sum([
      for settings in [
        aws_s3_bucket.this, aws_s3_bucket_policy.this, aws_s3_bucket_versioning.this, aws_s3_bucket_logging.this,
        aws_s3_bucket_lifecycle_configuration.this, aws_s3_bucket_server_side_encryption_configuration.this,
        aws_s3_bucket_public_access_block.this, aws_s3_bucket_ownership_controls.this,
      ] : length(settings)
    ])
    error_message = "a bucket that is given has its owner's settings"
  }

  assert {
    condition     = aws_s3_bucket_notification.schema["schema"].eventbridge
    error_message = "without events of the schema bucket no upload is ever judged"
  }

  assert {
    condition     = output.warehouse == "s3://lake/warehouse"
    error_message = "tables lie under warehouse/"
  }
}

run "notification_can_be_left_to_others" {
  command = plan

  variables {
    manage_schema_bucket_notification = false
  }

  assert {
    condition     = length(aws_s3_bucket_notification.schema) == 0
    error_message = "a bucket whose notifications somebody else keeps must not lose them"
  }
}

run "made_buckets_are_private_and_encrypted" {
  command = apply

  variables {
    create_buckets = true
  }

  assert {
    condition     = { for role, bucket in aws_s3_bucket.this : role => bucket.bucket } == { iceberg = "lake", schema = "schemas" }
    error_message = "both buckets are made"
  }

  assert {
    condition     = !anytrue([for bucket in aws_s3_bucket.this : coalesce(bucket.force_destroy, false)])
    error_message = "a bucket with data must never be deleted with all that is in it"
  }

  assert {
    condition = length(aws_s3_bucket_public_access_block.this) == 2 && alltrue([
      for block in aws_s3_bucket_public_access_block.this :
      block.block_public_acls && block.block_public_policy && block.ignore_public_acls && block.restrict_public_buckets
    ])
    error_message = "nothing of ours is public"
  }

  assert {
    condition = length(aws_s3_bucket_versioning.this) == 2 && alltrue([
      for versioning in aws_s3_bucket_versioning.this : versioning.versioning_configuration[0].status == "Enabled"
    ])
    error_message = "what was overwritten or deleted by mistake can be had again"
  }

  assert {
    condition = length(aws_s3_bucket_server_side_encryption_configuration.this) == 2 && alltrue(flatten([
      for encryption in aws_s3_bucket_server_side_encryption_configuration.this : [
        for rule in encryption.rule :
        rule.bucket_key_enabled
        && rule.apply_server_side_encryption_by_default[0].sse_algorithm == "aws:kms"
        && rule.apply_server_side_encryption_by_default[0].kms_master_key_id == aws_kms_key.this["this"].arn
      ]
    ]))
    error_message = "both buckets are encrypted with our key"
  }

  assert {
    condition = length(aws_s3_bucket_ownership_controls.this) == 2 && alltrue([
      for ownership in aws_s3_bucket_ownership_controls.this : ownership.rule[0].object_ownership == "BucketOwnerEnforced"
    ])
    error_message = "access lists are off"
  }

  assert {
    condition = length(aws_s3_bucket_policy.this) == 2 && alltrue(flatten([
      for role, policy in aws_s3_bucket_policy.this : [
        for statement in jsondecode(policy.policy).Statement :
        statement.Effect == "Deny" && statement.Condition.Bool["aws:SecureTransport"] == "false"
        && contains(statement.Resource, "arn:aws:s3:::${local.buckets[role]}/*")
        && contains(statement.Resource, "arn:aws:s3:::${local.buckets[role]}")
      ]
    ]))
    error_message = "both buckets refuse whoever comes without TLS, and allow nobody anything"
  }
}

run "only_oversized_bodies_expire" {
  command = plan

  variables {
    create_buckets = true
  }

  assert {
    condition = flatten([
      for configuration in aws_s3_bucket_lifecycle_configuration.this : [
        for rule in configuration.rule : [
          for expiration in rule.expiration : "${rule.filter[0].prefix}:${expiration.days}" if coalesce(expiration.days, 0) > 0
        ]
      ]
    ]) == ["oversized/:30"]
    error_message = "tables, dead letters and undelivered records are never expired by the bucket"
  }

  assert {
    condition = {
      for rule in aws_s3_bucket_lifecycle_configuration.this["iceberg"].rule :
      rule.filter[0].prefix => rule.noncurrent_version_expiration[0].noncurrent_days
      if length(rule.noncurrent_version_expiration) > 0
      } == {
      "warehouse/" = 30, "dlq-archive/" = 30, "oversized/" = 30, "firehose-errors/" = 30, "artifacts/" = 90
    }
    error_message = "old versions go after 30 days, those of artifacts after 90"
  }

  assert {
    condition = alltrue([
      for configuration in aws_s3_bucket_lifecycle_configuration.this : anytrue([
        for rule in configuration.rule : rule.abort_incomplete_multipart_upload[0].days_after_initiation == 7
        if length(rule.abort_incomplete_multipart_upload) > 0
      ])
    ])
    error_message = "parts of uploads that were never finished are paid for until somebody removes them"
  }
}

run "access_logs_on_demand" {
  command = plan

  variables {
    create_buckets    = true
    access_log_bucket = "logs"
  }

  assert {
    condition     = { for role, logging in aws_s3_bucket_logging.this : role => logging.target_prefix } == { iceberg = "lean-ops-test/iceberg/", schema = "lean-ops-test/schema/" }
    error_message = "each bucket's accesses are logged under its own prefix"
  }
}

run "one_name_for_two_buckets" {
  command = plan

  variables {
    create_buckets = true
    schema_bucket  = "lake"
  }

  expect_failures = [aws_s3_bucket.this]
}

run "key_that_is_made" {
  command = plan

  assert {
    condition     = aws_kms_key.this["this"].enable_key_rotation && aws_kms_key.this["this"].deletion_window_in_days == 30
    error_message = "the key rotates, and there are thirty days to notice that somebody wants it deleted"
  }

  assert {
    condition = alltrue(flatten([
      for statement in jsondecode(aws_kms_key.this["this"].policy).Statement : [
        for action in statement.Action : !strcontains(action, "*")
      ]
    ]))
    error_message = "every action is named"
  }

  assert {
    condition = contains(flatten([
      for statement in jsondecode(aws_kms_key.this["this"].policy).Statement : statement.Action
      if try(statement.Principal.AWS, "") == "arn:aws:iam::000000000000:root"
    ]), "kms:PutKeyPolicy")
    error_message = "the account must be able to change the key's policy, or nobody ever can"
  }

  assert {
    condition = toset([
      for statement in jsondecode(aws_kms_key.this["this"].policy).Statement : statement.Principal.Service
      if !can(statement.Principal.AWS) && !can(statement.Condition)
    ]) == toset(["events.amazonaws.com"])
    error_message = "EventBridge gives KMS no context and must have no condition; every other service must have one"
  }
}

run "key_that_is_given" {
  command = plan

  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:000000000000:key/given"
  }

  assert {
    condition     = length(aws_kms_key.this) == 0 && output.kms_key_arn == "arn:aws:kms:eu-central-1:000000000000:key/given"
    error_message = "a key that is given is used, and no other is made"
  }
}

run "alias_instead_of_a_key" {
  command = plan

  variables {
    kms_key_arn = "alias/ours"
  }

  expect_failures = [var.kms_key_arn]
}
