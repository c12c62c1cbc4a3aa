# The jobs: the same code that `lean-ops run` is, in four starting points. Their scripts, the wheel and the jar are
# uploaded by `make upload`, because they are built; the settings file is made here, because Terraform knows the names.

locals {
  artifacts_key = "artifacts/${var.artifact_version}"
  artifacts     = "s3://${var.iceberg_bucket_name}/${local.artifacts_key}"

  # timeout is in minutes. Runs at a time: what the state machine starts at once, and some more for what is just ending
  # or was started by a person.
  jobs = {
    standardized = { description = "RAW to Standardized for a group of topics", timeout = 120, runs = var.map_concurrency + 5 }
    curated      = { description = "Standardized to Curated for a group of topics", timeout = 120, runs = var.map_concurrency + 5 }
    rebuild      = { description = "A topic's tables anew from RAW, beside the live ones", timeout = 1440, runs = 5 }
    maintenance  = { description = "Expiry, compaction and orphan files of tables that need it", timeout = 240, runs = 10 }
  }

  settings = {
    for key, value in {
      project            = var.project_name
      environment        = var.environment
      region             = local.region
      warehouse          = var.warehouse
      schema_bucket      = var.schema_bucket_name
      archive_bucket     = var.iceberg_bucket_name
      delivery_stream    = var.stream_name
      alert_topic_arn    = var.alert_topic_arn
      database_prefix    = var.database_prefix
      pii_key_secret_arn = var.pii_key_secret_arn
    } : key => value if value != null
  }
}

resource "aws_s3_object" "settings" {
  bucket                 = var.iceberg_bucket_name
  key                    = "${local.artifacts_key}/lean-ops.toml"
  content                = join("", [for key, value in local.settings : "${key} = ${jsonencode(value)}\n"]) # a JSON text is a TOML text
  content_type           = "application/toml"
  server_side_encryption = "aws:kms"
  kms_key_id             = var.kms_key_arn
  tags                   = var.tags
}

resource "aws_cloudwatch_log_group" "jobs" {
  #checkov:skip=CKV_AWS_338:How long logs are kept is the environment's choice; the ledger in the lake is kept for years.
  name              = "/aws-glue/${var.name}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_glue_security_configuration" "this" {
  name = var.name

  encryption_configuration {
    s3_encryption {
      s3_encryption_mode = "SSE-KMS"
      kms_key_arn        = var.kms_key_arn
    }

    cloudwatch_encryption {
      cloudwatch_encryption_mode = "SSE-KMS"
      kms_key_arn                = var.kms_key_arn
    }

    job_bookmarks_encryption {
      job_bookmarks_encryption_mode = "CSE-KMS"
      kms_key_arn                   = var.kms_key_arn
    }
  }
}

resource "aws_glue_job" "this" {
  for_each = local.jobs

  name                   = "${var.name}-${each.key}"
  description            = each.value.description
  role_arn               = aws_iam_role.glue.arn
  glue_version           = var.glue_version
  worker_type            = var.glue_worker_type
  number_of_workers      = var.glue_workers
  timeout                = each.value.timeout
  execution_class        = "STANDARD" # the cheaper one may wait long for its machines, and a run has 15 minutes
  max_retries            = 0          # the state machine retries what is transient, and tells of the rest
  security_configuration = aws_glue_security_configuration.this.name
  tags                   = var.tags

  command {
    name            = "glueetl"
    python_version  = "3"
    script_location = "${local.artifacts}/${each.key}.py"
  }

  execution_property {
    max_concurrent_runs = each.value.runs
  }

  default_arguments = {
    # Spark and Iceberg are Glue's own; the wheel asks for neither. Pinned packages come first, so that pip finds them.
    "--additional-python-modules"        = join(",", concat(var.glue_python_modules, ["${local.artifacts}/lean_ops-${var.artifact_version}-py3-none-any.whl"]))
    "--extra-jars"                       = "${local.artifacts}/lean-ops-kernel.jar"
    "--extra-files"                      = "s3://${var.iceberg_bucket_name}/${aws_s3_object.settings.key}"
    "--datalake-formats"                 = "iceberg"
    "--enable-metrics"                   = "true"
    "--enable-continuous-cloudwatch-log" = "true"
    "--continuous-log-logGroup"          = aws_cloudwatch_log_group.jobs.name
    "--job-bookmark-option"              = "job-bookmark-disable" # how far a hop has read stands in its table's commits
    "--profile"                          = "aws"
    "--topics"                           = "[]" # each run names its own
  }

  depends_on = [aws_iam_role_policy.glue]
}
