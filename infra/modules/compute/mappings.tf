# What brings queues to functions.

resource "aws_lambda_event_source_mapping" "topic" {
  for_each = toset(var.topics)

  event_source_arn = var.queue_arns[each.key]
  function_name    = aws_lambda_function.this["sqs_processor"].arn
  # What one PutRecordBatch of Firehose takes. Firehose waits minutes before it writes, so five seconds cost nobody
  # anything and make a call of hundreds of messages rather than of ten.
  batch_size                         = 500
  maximum_batching_window_in_seconds = 5
  function_response_types            = ["ReportBatchItemFailures"]

  dynamic "scaling_config" {
    for_each = var.topic_concurrency == null ? [] : [var.topic_concurrency]

    content {
      maximum_concurrency = scaling_config.value
    }
  }

  lifecycle {
    # The circuit breaker turns mappings off and on: an apply in the middle of an outage must not turn one on.
    ignore_changes = [enabled]
  }
}

resource "aws_lambda_event_source_mapping" "dlq" {
  event_source_arn = var.dlq_arn
  function_name    = aws_lambda_function.this["dlq_processor"].arn
  # A commit to an Iceberg table costs about the same for one letter and for a hundred.
  batch_size                         = 100
  maximum_batching_window_in_seconds = 30
  function_response_types            = ["ReportBatchItemFailures"]

  scaling_config {
    # All calls commit to one table: more of them would only wait for each other.
    maximum_concurrency = 2
  }
}
