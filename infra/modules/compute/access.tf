# What each function may do: exactly the calls that its code makes, on exactly what it makes them on.
# Logs, traces and the key are the same for all and stand in iam.tf.

locals {
  warehouse_folder = trimprefix(var.warehouse, "s3://${var.iceberg_bucket_name}/")
  # Where a zone's tables are, in Glue and in the bucket; a table's name follows.
  glue   = { for zone, pattern in var.table_arn_patterns : zone => trimsuffix(pattern, "/*") }
  folder = { for zone, database in var.database_names : zone => "${var.iceberg_bucket_arn}/${local.warehouse_folder}/${database}" }

  ops_tables = ["topic_registry", "job_run_history", "schema_versions", "drift_log", "reconciliation_log", "maintenance_log", "alerts"]
  # The tables that all topics share, by zone; each exists once.
  shared        = { raw = ["dlq_errors"], standardized = ["parse_errors"], curated = ["errors"], ops = local.ops_tables }
  shared_tables = flatten([for zone, tables in local.shared : [for table in tables : "${local.glue[zone]}/${table}"]])
  shared_metadata = flatten([
    for zone, tables in local.shared : [for table in tables : "${local.folder[zone]}/${table}/metadata/*"]
  ])

  # Of a missing object S3 says so only to those who may list its bucket, to others that they are not allowed. That
  # question has no prefix, so a condition on the prefix would make every missing object an error of rights.
  look_into_lake    = { actions = ["s3:ListBucket"], resources = [var.iceberg_bucket_arn] }
  look_into_schemas = { actions = ["s3:ListBucket"], resources = [var.schema_bucket_arn] }

  change_objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
  publish        = { actions = ["sns:Publish"], resources = [var.alert_topic_arn] }

  # An alert is a word to whoever has subscribed, and a row.
  raise_alerts = [
    local.publish,
    local.look_into_lake,
    {
      actions   = ["glue:GetTable", "glue:UpdateTable"]
      resources = [var.catalog_arn, var.database_arns["ops"], "${local.glue["ops"]}/alerts"]
    },
    { actions = local.change_objects, resources = ["${local.folder["ops"]}/alerts/*"] },
  ]

  # Whoever judges a schema: its files, the topic's lock and registry item, the topic's tables, the schema history.
  judge_schemas = [
    local.look_into_schemas,
    local.look_into_lake,
    {
      actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
      resources = ["${var.schema_bucket_arn}/schemas/*"]
    },
    { actions = ["dynamodb:UpdateItem"], resources = [var.table_arns["locks"]] },
    { actions = ["dynamodb:GetItem", "dynamodb:PutItem"], resources = [var.table_arns["schema_registry"]] },
    # It asks for the shared tables each time and finds them: ensure_table has made them.
    {
      actions   = ["glue:GetDatabase", "glue:GetTable"]
      resources = concat([var.catalog_arn], values(var.database_arns), local.shared_tables)
    },
    { actions = ["s3:GetObject"], resources = local.shared_metadata },
    {
      actions = ["glue:GetTable", "glue:CreateTable", "glue:UpdateTable"]
      resources = [
        var.catalog_arn,
        var.database_arns["standardized"], "${local.glue["standardized"]}/*",
        var.database_arns["curated"], "${local.glue["curated"]}/*",
      ]
    },
    {
      actions   = local.change_objects
      resources = ["${local.folder["standardized"]}/*/metadata/*", "${local.folder["curated"]}/*/metadata/*"]
    },
    {
      actions   = ["glue:UpdateTable"]
      resources = [var.catalog_arn, var.database_arns["ops"], "${local.glue["ops"]}/schema_versions"]
    },
    { actions = local.change_objects, resources = ["${local.folder["ops"]}/schema_versions/*"] },
  ]

  access = {
    sqs_processor = [
      # Named by what they begin with: a role's policy has room for about a hundred of 700 queues' names. The dead
      # letters, whose queue's name begins so too, are denied.
      {
        actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
        resources = ["arn:${local.partition}:sqs:${local.region}:${local.account}:${var.name}-*"]
      },
      { effect = "Deny", actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage"], resources = [var.dlq_arn] },
      { actions = ["sqs:GetQueueUrl", "sqs:SendMessage"], resources = [var.dlq_arn] },
      { actions = ["firehose:PutRecordBatch"], resources = [var.stream_arn] },
      { actions = ["s3:PutObject"], resources = ["${var.iceberg_bucket_arn}/oversized/*"] },
      { actions = ["dynamodb:BatchGetItem", "dynamodb:BatchWriteItem"], resources = [var.table_arns["idempotency_keys"]] },
      { actions = ["dynamodb:UpdateItem"], resources = [var.table_arns["circuit_breaker"]] },
    ]

    # It is given records and gives them back.
    firehose_transform = []

    dlq_processor = concat(local.raise_alerts, [
      {
        actions   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"]
        resources = [var.dlq_arn]
      },
      { actions = ["dynamodb:GetItem", "dynamodb:PutItem"], resources = [var.table_arns["error_tracker"]] },
      { actions = ["s3:GetObject", "s3:PutObject"], resources = ["${var.iceberg_bucket_arn}/dlq-archive/*"] },
      { actions = ["s3:GetObject"], resources = ["${var.iceberg_bucket_arn}/oversized/*"] },
      {
        actions   = ["glue:GetTable", "glue:UpdateTable"]
        resources = [var.catalog_arn, var.database_arns["raw"], "${local.glue["raw"]}/dlq_errors"]
      },
      { actions = local.change_objects, resources = ["${local.folder["raw"]}/dlq_errors/*"] },
    ])

    circuit_breaker = concat(local.raise_alerts, [
      { actions = ["dynamodb:Query", "dynamodb:PutItem"], resources = [var.table_arns["circuit_breaker"]] },
      # Lambda knows no resource for a list.
      { actions = ["lambda:ListEventSourceMappings"], resources = ["*"] },
      # A mapping's id is not known before it is made, so it is named by the function that it belongs to.
      {
        actions   = ["lambda:UpdateEventSourceMapping"]
        resources = ["arn:${local.partition}:lambda:${local.region}:${local.account}:event-source-mapping:*"]
        conditions = [{
          test     = "ArnEquals"
          variable = "lambda:FunctionArn"
          values   = ["arn:${local.partition}:lambda:${local.region}:${local.account}:function:${local.functions["sqs_processor"].name}"]
        }]
      },
    ])

    schema_validator = local.judge_schemas

    fetch_active_topics = [
      { actions = ["dynamodb:Scan"], resources = [var.table_arns["schema_registry"]] },
    ]

    check_schema = [
      local.look_into_lake,
      {
        actions   = ["dynamodb:GetItem"]
        resources = [var.table_arns["schema_registry"], var.table_arns["checkpoints"]]
      },
      {
        actions = ["glue:GetTable"]
        resources = concat([var.catalog_arn], flatten([
          for zone in ["raw", "standardized", "curated"] : [var.database_arns[zone], "${local.glue[zone]}/*"]
        ]))
      },
      {
        actions   = ["s3:GetObject"]
        resources = [for zone in ["raw", "standardized", "curated"] : "${local.folder[zone]}/*/metadata/*"]
      },
    ]

    # Made of metadata alone: a new table has no rows.
    ensure_table = [
      local.look_into_lake,
      {
        actions   = ["glue:GetDatabase"]
        resources = concat([var.catalog_arn], values(var.database_arns))
      },
      {
        actions = ["glue:GetTable", "glue:CreateTable", "glue:UpdateTable"]
        resources = concat(
          [var.catalog_arn, "${local.glue["raw"]}/*", "${local.glue["standardized"]}/*"],
          values(var.database_arns),
          local.shared_tables,
        )
      },
      {
        actions = local.change_objects
        resources = concat(
          ["${local.folder["raw"]}/*/metadata/*", "${local.folder["standardized"]}/*/metadata/*"],
          local.shared_metadata,
        )
      },
    ]

    get_all_checkpoints = [
      { actions = ["dynamodb:GetItem", "dynamodb:Scan"], resources = [var.table_arns["checkpoints"]] },
    ]

    # It finishes schemas that were left half done, reads all books, and tells of what a person should know.
    health = concat(local.judge_schemas, local.raise_alerts, [
      {
        actions   = ["dynamodb:Scan"]
        resources = [var.table_arns["schema_registry"], var.table_arns["checkpoints"]]
      },
      {
        actions   = ["glue:GetTable", "glue:GetTables"]
        resources = concat([var.catalog_arn], values(var.database_arns), values(var.table_arn_patterns))
      },
      { actions = ["s3:GetObject"], resources = [for folder in values(local.folder) : "${folder}/*"] },
    ])

    discovery = concat(local.raise_alerts, [
      local.look_into_schemas,
      { actions = ["s3:GetObject", "s3:PutObject"], resources = ["${var.schema_bucket_arn}/discovery/*"] },
      {
        actions   = ["glue:GetTable", "glue:UpdateTable"]
        resources = [var.catalog_arn, var.database_arns["ops"], "${local.glue["ops"]}/topic_registry"]
      },
      { actions = local.change_objects, resources = ["${local.folder["ops"]}/topic_registry/*"] },
    ])
  }
}
