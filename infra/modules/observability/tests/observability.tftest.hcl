mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000" }
  }
  mock_data "aws_region" {
    defaults = { name = "eu-central-1" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-central-1:000000000000:lean-ops-test-alerts" }
  }
}

variables {
  name               = "lean-ops-test"
  kms_key_arn        = "arn:aws:kms:eu-central-1:000000000000:key/test"
  function_names     = { sqs_processor = "lean-ops-test-sqs-processor", health = "lean-ops-test-health" }
  glue_job_names     = { standardized = "lean-ops-test-standardized", curated = "lean-ops-test-curated" }
  state_machine_arns = { master = "arn:aws:states:eu-central-1:000000000000:stateMachine:lean-ops-test-master" }
  stream_name        = "lean-ops-test-raw"
  dlq_name           = "lean-ops-test-dlq"
  queue_names        = { events = "lean-ops-test-events" }
  table_names        = { checkpoints = "lean-ops-test-checkpoints", locks = "lean-ops-test-locks" }
  schema_bucket_name = "schemas"
  alert_emails       = ["oncall@example.com"]
}

run "alerts_reach_people" {
  command = apply

  assert {
    condition     = aws_sns_topic.alerts.name == "lean-ops-test-alerts" && aws_sns_topic.alerts.kms_master_key_id == var.kms_key_arn
    error_message = "alerts are published to one topic, encrypted with the given key"
  }

  assert {
    condition     = [for mail in aws_sns_topic_subscription.email : "${mail.protocol}:${mail.endpoint}"] == ["email:oncall@example.com"]
    error_message = "everybody who is named gets mail"
  }

  assert {
    condition = alltrue([
      for alarm in concat(values(aws_cloudwatch_metric_alarm.metric), values(aws_cloudwatch_metric_alarm.sum)) :
      toset(alarm.alarm_actions) == toset([aws_sns_topic.alerts.arn]) && toset(alarm.ok_actions) == toset([aws_sns_topic.alerts.arn])
    ])
    error_message = "every alarm tells when it begins and when it is over"
  }

  assert {
    condition     = alltrue([for target in aws_cloudwatch_event_target.this : target.arn == aws_sns_topic.alerts.arn && target.role_arn == null])
    error_message = "rules publish to the topic by its policy; with a role they fail at encrypted topics"
  }

  assert {
    condition = {
      for statement in jsondecode(aws_sns_topic_policy.alerts.policy).Statement :
      statement.Principal.Service => can(statement.Condition) if statement.Effect == "Allow"
      } == {
      "cloudwatch.amazonaws.com" = true
      "events.amazonaws.com"     = false
    }
    error_message = "alarms of this account only; EventBridge without a condition, which it could never meet"
  }

  assert {
    condition = alltrue([
      for statement in jsondecode(aws_sns_topic_policy.alerts.policy).Statement :
      statement.Action == "sns:Publish" && statement.Resource == aws_sns_topic.alerts.arn
    ])
    error_message = "the policy is about publishing to this topic and nothing else"
  }
}

run "dead_letters_that_wait" {
  command = plan

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.metric["dlq-age"].metric_name == "ApproximateAgeOfOldestMessage"
      && aws_cloudwatch_metric_alarm.metric["dlq-age"].dimensions == tomap({ QueueName = "lean-ops-test-dlq" })
      && aws_cloudwatch_metric_alarm.metric["dlq-age"].threshold == 900
      && aws_cloudwatch_metric_alarm.metric["dlq-age"].statistic == "Maximum"
    )
    error_message = "the oldest dead letter is told after 15 minutes"
  }

  assert {
    condition = toset([
      for query in aws_cloudwatch_metric_alarm.sum["dlq-not-empty"].metric_query : query.metric[0].metric_name if length(query.metric) > 0
    ]) == toset(["ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"])
    error_message = "letters in flight are still in the queue"
  }
}

run "jobs_and_executions_that_fail" {
  command = plan

  assert {
    condition = jsondecode(aws_cloudwatch_event_rule.this["glue-job-failed"].event_pattern) == {
      source      = ["aws.glue"]
      detail-type = ["Glue Job State Change"]
      detail = {
        jobName = ["lean-ops-test-curated", "lean-ops-test-standardized"]
        state   = ["FAILED", "TIMEOUT", "ERROR"]
      }
    }
    error_message = "a run of one of our jobs that died is told, and nobody else's"
  }

  assert {
    condition = alltrue([
      for target in aws_cloudwatch_event_target.this :
      can(jsondecode(replace(target.input_transformer[0].input_template, "/<[a-z]+>/", "1")))
    ])
    error_message = "a message that is no JSON is not sent"
  }

  assert {
    condition = toset([
      for query in aws_cloudwatch_metric_alarm.sum["master-executions"].metric_query : query.metric[0].metric_name if length(query.metric) > 0
    ]) == toset(["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"])
    error_message = "an execution can end badly in three ways"
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.metric["pipeline-stalled"].treat_missing_data == "breaching"
      && aws_cloudwatch_metric_alarm.metric["pipeline-stalled"].comparison_operator == "LessThanThreshold"
      && aws_cloudwatch_metric_alarm.metric["pipeline-stalled"].period == 3600
    )
    error_message = "a pipeline that is not started at all has no metric, and is told after an hour"
  }
}

run "refused_schemas" {
  command = plan

  assert {
    condition     = jsondecode(aws_cloudwatch_event_rule.this["schema-failed"].event_pattern).detail.object.key == [{ wildcard = "schemas/*/failed/error.json" }]
    error_message = "the validator leaves its reasons there"
  }
}

run "functions_delivery_and_state" {
  command = plan

  assert {
    condition = alltrue([
      for kind in ["errors", "throttles"] : alltrue([
        for function, name in var.function_names :
        aws_cloudwatch_metric_alarm.metric["${replace(function, "_", "-")}-${kind}"].dimensions == tomap({ FunctionName = name })
      ])
    ])
    error_message = "every function's errors and throttles are watched"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.metric["health-errors"].evaluation_periods == 1
    error_message = "a function that runs once a day fails once a day: waiting for a second failure would hide the first"
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.metric["firehose-failed-rows"].metric_name == "DeliveryToIceberg.FailedRowCount"
      && aws_cloudwatch_metric_alarm.metric["firehose-failed-rows"].threshold == 0
      && aws_cloudwatch_metric_alarm.metric["firehose-freshness"].metric_name == "DeliveryToIceberg.DataFreshness"
      && aws_cloudwatch_metric_alarm.metric["firehose-freshness"].threshold == 900
    )
    error_message = "one record that can't be delivered is told, and a delivery that hangs"
  }

  assert {
    condition = aws_cloudwatch_metric_alarm.metric["firehose-unroutable"].dimensions == tomap({
      service = "firehose-transform", deployment = "lean-ops-test"
    })
    error_message = "the product's metrics are found by all of their dimensions only"
  }

  assert {
    condition = toset([
      for query in aws_cloudwatch_metric_alarm.sum["state-write-throttles"].metric_query : query.metric[0].dimensions["TableName"] if length(query.metric) > 0
    ]) == toset(values(var.table_names))
    error_message = "throttled writes are watched at every table"
  }

  assert {
    condition = alltrue([
      for key, alarm in aws_cloudwatch_metric_alarm.metric : alarm.treat_missing_data == "notBreaching" if key != "pipeline-stalled"
    ])
    error_message = "nothing counted is nothing wrong"
  }
}

run "no_alarm_is_a_topics" {
  command = plan

  variables {
    queue_names = { for number in range(700) : "topic_${number}" => "lean-ops-test-topic_${number}" }
  }

  assert {
    condition     = length(output.alarm_names) < 40
    error_message = "alarms are paid for by the month: 700 topics must have no more of them than one"
  }

  assert {
    condition     = length(aws_cloudwatch_dashboard.this.dashboard_body) < 50000
    error_message = "a dashboard of 700 topics must stay one that CloudWatch takes"
  }
}

run "dashboard_shows_every_part" {
  command = plan

  assert {
    condition = [
      for widget in jsondecode(aws_cloudwatch_dashboard.this.dashboard_body).widgets : split(":", widget.properties.markdown)[0] if widget.type == "text"
    ] == ["## Ingestion", "## Dead letters", "## Pipeline", "## State", "## What is paid for"]
    error_message = "the way of a record from top to bottom, then its cost"
  }

  assert {
    condition = alltrue([
      for widget in jsondecode(aws_cloudwatch_dashboard.this.dashboard_body).widgets :
      length(widget.properties.metrics) > 0 && widget.x + widget.width <= 24 if widget.type == "metric"
    ])
    error_message = "every widget draws something, inside the dashboard"
  }
}

run "machine_that_is_not_scheduled" {
  command = plan

  variables {
    schedules_enabled  = false
    schema_bucket_name = null
  }

  assert {
    condition     = !contains(keys(aws_cloudwatch_metric_alarm.metric), "pipeline-stalled")
    error_message = "a machine that nobody schedules is not late"
  }

  assert {
    condition     = keys(aws_cloudwatch_event_rule.this) == ["glue-job-failed"]
    error_message = "without the bucket's name there is no rule about it"
  }
}

run "address_that_is_none" {
  command = plan

  variables {
    alert_emails = ["oncall"]
  }

  expect_failures = [var.alert_emails]
}
