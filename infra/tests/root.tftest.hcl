# Mocked: that the modules fit together, and that one list of topics is all there is to change.

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
  mock_data "aws_s3_bucket" {
    defaults = { id = "lake-bucket", arn = "arn:aws:s3:::lake-bucket" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::000000000000:role/mock" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:eu-central-1:000000000000:key/mock", key_id = "mock" }
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
  mock_resource "aws_glue_job" {
    defaults = { arn = "arn:aws:glue:eu-central-1:000000000000:job/mock" }
  }
  mock_resource "aws_glue_catalog_database" {
    defaults = { arn = "arn:aws:glue:eu-central-1:000000000000:database/mock" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:eu-central-1:000000000000:mock", url = "https://sqs.eu-central-1.amazonaws.com/000000000000/mock" }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-central-1:000000000000:mock" }
  }
  mock_resource "aws_dynamodb_table" {
    defaults = { arn = "arn:aws:dynamodb:eu-central-1:000000000000:table/mock" }
  }
  mock_resource "aws_sfn_state_machine" {
    defaults = { arn = "arn:aws:states:eu-central-1:000000000000:stateMachine:mock" }
  }
  mock_resource "aws_scheduler_schedule_group" {
    defaults = { arn = "arn:aws:scheduler:eu-central-1:000000000000:schedule-group/mock" }
  }
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:eu-central-1:000000000000:rule/mock" }
  }
  mock_resource "aws_kinesis_firehose_delivery_stream" {
    defaults = { arn = "arn:aws:firehose:eu-central-1:000000000000:deliverystream/mock" }
  }
}

variables {
  environment        = "test"
  region             = "eu-central-1"
  topics             = ["events", "orders", "payments"]
  iceberg_bucket     = "lake-bucket"
  schema_bucket      = "schema-bucket"
  lambda_zip_dir     = "modules/compute/tests/zips"
  lake_image_uri     = "example.invalid/lake@sha256:0"
  artifact_version   = "0.1.0"
  raise_message_size = false # by the AWS CLI, which knows nothing of mocks
}

run "everything_fits_together" {
  assert {
    condition     = output.name == "lean-ops-test" && output.stream_name == "lean-ops-test-raw"
    error_message = "Functions and stream know each other by these names."
  }

  assert {
    condition     = toset(keys(output.queue_urls)) == toset(["events", "orders", "payments"]) && toset(keys(output.event_source_mapping_uuids)) == toset(["events", "orders", "payments", "dlq"])
    error_message = "Each topic has a queue and somebody who reads it, and so have the dead letters."
  }

  assert {
    condition     = output.function_names["sqs_processor"] == "lean-ops-test-sqs-processor" && !contains(keys(output.function_names), "discovery")
    error_message = "The circuit breaker looks for this name; nothing is discovered without a project."
  }

  assert {
    condition     = toset(keys(output.state_machine_arns)) == toset(["master", "rebuilder", "maintenance"])
    error_message = "There are three state machines."
  }

  assert {
    condition     = output.artifacts == "s3://lake-bucket/artifacts/0.1.0" && output.warehouse == "s3://lake-bucket/warehouse"
    error_message = "Artifacts and tables lie in the given bucket."
  }
}

run "adding_a_topic_is_adding_its_name" {
  variables {
    topics = ["events", "orders", "payments", "refunds"]
  }

  assert {
    condition     = contains(keys(output.queue_urls), "refunds") && contains(keys(output.event_source_mapping_uuids), "refunds")
    error_message = "Its queue and its mapping must follow from its name."
  }
}

run "two_environments_can_share_a_catalog" {
  variables {
    database_prefix = "test_"
  }

  assert {
    condition     = output.database_names == { raw = "test_iceberg_raw_db", standardized = "test_iceberg_standardized_db", curated = "test_iceberg_curated_db", ops = "test_ops_db" }
    error_message = "The prefix begins the name of every database."
  }
}

run "an_environment_whose_names_would_begin_like_anothers_is_refused" {
  command = plan

  variables {
    environment = "dev-2"
  }

  expect_failures = [var.environment]
}
