locals {
  region = data.aws_region.this.name

  # Metrics of hundreds of queues are found by the words of their names; the worst twenty are drawn.
  name_words = join(" ", regexall("[A-Za-z0-9]+", var.name))
  worst_queues = {
    for metric in ["ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"] : metric => [[{
      expression = "SORT(SEARCH('{AWS/SQS,QueueName} MetricName=\"${metric}\" ${local.name_words}', 'Maximum', 300), MAX, DESC, 20)"
      id         = "worst"
    }]]
  }

  # Rows of the dashboard from top to bottom; a row's widgets share its width.
  dashboard_rows = [
    {
      title = "Ingestion: queues of ${length(var.queue_names)} topics, the processor, the stream"
      widgets = [
        { title = "Oldest message, the worst 20 queues (s)", metrics = local.worst_queues["ApproximateAgeOfOldestMessage"], stat = "Maximum" },
        { title = "Waiting messages, the worst 20 queues", metrics = local.worst_queues["ApproximateNumberOfMessagesVisible"], stat = "Maximum" },
        {
          title = "Rows to RAW"
          stat  = "Sum"
          metrics = [
            for metric in ["IncomingRowCount", "SuccessfulRowCount", "FailedRowCount"] :
            ["AWS/Firehose", "DeliveryToIceberg.${metric}", "DeliveryStreamName", var.stream_name]
          ]
        },
        {
          title   = "Age of the oldest record in the stream (s)"
          stat    = "Maximum"
          metrics = [["AWS/Firehose", "DeliveryToIceberg.DataFreshness", "DeliveryStreamName", var.stream_name]]
        },
      ]
    },
    {
      title = "Dead letters"
      widgets = [
        {
          title = "In the dead letter queue"
          stat  = "Maximum"
          metrics = [
            for metric in ["ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"] :
            ["AWS/SQS", metric, "QueueName", var.dlq_name]
          ]
        },
        {
          title   = "Oldest dead letter (s)"
          stat    = "Maximum"
          metrics = [["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", var.dlq_name]]
        },
        {
          title = "Archived and booked, left in the queue"
          stat  = "Sum"
          metrics = [
            for metric in ["dead_letters", "dead_letters_left"] :
            [local.product_namespace, metric, "service", "dlq-processor", "deployment", var.name]
          ]
        },
        {
          title = "Circuits"
          stat  = "Sum"
          metrics = [
            for metric in ["circuits_opened", "circuits_closed", "circuits_failed"] :
            [local.product_namespace, metric, "service", "circuit-breaker", "deployment", var.name]
          ]
        },
      ]
    },
    {
      title = "Pipeline: executions, functions, jobs"
      widgets = [
        {
          title = "Executions"
          stat  = "Sum"
          metrics = flatten([
            for machine, arn in var.state_machine_arns : [
              for metric in ["ExecutionsSucceeded", "ExecutionsFailed", "ExecutionsTimedOut"] :
              { line = ["AWS/States", metric, "StateMachineArn", arn, { label = "${machine} ${metric}" }] }
            ]
          ])[*].line
        },
        {
          title   = "Time of a run (ms)"
          stat    = "Maximum"
          metrics = [for machine, arn in var.state_machine_arns : ["AWS/States", "ExecutionTime", "StateMachineArn", arn, { label = machine }]]
        },
        {
          title   = "Errors of functions"
          stat    = "Sum"
          metrics = [for function, name in var.function_names : ["AWS/Lambda", "Errors", "FunctionName", name, { label = function }]]
        },
        {
          title = "Failed tasks of jobs"
          stat  = "Sum"
          metrics = [
            for job, name in var.glue_job_names :
            ["Glue", "glue.driver.aggregate.numFailedTasks", "JobName", name, "JobRunId", "ALL", "Type", "count", { label = job }]
          ]
        },
      ]
    },
    {
      title = "State"
      widgets = [
        {
          title   = "Throttled reads"
          stat    = "Sum"
          metrics = [for table, name in var.table_names : ["AWS/DynamoDB", "ReadThrottleEvents", "TableName", name, { label = table }]]
        },
        {
          title   = "Throttled writes"
          stat    = "Sum"
          metrics = [for table, name in var.table_names : ["AWS/DynamoDB", "WriteThrottleEvents", "TableName", name, { label = table }]]
        },
        {
          title   = "The processor goes on without its store"
          stat    = "Sum"
          metrics = [[local.product_namespace, "store_faults", "service", "sqs-processor", "deployment", var.name]]
        },
      ]
    },
    {
      title = "What is paid for"
      widgets = [
        {
          title = "Time of jobs (ms)"
          stat  = "Sum"
          metrics = [
            for job, name in var.glue_job_names :
            ["Glue", "glue.driver.aggregate.elapsedTime", "JobName", name, "JobRunId", "ALL", "Type", "count", { label = job }]
          ]
        },
        {
          title   = "Calls of functions"
          stat    = "Sum"
          metrics = [for function, name in var.function_names : ["AWS/Lambda", "Invocations", "FunctionName", name, { label = function }]]
        },
        {
          title   = "Bytes to RAW"
          stat    = "Sum"
          metrics = [["AWS/Firehose", "DeliveryToIceberg.Bytes", "DeliveryStreamName", var.stream_name]]
        },
        {
          title = "Units of the state tables"
          stat  = "Sum"
          metrics = flatten([
            for table, name in var.table_names : [
              for metric in ["ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits"] :
              { line = ["AWS/DynamoDB", metric, "TableName", name, { label = "${table} ${metric}" }] }
            ]
          ])[*].line
        },
      ]
    },
  ]

  width         = 24
  title_height  = 1
  widget_height = 6

  dashboard_widgets = flatten([
    for number, row in local.dashboard_rows : [
      [{
        type       = "text"
        x          = 0
        y          = number * (local.title_height + local.widget_height)
        width      = local.width
        height     = local.title_height
        properties = { markdown = "## ${row.title}" }
      }],
      [
        for place, widget in row.widgets : {
          type   = "metric"
          x      = place * floor(local.width / length(row.widgets))
          y      = number * (local.title_height + local.widget_height) + local.title_height
          width  = floor(local.width / length(row.widgets))
          height = local.widget_height
          properties = {
            title   = widget.title
            region  = local.region
            stat    = widget.stat
            period  = 300
            view    = "timeSeries"
            metrics = widget.metrics
          }
        }
      ],
    ]
  ])
}

resource "aws_cloudwatch_dashboard" "this" {
  dashboard_name = var.name
  dashboard_body = jsonencode({ widgets = local.dashboard_widgets })
}
