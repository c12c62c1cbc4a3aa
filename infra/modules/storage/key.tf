locals {
  made_key    = var.kms_key_arn == null ? { this = "${var.name}: tables, queues, state, logs and alerts" } : {}
  kms_key_arn = var.kms_key_arn == null ? aws_kms_key.this["this"].arn : var.kms_key_arn
  account_arn = "arn:${data.aws_partition.this.partition}:iam::${data.aws_caller_identity.this.account_id}:root"
  this_account = {
    StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.this.account_id }
  }
}

resource "aws_kms_key" "this" {
  for_each = local.made_key

  description             = each.value
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = jsonencode(local.key_policy)
  tags                    = var.tags
}

resource "aws_kms_alias" "this" {
  for_each = local.made_key

  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.this[each.key].key_id
}

# In a key's own policy the resource "*" is that key and no other.
locals {
  key_policy = {
    Version = "2012-10-17"
    Statement = [
      {
        # Hands the key to the account's IAM policies, which say who may do what of this. The administrator must be
        # among them, or nobody could ever change the key again.
        Sid       = "AccountByIam"
        Effect    = "Allow"
        Principal = { AWS = local.account_arn }
        Action = [
          "kms:CancelKeyDeletion",
          "kms:CreateAlias",
          "kms:CreateGrant",
          "kms:Decrypt",
          "kms:DeleteAlias",
          "kms:DescribeKey",
          "kms:DisableKey",
          "kms:DisableKeyRotation",
          "kms:EnableKey",
          "kms:EnableKeyRotation",
          "kms:Encrypt",
          "kms:GenerateDataKey",
          "kms:GenerateDataKeyWithoutPlaintext",
          "kms:GetKeyPolicy",
          "kms:GetKeyRotationStatus",
          "kms:ListGrants",
          "kms:ListKeyPolicies",
          "kms:ListKeyRotations",
          "kms:ListResourceTags",
          "kms:PutKeyPolicy",
          "kms:ReEncryptFrom",
          "kms:ReEncryptTo",
          "kms:RetireGrant",
          "kms:RevokeGrant",
          "kms:RotateKeyOnDemand",
          "kms:ScheduleKeyDeletion",
          "kms:TagResource",
          "kms:UntagResource",
          "kms:UpdateAlias",
          "kms:UpdateKeyDescription",
        ]
        Resource = "*"
      },
      {
        Sid       = "AlarmsToTheAlertTopic"
        Effect    = "Allow"
        Principal = { Service = "cloudwatch.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource  = "*"
        Condition = local.this_account
      },
      {
        # Without a condition, because EventBridge tells KMS neither its account nor its rule when it publishes to SNS:
        # with one, every alert that comes by a rule would be lost without a word.
        Sid       = "RulesToTheAlertTopic"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource  = "*"
      },
      {
        Sid       = "LogGroups"
        Effect    = "Allow"
        Principal = { Service = "logs.${data.aws_region.this.name}.amazonaws.com" }
        Action = [
          "kms:Decrypt",
          "kms:DescribeKey",
          "kms:Encrypt",
          "kms:GenerateDataKey",
          "kms:GenerateDataKeyWithoutPlaintext",
          "kms:ReEncryptFrom",
          "kms:ReEncryptTo",
        ]
        Resource = "*"
        Condition = {
          ArnLike = {
            "kms:EncryptionContext:aws:logs:arn" = "arn:${data.aws_partition.this.partition}:logs:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:log-group:*"
          }
        }
      },
      {
        # State machines write their logs by way of this service; what they log is encrypted with their own key.
        Sid       = "LogsOfStateMachines"
        Effect    = "Allow"
        Principal = { Service = "delivery.logs.amazonaws.com" }
        Action    = ["kms:Decrypt"]
        Resource  = "*"
        Condition = {
          StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.this.account_id }
          ArnLike = {
            "kms:EncryptionContext:SourceArn" = "arn:${data.aws_partition.this.partition}:logs:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:*"
          }
        }
      },
      {
        Sid       = "DeliveryStreams"
        Effect    = "Allow"
        Principal = { Service = "firehose.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey"]
        Resource  = "*"
        Condition = local.this_account
      },
    ]
  }
}
