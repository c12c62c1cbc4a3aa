# A role for each machine.

data "aws_iam_policy_document" "machine_trust" {
  for_each = local.machines

  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["states.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }

    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [local.machine_arns[each.key]]
    }
  }
}

resource "aws_iam_role" "machine" {
  for_each = local.machines

  name               = "${local.machine_names[each.key]}-machine"
  description        = "What the state machine ${local.machine_names[each.key]} may do"
  assume_role_policy = data.aws_iam_policy_document.machine_trust[each.key].json
  tags               = var.tags
}

data "aws_iam_policy_document" "machine" {
  #checkov:skip=CKV_AWS_356:The delivery of logs and X-Ray's actions have no resource; tests/integration/infra/test_iam.py holds the list.
  #checkov:skip=CKV_AWS_111:The delivery of logs and X-Ray's actions write, and know no resource; see the line above.
  #checkov:skip=CKV_AWS_109:The same: logs:PutResourcePolicy is what the delivery of logs needs, and knows no resource.
  for_each = local.machines

  statement {
    sid       = "Functions"
    actions   = ["lambda:InvokeFunction"]
    resources = [for function in each.value.functions : var.function_arns[function]]
  }

  statement {
    sid       = "Jobs"
    actions   = ["glue:StartJobRun", "glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun"]
    resources = [for job in each.value.jobs : var.glue_job_arns[job]]
  }

  statement {
    sid       = "Alerts"
    actions   = ["sns:Publish"]
    resources = [var.alert_topic_arn]
  }

  # The groups of a Distributed Map are executions of the machine itself; whether another one is running it asks itself.
  statement {
    sid       = "OwnExecutions"
    actions   = ["states:StartExecution", "states:ListExecutions"]
    resources = [local.machine_arns[each.key]]
  }

  statement {
    sid     = "OwnGroups"
    actions = ["states:DescribeExecution", "states:StopExecution", "states:RedriveExecution"]
    resources = [
      "${local.states_arn}:execution:${local.machine_names[each.key]}:*",
      "${local.states_arn}:execution:${local.machine_names[each.key]}/*:*",
    ]
  }

  statement {
    sid       = "AlertsKey"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [var.kms_key_arn]

    condition {
      test     = "StringEquals"
      variable = "kms:ViaService"
      values   = ["sns.${local.region}.amazonaws.com"]
    }
  }

  statement {
    sid       = "ExecutionsKey"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [var.kms_key_arn]

    condition {
      test     = "StringEquals"
      variable = "kms:EncryptionContext:aws:states:stateMachineArn"
      values   = [local.machine_arns[each.key]]
    }
  }

  # What is logged of an encrypted machine is encrypted on its way.
  statement {
    sid       = "LogsKey"
    actions   = ["kms:GenerateDataKey"]
    resources = [var.kms_key_arn]

    condition {
      test     = "StringEquals"
      variable = "kms:EncryptionContext:SourceArn"
      values   = ["arn:${local.partition}:logs:${local.region}:${local.account}:*"]
    }
  }

  # The delivery of logs is set up for the whole account: CloudWatch Logs knows no resources for these.
  statement {
    sid = "LogDelivery"
    actions = [
      "logs:CreateLogDelivery",
      "logs:GetLogDelivery",
      "logs:UpdateLogDelivery",
      "logs:DeleteLogDelivery",
      "logs:ListLogDeliveries",
      "logs:PutResourcePolicy",
      "logs:DescribeResourcePolicies",
      "logs:DescribeLogGroups",
    ]
    resources = ["*"]
  }

  # X-Ray knows no resources for what is sent to it.
  statement {
    sid = "Traces"
    actions = [
      "xray:PutTraceSegments",
      "xray:PutTelemetryRecords",
      "xray:GetSamplingRules",
      "xray:GetSamplingTargets",
    ]
    resources = ["*"]
  }
}

resource "aws_iam_role_policy" "machine" {
  for_each = local.machines

  name   = "calls"
  role   = aws_iam_role.machine[each.key].name
  policy = data.aws_iam_policy_document.machine[each.key].json
}

# Who starts: the schedules, with a role for machines and one for functions.

locals {
  scheduled = { machine = "states:StartExecution", function = "lambda:InvokeFunction" }
}

data "aws_iam_policy_document" "schedule_trust" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["scheduler.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account]
    }

    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [aws_scheduler_schedule_group.this.arn]
    }
  }
}

resource "aws_iam_role" "schedule" {
  for_each = local.scheduled

  name               = "${var.name}-schedule-${each.key}"
  description        = "What the schedules of ${var.name} may start: each ${each.key} that has one"
  assume_role_policy = data.aws_iam_policy_document.schedule_trust.json
  tags               = var.tags
}

data "aws_iam_policy_document" "schedule" {
  for_each = local.scheduled

  statement {
    sid       = "Start"
    actions   = [each.value]
    resources = distinct([for schedule in values(local.schedules) : schedule.arn if schedule.kind == each.key])
  }

  # Who starts an encrypted machine encrypts its input.
  dynamic "statement" {
    for_each = each.key == "machine" ? [var.kms_key_arn] : []

    content {
      sid       = "MachinesKey"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [statement.value]

      condition {
        test     = "StringEquals"
        variable = "kms:EncryptionContext:aws:states:stateMachineArn"
        values   = distinct([for schedule in values(local.schedules) : schedule.arn if schedule.kind == "machine"])
      }
    }
  }
}

resource "aws_iam_role_policy" "schedule" {
  for_each = local.scheduled

  name   = "start"
  role   = aws_iam_role.schedule[each.key].name
  policy = data.aws_iam_policy_document.schedule[each.key].json
}
