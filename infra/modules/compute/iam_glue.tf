# One role for all jobs: they are the same code on the same tables.

data "aws_iam_policy_document" "glue_trust" {
  # Without a condition on the caller: Glue does not document that it names the account or the job when it takes a
  # role, and a condition that it does not meet would stop every job. A role can be given to Glue in its own account only.
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["glue.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "glue" {
  name               = "${var.name}-glue"
  description        = "What the jobs of ${var.name} may do"
  assume_role_policy = data.aws_iam_policy_document.glue_trust.json
  tags               = var.tags
}

data "aws_iam_policy_document" "glue" {
  #checkov:skip=CKV_AWS_356:CloudWatch knows no resource for cloudwatch:PutMetricData; the condition on the namespace is what limits it.
  #checkov:skip=CKV_AWS_111:cloudwatch:PutMetricData writes, and there is no resource that could be named; see the line above.
  statement {
    sid       = "Tables"
    actions   = ["glue:GetDatabase", "glue:GetTable", "glue:GetTables", "glue:CreateTable", "glue:UpdateTable"]
    resources = concat([var.catalog_arn], values(var.database_arns), values(var.table_arn_patterns))
  }

  statement {
    sid       = "TableFiles"
    actions   = local.change_objects
    resources = [for folder in values(local.folder) : "${folder}/*"]
  }

  statement {
    sid       = "Artifacts"
    actions   = ["s3:GetObject"]
    resources = ["${var.iceberg_bucket_arn}/artifacts/*"]
  }

  statement {
    sid       = "Schemas"
    actions   = ["s3:GetObject"]
    resources = ["${var.schema_bucket_arn}/schemas/*"]
  }

  # Without a condition on the prefix, as in access.tf: of a missing object S3 says so only to those who may list.
  statement {
    sid       = "Look"
    actions   = ["s3:ListBucket"]
    resources = [var.iceberg_bucket_arn, var.schema_bucket_arn]
  }

  statement {
    sid       = "Checkpoints"
    actions   = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Scan"]
    resources = [var.table_arns["checkpoints"]]
  }

  # A checkpoint is written in one transaction with a look at the lease.
  statement {
    sid       = "Leases"
    actions   = ["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:ConditionCheckItem"]
    resources = [var.table_arns["locks"]]
  }

  statement {
    sid       = "Registry"
    actions   = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Scan"]
    resources = [var.table_arns["schema_registry"]]
  }

  statement {
    sid       = "Alerts"
    actions   = local.publish.actions
    resources = local.publish.resources
  }

  # Glue makes its groups itself and names them after the security configuration, so they are named by what they begin
  # with.
  statement {
    sid     = "Logs"
    actions = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:AssociateKmsKey"]
    resources = [
      "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/aws-glue/*",
    ]
  }

  # CloudWatch knows no resource for metrics; the namespace is what can be named.
  statement {
    sid       = "Metrics"
    actions   = ["cloudwatch:PutMetricData"]
    resources = ["*"]

    condition {
      test     = "StringEquals"
      variable = "cloudwatch:namespace"
      values   = ["Glue"]
    }
  }

  statement {
    sid       = "Key"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [var.kms_key_arn]

    condition {
      test     = "StringEquals"
      variable = "kms:ViaService"
      values = [
        for service in ["dynamodb", "glue", "s3", "secretsmanager", "sns"] : "${service}.${local.region}.amazonaws.com"
      ]
    }
  }

  dynamic "statement" {
    for_each = var.pii_key_secret_arn == null ? [] : [var.pii_key_secret_arn]

    content {
      sid       = "PiiKey"
      actions   = ["secretsmanager:GetSecretValue"]
      resources = [statement.value]
    }
  }
}

resource "aws_iam_role_policy" "glue" {
  name   = "calls"
  role   = aws_iam_role.glue.name
  policy = data.aws_iam_policy_document.glue.json
}
