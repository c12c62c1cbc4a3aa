# A role for each function: what access.tf lists for it, its own logs, traces, and the key.

data "aws_iam_policy_document" "lambda_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["lambda.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }
  }
}

resource "aws_iam_role" "function" {
  for_each = local.functions

  name               = each.value.name
  description        = "What the function ${each.value.name} may do"
  assume_role_policy = data.aws_iam_policy_document.lambda_trust.json
  tags               = var.tags
}

data "aws_iam_policy_document" "function" {
  #checkov:skip=CKV_AWS_356:Only lambda:ListEventSourceMappings and X-Ray's two actions have no resource; tests/integration/infra/test_iam.py holds the list.
  #checkov:skip=CKV_AWS_111:The same: X-Ray's two actions write without a resource that could be named.
  for_each = local.functions

  dynamic "statement" {
    for_each = local.access[each.key]

    content {
      effect    = try(statement.value.effect, "Allow")
      actions   = statement.value.actions
      resources = statement.value.resources

      dynamic "condition" {
        for_each = try(statement.value.conditions, [])

        content {
          test     = condition.value.test
          variable = condition.value.variable
          values   = condition.value.values
        }
      }
    }
  }

  # Where a call that nobody waited for goes when it has failed for good.
  dynamic "statement" {
    for_each = each.value.told_failed && !contains(flatten([for allowed in local.access[each.key] : allowed.actions]), "sns:Publish") ? [local.publish] : []

    content {
      actions   = statement.value.actions
      resources = statement.value.resources
    }
  }

  statement {
    sid       = "OwnLogs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.function[each.key].arn}:*"]
  }

  # X-Ray knows no resources for what is sent to it.
  statement {
    sid       = "Traces"
    actions   = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    resources = ["*"]
  }

  # The function's own settings are decrypted by Lambda.
  statement {
    sid       = "Decrypt"
    actions   = ["kms:Decrypt"]
    resources = [var.kms_key_arn]

    condition {
      test     = "StringEquals"
      variable = "kms:ViaService"
      values = [
        for service in distinct(concat(["lambda"], each.value.decrypts, each.value.told_failed ? ["sns"] : [])) :
        "${service}.${local.region}.amazonaws.com"
      ]
    }
  }

  dynamic "statement" {
    for_each = length(each.value.encrypts) > 0 || each.value.told_failed ? [distinct(concat(each.value.encrypts, each.value.told_failed ? ["sns"] : []))] : []

    content {
      sid       = "Encrypt"
      actions   = ["kms:GenerateDataKey"]
      resources = [var.kms_key_arn]

      condition {
        test     = "StringEquals"
        variable = "kms:ViaService"
        values   = [for service in statement.value : "${service}.${local.region}.amazonaws.com"]
      }
    }
  }
}

resource "aws_iam_role_policy" "function" {
  for_each = local.functions

  name   = "calls"
  role   = aws_iam_role.function[each.key].name
  policy = data.aws_iam_policy_document.function[each.key].json
}
