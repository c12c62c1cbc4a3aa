# Mocked: what is made, and with which settings. What the policies say is rendered and judged by
# tests/integration/infra/test_iam.py.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000" }
  }
  mock_data "aws_region" {
    defaults = { name = "eu-central-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::000000000000:role/mock" }
  }
  mock_resource "aws_lambda_function" {
    defaults = { arn = "arn:aws:lambda:eu-central-1:000000000000:function:mock" }
  }
  mock_resource "aws_lambda_invocation" {
    defaults = { result = "{\"ready\":[],\"failed\":[]}" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:000000000000:log-group:mock" }
  }
}

variables {
  name         = "lean-ops-test"
  project_name = "lean-ops"
  environment  = "test"
  kms_key_arn  = "arn:aws:kms:eu-central-1:000000000000:key/k"
  topics       = ["events", "orders"]
  table_names  = { for table in ["checkpoints", "locks", "schema_registry", "idempotency_keys", "error_tracker", "circuit_breaker"] : table => "lean-ops-test-${table}" }
  table_arns   = { for table in ["checkpoints", "locks", "schema_registry", "idempotency_keys", "error_tracker", "circuit_breaker"] : table => "arn:aws:dynamodb:eu-central-1:000000000000:table/lean-ops-test-${table}" }

  iceberg_bucket_name = "lake-bucket"
  iceberg_bucket_arn  = "arn:aws:s3:::lake-bucket"
  schema_bucket_name  = "schema-bucket"
  schema_bucket_arn   = "arn:aws:s3:::schema-bucket"
  warehouse           = "s3://lake-bucket/warehouse"

  database_names     = { raw = "iceberg_raw_db", standardized = "iceberg_standardized_db", curated = "iceberg_curated_db", ops = "ops_db" }
  database_arns      = { for zone in ["raw", "standardized", "curated", "ops"] : zone => "arn:aws:glue:eu-central-1:000000000000:database/${zone}" }
  table_arn_patterns = { for zone in ["raw", "standardized", "curated", "ops"] : zone => "arn:aws:glue:eu-central-1:000000000000:table/${zone}/*" }
  catalog_arn        = "arn:aws:glue:eu-central-1:000000000000:catalog"

  queue_arns      = { events = "arn:aws:sqs:eu-central-1:000000000000:lean-ops-test-events", orders = "arn:aws:sqs:eu-central-1:000000000000:lean-ops-test-orders" }
  dlq_arn         = "arn:aws:sqs:eu-central-1:000000000000:lean-ops-test-dlq"
  stream_name     = "lean-ops-test-raw"
  stream_arn      = "arn:aws:firehose:eu-central-1:000000000000:deliverystream/lean-ops-test-raw"
  alert_topic_arn = "arn:aws:sns:eu-central-1:000000000000:lean-ops-test-alerts"

  lambda_zip_dir      = "tests/zips"
  lake_image_uri      = "example.invalid/lake@sha256:0"
  discovery_image_uri = "example.invalid/discovery@sha256:0"
  pubsub_project      = "a-project"
  artifact_version    = "0.1.0"
}

run "functions" {
  assert {
    condition     = toset(keys(aws_lambda_function.this)) == toset(["sqs_processor", "firehose_transform", "dlq_processor", "circuit_breaker", "discovery", "schema_validator", "fetch_active_topics", "check_schema", "ensure_table", "get_all_checkpoints", "health"])
    error_message = "There must be exactly the eleven functions of deploy/lambdas/functions.toml."
  }

  assert {
    condition     = aws_lambda_function.this["sqs_processor"].function_name == "lean-ops-test-sqs-processor"
    error_message = "The circuit breaker looks for the function of exactly this name."
  }

  assert {
    condition     = aws_lambda_function.this["sqs_processor"].timeout == 60
    error_message = "The queues' visibility is six times a minute."
  }

  assert {
    condition     = aws_lambda_function.this["schema_validator"].timeout < 300
    error_message = "Who judges a schema must be done before its lock expires."
  }

  assert {
    condition     = aws_lambda_function.this["firehose_transform"].timeout <= 300
    error_message = "Firehose waits five minutes at most."
  }

  assert {
    condition     = [for function, made in aws_lambda_function.this : function if made.package_type == "Zip"] == ["check_schema", "fetch_active_topics", "firehose_transform", "get_all_checkpoints", "sqs_processor"]
    error_message = "Exactly these are zips; the others don't fit into one."
  }

  assert {
    condition     = aws_lambda_function.this["ensure_table"].image_config[0].command == tolist(["lean_ops.entrypoints.lambdas.ensure_table.handler"])
    error_message = "Functions of one image differ in the command."
  }

  assert {
    condition     = alltrue([for made in aws_lambda_function.this : made.kms_key_arn == var.kms_key_arn && made.tracing_config[0].mode == "Active"])
    error_message = "Settings are encrypted with our key, and calls are traced."
  }

  assert {
    condition     = alltrue([for group in aws_cloudwatch_log_group.function : group.retention_in_days == 30 && group.kms_key_id == var.kms_key_arn])
    error_message = "Logs are kept for a time that was chosen, and encrypted."
  }
}

run "settings" {
  assert {
    condition     = aws_lambda_function.this["sqs_processor"].environment[0].variables == tomap({ LEAN_OPS_PROJECT = "lean-ops", LEAN_OPS_ENVIRONMENT = "test", LEAN_OPS_DELIVERY_STREAM = "lean-ops-test-raw", LEAN_OPS_ARCHIVE_BUCKET = "lake-bucket" })
    error_message = "The processor is told these and nothing else: an empty prefix is no variable."
  }

  assert {
    condition     = aws_lambda_function.this["health"].environment[0].variables == tomap({ LEAN_OPS_PROJECT = "lean-ops", LEAN_OPS_ENVIRONMENT = "test", LEAN_OPS_WAREHOUSE = "s3://lake-bucket/warehouse", LEAN_OPS_SCHEMA_BUCKET = "schema-bucket", LEAN_OPS_ALERT_TOPIC_ARN = "arn:aws:sns:eu-central-1:000000000000:lean-ops-test-alerts" })
    error_message = "Without a secret nobody is told of a key."
  }

  assert {
    condition     = aws_lambda_function.this["discovery"].environment[0].variables["LEAN_OPS_BRIDGE_GCP_PROJECT"] == "a-project"
    error_message = "Discovery has to know where to look."
  }

  assert {
    condition     = aws_s3_object.settings.content == "alert_topic_arn = \"arn:aws:sns:eu-central-1:000000000000:lean-ops-test-alerts\"\narchive_bucket = \"lake-bucket\"\ndatabase_prefix = \"\"\ndelivery_stream = \"lean-ops-test-raw\"\nenvironment = \"test\"\nproject = \"lean-ops\"\nregion = \"eu-central-1\"\nschema_bucket = \"schema-bucket\"\nwarehouse = \"s3://lake-bucket/warehouse\"\n"
    error_message = "The jobs' settings must be what settings.py knows, and nothing else."
  }
}

run "a_prefix_and_a_secret_are_told" {
  variables {
    database_prefix    = "test_"
    pii_key_secret_arn = "arn:aws:secretsmanager:eu-central-1:000000000000:secret:pii"
  }

  assert {
    condition     = alltrue([for made in aws_lambda_function.this : made.environment[0].variables["LEAN_OPS_DATABASE_PREFIX"] == "test_"])
    error_message = "Every function must know which databases are its own."
  }

  assert {
    condition     = [for function, made in aws_lambda_function.this : function if contains(keys(made.environment[0].variables), "LEAN_OPS_PII_KEY_SECRET_ARN")] == ["health", "schema_validator"]
    error_message = "Only who judges schemas is told that there is a key."
  }

  assert {
    condition     = strcontains(aws_s3_object.settings.content, "pii_key_secret_arn = \"arn:aws:secretsmanager:eu-central-1:000000000000:secret:pii\"\n")
    error_message = "The jobs must be told where the key is."
  }
}

run "packages_of_the_jobs" {
  variables {
    glue_python_modules = ["duckdb==2.0.0", "pydantic==2.14.3"]
  }

  assert {
    condition     = aws_glue_job.this["standardized"].default_arguments["--additional-python-modules"] == "duckdb==2.0.0,pydantic==2.14.3,s3://lake-bucket/artifacts/0.1.0/lean_ops-0.1.0-py3-none-any.whl"
    error_message = "Pinned packages must come before the wheel that asks for them."
  }
}

run "a_package_without_a_version" {
  command = plan

  variables {
    glue_python_modules = ["duckdb"]
  }

  expect_failures = [var.glue_python_modules]
}

run "mappings" {
  assert {
    condition     = toset(keys(aws_lambda_event_source_mapping.topic)) == toset(["events", "orders"])
    error_message = "Each topic's queue must be read."
  }

  assert {
    condition     = alltrue([for mapping in merge(aws_lambda_event_source_mapping.topic, { dlq = aws_lambda_event_source_mapping.dlq }) : mapping.function_response_types == toset(["ReportBatchItemFailures"])])
    error_message = "Without it one failure brings all messages back."
  }

  assert {
    condition     = aws_lambda_event_source_mapping.dlq.batch_size == 100 && aws_lambda_event_source_mapping.dlq.maximum_batching_window_in_seconds == 30 && aws_lambda_event_source_mapping.dlq.scaling_config[0].maximum_concurrency == 2
    error_message = "Dead letters all go to one table: few calls with many letters."
  }

  assert {
    condition     = alltrue([for mapping in aws_lambda_event_source_mapping.topic : mapping.scaling_config[0].maximum_concurrency == 5])
    error_message = "One topic must not take the calls of all others."
  }
}

run "failed_asynchronous_calls_are_told" {
  assert {
    condition     = [for function, config in aws_lambda_function_event_invoke_config.this : function if length(config.destination_config) == 1] == ["discovery", "health", "schema_validator"]
    error_message = "Nobody else hears of a call that failed for good."
  }

  assert {
    condition     = aws_lambda_function_event_invoke_config.this["circuit_breaker"].maximum_retry_attempts == 0
    error_message = "The next minute's call is the retry."
  }
}

run "jobs" {
  assert {
    condition     = { for job, made in aws_glue_job.this : job => made.name } == { standardized = "lean-ops-test-standardized", curated = "lean-ops-test-curated", rebuild = "lean-ops-test-rebuild", maintenance = "lean-ops-test-maintenance" }
    error_message = "The state machines start jobs of these names."
  }

  assert {
    condition     = alltrue([for made in aws_glue_job.this : made.max_retries == 0 && made.glue_version == "6.0" && made.security_configuration == "lean-ops-test"])
    error_message = "The state machine retries; Glue 6.0 is what is tested."
  }

  assert {
    condition     = aws_glue_job.this["standardized"].execution_property[0].max_concurrent_runs > 30
    error_message = "All groups of the map must find room."
  }

  assert {
    condition     = aws_glue_job.this["curated"].command[0].script_location == "s3://lake-bucket/artifacts/0.1.0/curated.py" && aws_glue_job.this["curated"].default_arguments["--extra-files"] == "s3://lake-bucket/artifacts/0.1.0/lean-ops.toml" && aws_glue_job.this["curated"].default_arguments["--additional-python-modules"] == "s3://lake-bucket/artifacts/0.1.0/lean_ops-0.1.0-py3-none-any.whl"
    error_message = "`make upload` puts script and wheel there."
  }
}

run "tables_in_chunks_of_a_hundred" {
  variables {
    topics     = [for number in range(250) : format("t%03d", number)]
    queue_arns = { for number in range(250) : format("t%03d", number) => "arn:aws:sqs:eu-central-1:000000000000:q" }
  }

  assert {
    condition     = [for made in aws_lambda_invocation.ensure_table : length(jsondecode(made.input).topics)] == [100, 100, 50]
    error_message = "A call of ensure_table takes at most 200 topics, and a hundred fit into its time."
  }
}

run "without_topics_the_shared_tables_are_made" {
  variables {
    topics     = []
    queue_arns = {}
  }

  assert {
    condition     = [for made in aws_lambda_invocation.ensure_table : made.input] == [jsonencode({ topics = [] })]
    error_message = "The shared tables are needed before the first topic comes."
  }
}

run "no_project_no_discovery" {
  variables {
    pubsub_project      = null
    discovery_image_uri = null
  }

  assert {
    condition     = !contains(keys(aws_lambda_function.this), "discovery") && length(aws_lambda_function.this) == 10
    error_message = "Without a Google Cloud project there is nothing to discover."
  }
}

run "discovery_without_its_image_is_refused" {
  command = plan

  variables {
    discovery_image_uri = null
  }

  expect_failures = [aws_lambda_function.this]
}

run "a_missing_zip_is_told" {
  command = plan

  variables {
    lambda_zip_dir = "tests/nowhere"
  }

  expect_failures = [aws_lambda_function.this]
}

run "names_that_functions_would_not_find_are_refused" {
  command = plan

  variables {
    environment = "other"
  }

  expect_failures = [aws_lambda_function.this]
}

run "a_group_larger_than_a_state_can_hand_on_is_refused" {
  command = plan

  variables {
    group_size = 201
  }

  expect_failures = [var.group_size]
}
