# The functions: one table says how each of them runs. What each may do is in access.tf.

data "aws_partition" "current" {}

data "aws_region" "current" {}

data "aws_caller_identity" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.name

  # What all functions are told, and what those that read or write the lake are told beside it. Functions refuse a
  # variable that is there and says nothing, so one without a value is left out.
  told_all  = { LEAN_OPS_PROJECT = var.project_name, LEAN_OPS_ENVIRONMENT = var.environment, LEAN_OPS_DATABASE_PREFIX = var.database_prefix }
  told_lake = { LEAN_OPS_WAREHOUSE = var.warehouse }
  # The key itself stays in its secret: who judges schemas only asks whether there is one, and jobs read it there.
  told_schemas = { LEAN_OPS_SCHEMA_BUCKET = var.schema_bucket_name, LEAN_OPS_PII_KEY_SECRET_ARN = var.pii_key_secret_arn }
  told_alerts  = { LEAN_OPS_ALERT_TOPIC_ARN = var.alert_topic_arn }

  # timeout is in seconds, memory and storage in MB; memory also decides how much of a processor there is, and below
  # 512 MB most of a cold start is waiting for it. Those with `retries` are called without anybody waiting for an answer.
  functions_always = {
    sqs_processor = {
      description = "A topic's messages into the Firehose stream, refused ones to the dead letter queue"
      timeout     = 60 # a sixth of the queues' visibility; nine seconds of it are kept for an attempt that hangs
      memory      = 512
      told        = { LEAN_OPS_DELIVERY_STREAM = var.stream_name, LEAN_OPS_ARCHIVE_BUCKET = var.iceberg_bucket_name }
      decrypts    = ["dynamodb", "s3", "sqs"]
      encrypts    = ["s3", "sqs"]
    }
    firehose_transform = {
      description = "Routes Firehose's records to their RAW tables"
      timeout     = 120 # a call has 1 MB of records, which takes seconds; Firehose itself waits five minutes at most
      memory      = 512
    }
    dlq_processor = {
      description = "Archives, tracks and books dead letters"
      image       = var.lake_image_uri
      timeout     = 300 # a hundred letters with large bodies, and a commit that others may be faster at
      memory      = 1024
      told        = merge(local.told_lake, local.told_alerts, { LEAN_OPS_ARCHIVE_BUCKET = var.iceberg_bucket_name })
      decrypts    = ["dynamodb", "s3", "sns", "sqs"]
      encrypts    = ["s3", "sns"]
    }
    circuit_breaker = {
      description = "Turns a topic's queue off, on trial and on"
      image       = var.lake_image_uri
      timeout     = 120 # a question for each of 700 topics takes ten seconds; two calls at once are harmless
      memory      = 1024
      told        = merge(local.told_lake, local.told_alerts)
      decrypts    = ["dynamodb", "s3", "sns"]
      encrypts    = ["s3", "sns"]
      retries     = 0     # the next minute's call is the retry
      told_failed = false # else a fault that stays would be told each minute; the alarm on errors tells it once
    }
    schema_validator = {
      description = "Judges an uploaded schema: active, or failed with its reasons"
      image       = var.lake_image_uri
      timeout     = 240 # below the five minutes of the topic's lock, so that nobody outlives it
      memory      = 1024
      told        = merge(local.told_lake, local.told_schemas)
      decrypts    = ["dynamodb", "s3"]
      encrypts    = ["s3"]
      retries     = 2
    }
    fetch_active_topics = {
      description = "The topics whose gate is open, in groups"
      timeout     = 60 # a scan of some hundred small items, and patience while DynamoDB is busy
      memory      = 512
      told        = { LEAN_OPS_GROUP_SIZE = tostring(var.group_size) }
      decrypts    = ["dynamodb"]
    }
    check_schema = {
      description = "Gates of a group, and what is new by snapshots"
      timeout     = 120 # up to 200 topics, three metadata files of each, sixteen at a time
      memory      = 1024
      decrypts    = ["dynamodb", "s3"]
    }
    ensure_table = {
      description = "RAW, Standardized and shared tables"
      image       = var.lake_image_uri
      timeout     = 900 # two new tables of each of a hundred topics, a second or two each
      memory      = 1024
      told        = local.told_lake
      decrypts    = ["s3"]
      encrypts    = ["s3"]
    }
    get_all_checkpoints = {
      description = "How far each hop has read"
      timeout     = 60
      memory      = 512
      decrypts    = ["dynamodb"]
    }
    health = {
      description = "The parts, half done schemas, what waits or drifts, and whether the books balance"
      image       = var.lake_image_uri
      timeout     = 900 # as long as a function may take: it goes through the books of all topics
      memory      = 2048
      storage     = 4096 # copies of the ledger's files
      told        = merge(local.told_lake, local.told_schemas, local.told_alerts)
      decrypts    = ["dynamodb", "s3", "sns"]
      encrypts    = ["s3", "sns"]
      retries     = 1
    }
  }
  functions_if_asked = {
    discovery = {
      description = "Looks for new Pub/Sub topics"
      image       = var.discovery_image_uri
      timeout     = 300
      memory      = 1024
      told = merge(local.told_lake, local.told_alerts, var.discovery_environment, {
        LEAN_OPS_SCHEMA_BUCKET      = var.schema_bucket_name
        LEAN_OPS_BRIDGE_GCP_PROJECT = var.pubsub_project
      })
      decrypts = ["s3", "sns"]
      encrypts = ["s3", "sns"]
      retries  = 2
    }
  }
  functions = {
    for function, how in merge(local.functions_always, { for function, how in local.functions_if_asked : function => how if var.pubsub_project != null }) :
    function => {
      name        = "${var.name}-${replace(function, "_", "-")}"
      description = how.description
      zip         = contains(keys(how), "image") ? null : "${var.lambda_zip_dir}/${function}.zip"
      image       = try(how.image, null)
      handler     = "lean_ops.entrypoints.lambdas.${function}.handler"
      timeout     = how.timeout
      memory      = how.memory
      storage     = try(how.storage, 512)
      told        = { for key, value in merge(local.told_all, try(how.told, {})) : key => value if value != null && value != "" }
      decrypts    = try(how.decrypts, [])
      encrypts    = try(how.encrypts, [])
      retries     = try(how.retries, null)
      told_failed = try(how.retries, null) != null && try(how.told_failed, true)
    }
  }
}

resource "aws_cloudwatch_log_group" "function" {
  #checkov:skip=CKV_AWS_338:How long logs are kept is the environment's choice; the ledger in the lake is kept for years.
  for_each = local.functions

  name              = "/aws/lambda/${each.value.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_lambda_function" "this" {
  #checkov:skip=CKV_AWS_115:Calls are kept for functions by reserved_concurrency; by default none, because a new account has too few to divide.
  #checkov:skip=CKV_AWS_116:Failed asynchronous calls go to the alert topic (aws_lambda_function_event_invoke_config); the others have a caller, or a queue that keeps the message.
  #checkov:skip=CKV_AWS_117:They only talk to services of AWS (discovery to Google's, too), which need no network of ours.
  #checkov:skip=CKV_AWS_272:Zips are the same bytes from the same commit and are checked by their hash; images are named by their digest.
  for_each = local.functions

  function_name                  = each.value.name
  description                    = each.value.description
  role                           = aws_iam_role.function[each.key].arn
  package_type                   = each.value.zip == null ? "Image" : "Zip"
  filename                       = each.value.zip
  source_code_hash               = each.value.zip == null ? null : try(filebase64sha256(each.value.zip), null)
  image_uri                      = each.value.image
  runtime                        = each.value.zip == null ? null : "python3.13"
  handler                        = each.value.zip == null ? null : each.value.handler
  architectures                  = [var.lambda_architecture]
  timeout                        = each.value.timeout
  memory_size                    = each.value.memory
  reserved_concurrent_executions = lookup(var.reserved_concurrency, each.key, -1)
  kms_key_arn                    = var.kms_key_arn
  tags                           = var.tags

  dynamic "image_config" {
    for_each = each.value.zip == null ? [each.value.handler] : []

    content {
      command = [image_config.value]
    }
  }

  ephemeral_storage {
    size = each.value.storage
  }

  environment {
    variables = each.value.told
  }

  tracing_config {
    mode = "Active"
  }

  lifecycle {
    precondition {
      condition     = each.value.zip == null || try(fileexists(each.value.zip), false)
      error_message = "There is no ${coalesce(each.value.zip, "zip")}: `make lambdas` builds the functions' zips."
    }

    precondition {
      condition     = each.value.zip != null || try(length(each.value.image), 0) > 0
      error_message = "${each.key} needs an image: build deploy/lambdas/Dockerfile and give lake_image_uri, or discovery_image_uri with pubsub_project."
    }

    precondition {
      condition     = var.name == "${var.project_name}-${var.environment}" && alltrue([for short, full in var.table_names : full == "${var.name}-${short}"])
      error_message = "Functions find tables and queues by project and environment, so all names must begin with ${var.project_name}-${var.environment}."
    }
  }

  # Rights before the function, so that its first call has them; its log group too, else Lambda makes one of its own.
  depends_on = [aws_iam_role_policy.function, aws_cloudwatch_log_group.function]
}

resource "aws_lambda_function_event_invoke_config" "this" {
  for_each = { for function, how in local.functions : function => how if how.retries != null }

  function_name          = aws_lambda_function.this[each.key].function_name
  maximum_retry_attempts = each.value.retries
  # A look at how things are is of no use an hour later; an uploaded schema waits, and `health` finds it if this fails.
  maximum_event_age_in_seconds = each.key == "schema_validator" ? 21600 : 3600

  dynamic "destination_config" {
    for_each = each.value.told_failed ? [var.alert_topic_arn] : []

    content {
      on_failure {
        destination = destination_config.value
      }
    }
  }
}
