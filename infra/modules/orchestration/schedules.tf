# What is started when. A schedule just starts: whether a run is still at work the machine itself finds out.

locals {
  schedules_always = {
    run                = { kind = "machine", arn = local.machine_arns["master"], input = {}, on = true }
    daily-maintenance  = { kind = "machine", arn = local.machine_arns["maintenance"], input = { cadence = "daily" }, on = var.maintenance_enabled }
    weekly-maintenance = { kind = "machine", arn = local.machine_arns["maintenance"], input = { cadence = "weekly" }, on = var.maintenance_enabled }
    reconcile          = { kind = "function", arn = var.function_arns["health"], input = {}, on = true }
    watch              = { kind = "function", arn = var.function_arns["health"], input = { books = false }, on = true }
    circuit-breaker    = { kind = "function", arn = var.function_arns["circuit_breaker"], input = {}, on = true }
  }
  schedules = merge(
    local.schedules_always,
    { for name in ["discovery"] : name => { kind = "function", arn = var.function_arns[name], input = {}, on = true } if contains(keys(var.function_arns), name) },
  )
}

resource "aws_scheduler_schedule_group" "this" {
  name = var.name
  tags = var.tags
}

resource "aws_scheduler_schedule" "this" {
  #checkov:skip=CKV_AWS_297:A schedule's input says daily or weekly, with or without books, or nothing: there is nothing to be kept secret with a key of ours.
  for_each = local.schedules

  name                = "${var.name}-${each.key}"
  group_name          = aws_scheduler_schedule_group.this.name
  schedule_expression = var.schedules[replace(each.key, "-", "_")]
  state               = var.schedules_enabled && each.value.on ? "ENABLED" : "DISABLED"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = each.value.arn
    role_arn = aws_iam_role.schedule[each.value.kind].arn
    input    = jsonencode(each.value.input)

    # A start that could not be delivered for some minutes is not made up for, and there is no queue for it: the next
    # one comes by itself and takes what this one would have taken.
    retry_policy {
      maximum_retry_attempts       = 5
      maximum_event_age_in_seconds = each.key == "circuit-breaker" ? 60 : 600
    }
  }

  depends_on = [aws_sfn_state_machine.this, aws_iam_role_policy.schedule]
}

# An uploaded schema is judged at once. This is no schedule: it stays on when those are off.

resource "aws_cloudwatch_event_rule" "pending_schema" {
  name        = "${var.name}-pending-schema"
  description = "A schema was uploaded to schemas/{topic}/pending/schema.json"
  state       = "ENABLED"
  tags        = var.tags

  event_pattern = jsonencode({
    source      = ["aws.s3"]
    detail-type = ["Object Created"]
    detail = {
      bucket = { name = [var.schema_bucket_name] }
      object = { key = [{ wildcard = "schemas/*/pending/schema.json" }] }
    }
  })
}

resource "aws_cloudwatch_event_target" "pending_schema" {
  rule      = aws_cloudwatch_event_rule.pending_schema.name
  target_id = "schema-validator"
  arn       = var.function_arns["schema_validator"]

  # An upload whose event is lost all the same is found by the daily look (`health`).
  retry_policy {
    maximum_retry_attempts       = 20
    maximum_event_age_in_seconds = 3600
  }

  depends_on = [aws_lambda_permission.pending_schema]
}

resource "aws_lambda_permission" "pending_schema" {
  statement_id   = "PendingSchema"
  action         = "lambda:InvokeFunction"
  function_name  = var.function_arns["schema_validator"]
  principal      = "events.amazonaws.com"
  source_arn     = aws_cloudwatch_event_rule.pending_schema.arn
  source_account = local.account
}
