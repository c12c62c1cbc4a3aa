# The modules and who is told what by whom; nothing else.

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

locals {
  name = "${var.project_name}-${var.environment}"
  # The stream calls a function to route its records, and another function writes to it. So one of the two must be known
  # by its name before it is there.
  stream_name = "${local.name}-raw"
  stream_arn  = "arn:${data.aws_partition.current.partition}:firehose:${var.region}:${data.aws_caller_identity.current.account_id}:deliverystream/${local.stream_name}"
}

module "storage" {
  source = "./modules/storage"

  name                              = local.name
  iceberg_bucket                    = var.iceberg_bucket
  schema_bucket                     = var.schema_bucket
  create_buckets                    = var.create_buckets
  manage_schema_bucket_notification = var.manage_schema_bucket_notification
  access_log_bucket                 = var.access_log_bucket
  kms_key_arn                       = var.kms_key_arn
  tags                              = var.tags
}

module "state" {
  source = "./modules/state"

  name                = local.name
  kms_key_arn         = module.storage.kms_key_arn
  deletion_protection = var.deletion_protection
  tags                = var.tags
}

module "catalog" {
  source = "./modules/catalog"

  name            = local.name
  database_prefix = var.database_prefix
  warehouse       = module.storage.warehouse
  tags            = var.tags
}

module "messaging" {
  source = "./modules/messaging"

  name               = local.name
  topics             = var.topics
  kms_key_arn        = module.storage.kms_key_arn
  raise_message_size = var.raise_message_size
  tags               = var.tags
}

module "compute" {
  source = "./modules/compute"

  name         = local.name
  project_name = var.project_name
  environment  = var.environment
  topics       = var.topics

  kms_key_arn         = module.storage.kms_key_arn
  iceberg_bucket_name = module.storage.iceberg_bucket_name
  iceberg_bucket_arn  = module.storage.iceberg_bucket_arn
  schema_bucket_name  = module.storage.schema_bucket_name
  schema_bucket_arn   = module.storage.schema_bucket_arn
  warehouse           = module.storage.warehouse

  table_names = module.state.table_names
  table_arns  = module.state.table_arns

  database_prefix    = var.database_prefix
  database_names     = module.catalog.database_names
  database_arns      = module.catalog.database_arns
  table_arn_patterns = module.catalog.table_arn_patterns
  catalog_arn        = module.catalog.catalog_arn

  queue_arns      = module.messaging.queue_arns
  dlq_arn         = module.messaging.dlq_arn
  stream_name     = local.stream_name
  stream_arn      = local.stream_arn
  alert_topic_arn = module.observability.alert_topic_arn

  lambda_zip_dir        = var.lambda_zip_dir
  lambda_architecture   = var.lambda_architecture
  lake_image_uri        = var.lake_image_uri
  discovery_image_uri   = var.discovery_image_uri
  discovery_environment = var.discovery_environment
  pubsub_project        = var.pubsub_project
  topic_concurrency     = var.topic_concurrency
  reserved_concurrency  = var.reserved_concurrency
  group_size            = var.group_size
  pii_key_secret_arn    = var.pii_key_secret_arn

  artifact_version    = var.artifact_version
  glue_python_modules = var.glue_python_modules
  glue_version        = var.glue_version
  glue_worker_type    = var.glue_worker_type
  glue_workers        = var.glue_workers
  map_concurrency     = var.map_concurrency

  log_retention_days = var.log_retention_days
  tags               = var.tags
}

module "ingestion" {
  source = "./modules/ingestion"

  name                   = local.name
  kms_key_arn            = module.storage.kms_key_arn
  iceberg_bucket_arn     = module.storage.iceberg_bucket_arn
  catalog_arn            = module.catalog.catalog_arn
  raw_database_name      = module.catalog.database_names["raw"]
  raw_database_arn       = module.catalog.database_arns["raw"]
  raw_table_arn_pattern  = module.catalog.table_arn_patterns["raw"]
  transform_function_arn = module.compute.function_arns["firehose_transform"]
  log_retention_days     = var.log_retention_days
  tags                   = var.tags
}

module "orchestration" {
  source = "./modules/orchestration"

  name                = local.name
  kms_key_arn         = module.storage.kms_key_arn
  function_arns       = module.compute.function_arns
  glue_job_names      = module.compute.glue_job_names
  glue_job_arns       = module.compute.glue_job_arns
  alert_topic_arn     = module.observability.alert_topic_arn
  schema_bucket_name  = module.storage.schema_bucket_name
  map_concurrency     = var.map_concurrency
  schedules           = var.schedules
  schedules_enabled   = var.schedules_enabled
  maintenance_enabled = var.maintenance_enabled
  log_retention_days  = var.log_retention_days
  tags                = var.tags
}

module "observability" {
  source = "./modules/observability"

  name               = local.name
  kms_key_arn        = module.storage.kms_key_arn
  function_names     = module.compute.function_names
  glue_job_names     = module.compute.glue_job_names
  state_machine_arns = module.orchestration.state_machine_arns
  stream_name        = module.ingestion.stream_name
  dlq_name           = module.messaging.dlq_name
  queue_names        = module.messaging.queue_names
  table_names        = module.state.table_names
  alert_emails       = var.alert_emails
  schema_bucket_name = module.storage.schema_bucket_name
  schedules_enabled  = var.schedules_enabled
  tags               = var.tags
}
