# What must be there before infra/ can be applied by anybody: where its state and its images are kept, and the roles of
# the workflows that apply it. Applied once for an account, by a person, with state of its own (docs/deployment.md).

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  # What everything of an environment begins with in infra/.
  names = { for environment in keys(var.environments) : environment => "${var.project_name}-${environment}" }
}

# One key for state and images: neither may be readable by whoever can read a bucket or a registry.
resource "aws_kms_key" "this" {
  description             = "${var.project_name}: Terraform's state and the functions' images"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  tags                    = var.tags

  # In a key's own policy the resource "*" is that key and no other.
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      # Hands the key to the account's IAM policies; without it nobody could ever change the key again.
      Sid       = "AccountByIam"
      Effect    = "Allow"
      Principal = { AWS = "arn:${local.partition}:iam::${local.account}:root" }
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
    }]
  })
}

resource "aws_kms_alias" "this" {
  name          = "alias/${var.project_name}-bootstrap"
  target_key_id = aws_kms_key.this.key_id
}
