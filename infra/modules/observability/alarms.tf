# No alarm is a topic's: an alarm costs by the metric and the month, and 700 topics would have 700 of each. What is
# wrong with one topic is told by the product itself, by name; alarms are about the parts that all topics share.
locals {
  minute = 60

  # Busy functions fail now and then, and their messages come again; the others run a few times a day at most.
  busy_functions = ["sqs_processor", "firehose_transform", "dlq_processor", "circuit_breaker"]

  function_alarms = merge(
    {
      for function, name in var.function_names : "${replace(function, "_", "-")}-errors" => {
        description = "Calls of ${name} ended in an error or ran out of time."
        namespace   = "AWS/Lambda"
        metric      = "Errors"
        dimensions  = { FunctionName = name }
        periods     = contains(local.busy_functions, function) ? 3 : 1
        datapoints  = contains(local.busy_functions, function) ? 2 : 1
      }
    },
    {
      # A call that is turned away is made again, so only throttling that lasts is told.
      for function, name in var.function_names : "${replace(function, "_", "-")}-throttles" => {
        description = "Calls of ${name} are turned away for want of concurrency."
        namespace   = "AWS/Lambda"
        metric      = "Throttles"
        dimensions  = { FunctionName = name }
        periods     = 3
        datapoints  = 3
      }
    },
  )

  ingestion_alarms = {
    dlq-age = {
      description = "A dead letter has waited for more than 15 minutes: nobody takes it. See docs/dead-letters.md."
      namespace   = "AWS/SQS"
      metric      = "ApproximateAgeOfOldestMessage"
      dimensions  = { QueueName = var.dlq_name }
      statistic   = "Maximum"
      threshold   = 15 * local.minute
    }
    firehose-failed-rows = {
      description = "Records could not be delivered to RAW and lie under firehose-errors/: bring them back by lean-ops ingest --from-firehose-errors."
      namespace   = "AWS/Firehose"
      metric      = "DeliveryToIceberg.FailedRowCount"
      dimensions  = { DeliveryStreamName = var.stream_name }
    }
    # Twice the buffer and a commit; the stream tries for an hour before it gives a record up.
    firehose-freshness = {
      description = "The oldest record in the stream has waited for more than 15 minutes: delivery to RAW is failing or too slow."
      namespace   = "AWS/Firehose"
      metric      = "DeliveryToIceberg.DataFreshness"
      dimensions  = { DeliveryStreamName = var.stream_name }
      statistic   = "Maximum"
      threshold   = 15 * local.minute
      periods     = 3
      datapoints  = 2
    }
    firehose-throttled = {
      description = "The stream turns records away: its quota is too small for what comes."
      namespace   = "AWS/Firehose"
      metric      = "ThrottledRecords"
      dimensions  = { DeliveryStreamName = var.stream_name }
      periods     = 3
      datapoints  = 3
    }
    firehose-unroutable = {
      description = "The transform found records that it can't route; they lie under firehose-errors/. They are not the processor's."
      namespace   = local.product_namespace
      metric      = "processing_failed"
      dimensions  = { service = "firehose-transform", deployment = var.name }
    }
    # Messages go on without the store, but copies of them may land twice: only this tells.
    processor-store-faults = {
      description = "The processor can't reach the idempotency store or the breaker's table, and goes on without."
      namespace   = local.product_namespace
      metric      = "store_faults"
      dimensions  = { service = "sqs-processor", deployment = var.name }
      periods     = 3
      datapoints  = 2
    }
  }

  rule_alarms = {
    for rule in keys(local.rules) : "rule-${rule}" => {
      description = "An alert of the rule ${rule} did not reach the alert topic: look at the policies of the topic and of its key."
      namespace   = "AWS/Events"
      metric      = "FailedInvocations"
      dimensions  = { RuleName = "${var.name}-${rule}" }
    }
  }

  pipeline_alarms = {
    for master in var.schedules_enabled ? [var.state_machine_arns["master"]] : [] : "pipeline-stalled" => {
      description = "No run of the master state machine has succeeded for an hour: data waits although gates are open."
      namespace   = "AWS/States"
      metric      = "ExecutionsSucceeded"
      dimensions  = { StateMachineArn = master }
      comparison  = "LessThanThreshold"
      threshold   = 1
      period      = 60 * local.minute
      missing     = "breaching" # a machine that is not started has no metric
    }
  }

  # That of src/lean_ops/entrypoints/lambdas/telemetry.py.
  product_namespace = "LeanOps"

  metric_alarms = merge(local.function_alarms, local.ingestion_alarms, local.rule_alarms, local.pipeline_alarms)
}

resource "aws_cloudwatch_metric_alarm" "metric" {
  for_each = local.metric_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = try(each.value.statistic, "Sum")
  comparison_operator = try(each.value.comparison, "GreaterThanThreshold")
  threshold           = try(each.value.threshold, 0)
  period              = try(each.value.period, 5 * local.minute)
  evaluation_periods  = try(each.value.periods, 1)
  datapoints_to_alarm = try(each.value.datapoints, 1)
  # Nothing counted is nothing wrong, except where an entry says otherwise.
  treat_missing_data = try(each.value.missing, "notBreaching")
  alarm_actions      = [aws_sns_topic.alerts.arn]
  ok_actions         = [aws_sns_topic.alerts.arn]
  tags               = var.tags
}

# Sums of several metrics, because what is wrong is the same whichever of them counts it; at most ten in an alarm.
locals {
  sum_alarms = merge(
    {
      # In flight counts too: a letter that could not be taken is out of sight for half an hour.
      dlq-not-empty = {
        description = "Dead letters have stayed in the queue for 15 minutes: the DLQ processor can't take them."
        namespace   = "AWS/SQS"
        statistic   = "Minimum"
        periods     = 3
        metrics = [
          for metric in ["ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"] :
          { metric = metric, dimensions = { QueueName = var.dlq_name } }
        ]
      }
      state-read-throttles = {
        description = "DynamoDB turns reads of the state tables away."
        namespace   = "AWS/DynamoDB"
        metrics     = [for table in values(var.table_names) : { metric = "ReadThrottleEvents", dimensions = { TableName = table } }]
      }
      state-write-throttles = {
        description = "DynamoDB turns writes to the state tables away."
        namespace   = "AWS/DynamoDB"
        metrics     = [for table in values(var.table_names) : { metric = "WriteThrottleEvents", dimensions = { TableName = table } }]
      }
      executions-throttled = {
        description = "Step Functions turns state transitions away: its quota is too small for the concurrency."
        namespace   = "AWS/States"
        metrics     = [for arn in values(var.state_machine_arns) : { metric = "ExecutionThrottled", dimensions = { StateMachineArn = arn } }]
      }
    },
    {
      for machine, arn in var.state_machine_arns : "${machine}-executions" => {
        description = "An execution of the ${machine} state machine failed, ran out of time or was stopped."
        namespace   = "AWS/States"
        metrics = [
          for metric in ["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"] :
          { metric = metric, dimensions = { StateMachineArn = arn } }
        ]
      }
    },
  )
}

resource "aws_cloudwatch_metric_alarm" "sum" {
  for_each = local.sum_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  evaluation_periods  = try(each.value.periods, 1)
  datapoints_to_alarm = try(each.value.periods, 1)
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.alerts.arn]
  ok_actions          = [aws_sns_topic.alerts.arn]
  tags                = var.tags

  metric_query {
    id          = "total"
    label       = each.key
    expression  = join(" + ", [for number in range(length(each.value.metrics)) : "FILL(m${number}, 0)"])
    return_data = true
  }

  dynamic "metric_query" {
    for_each = { for number, metric in each.value.metrics : "m${number}" => metric }

    content {
      id          = metric_query.key
      return_data = false

      metric {
        namespace   = each.value.namespace
        metric_name = metric_query.value.metric
        dimensions  = metric_query.value.dimensions
        stat        = try(each.value.statistic, "Sum")
        period      = 5 * local.minute
      }
    }
  }
}
