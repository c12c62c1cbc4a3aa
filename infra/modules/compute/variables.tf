variable "name" {
  description = "What every resource's name begins with: project and environment, such as lean-ops-dev."
  type        = string
}

variable "project_name" {
  description = "The project, as functions and jobs are told it."
  type        = string
}

variable "environment" {
  description = "The environment, as functions and jobs are told it."
  type        = string
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}

variable "kms_key_arn" {
  description = "The key that buckets, tables, queues, the alert topic, logs and functions' settings are encrypted with."
  type        = string
}

variable "topics" {
  description = "The topics. Each has a queue in queue_arns."
  type        = list(string)
}

# state

variable "table_names" {
  description = "DynamoDB tables by their short names."
  type        = map(string)
}

variable "table_arns" {
  description = "ARNs of the DynamoDB tables by their short names."
  type        = map(string)
}

# storage

variable "iceberg_bucket_name" {
  description = "The bucket with warehouse/, dlq-archive/, oversized/ and artifacts/."
  type        = string
}

variable "iceberg_bucket_arn" {
  description = "Its ARN."
  type        = string
}

variable "schema_bucket_name" {
  description = "The bucket with schemas/ and discovery/."
  type        = string
}

variable "schema_bucket_arn" {
  description = "Its ARN."
  type        = string
}

variable "warehouse" {
  description = "Where the tables lie, s3://BUCKET/PREFIX in the iceberg bucket."
  type        = string

  validation {
    condition     = can(regex("^s3://[^/]+/.*[^/]$", var.warehouse))
    error_message = "The warehouse must be s3://BUCKET/PREFIX without a slash at its end: rights are given by its prefix."
  }
}

# catalog

variable "database_prefix" {
  description = "What separates environments that share a catalog; empty for none."
  type        = string
  default     = ""
}

variable "database_names" {
  description = "Glue databases by zone: raw, standardized, curated, ops."
  type        = map(string)
}

variable "database_arns" {
  description = "ARNs of the databases by zone."
  type        = map(string)
}

variable "table_arn_patterns" {
  description = "ARN pattern of all tables of a database, by zone."
  type        = map(string)
}

variable "catalog_arn" {
  description = "ARN of the Glue Data Catalog."
  type        = string
}

# messaging and ingestion

variable "queue_arns" {
  description = "ARNs of the topics' queues, by topic."
  type        = map(string)
}

variable "dlq_arn" {
  description = "ARN of the dead letter queue."
  type        = string
}

variable "stream_name" {
  description = "The Firehose stream into RAW. A plain text: the stream calls one of these functions, another one writes to it."
  type        = string
}

variable "stream_arn" {
  description = "Its ARN, put together from its name for the same reason."
  type        = string
}

variable "alert_topic_arn" {
  description = "The SNS topic of alerts."
  type        = string
}

# functions

variable "lambda_zip_dir" {
  description = "Folder of the functions' zips, as `make lambdas` builds them."
  type        = string
}

variable "lambda_architecture" {
  description = "What the functions run on; zips and images must be built for it."
  type        = string
  default     = "x86_64"

  validation {
    condition     = contains(["x86_64", "arm64"], var.lambda_architecture)
    error_message = "The architecture must be x86_64 or arm64."
  }
}

variable "lake_image_uri" {
  description = "The image of the functions that write Iceberg tables; best named by its digest."
  type        = string

  validation {
    condition     = length(var.lake_image_uri) > 0
    error_message = "Without an image most functions can't be made: build deploy/lambdas/Dockerfile and name the image."
  }
}

variable "discovery_image_uri" {
  description = "The image of the discovery of topics. Needed with pubsub_project only."
  type        = string
  default     = null
}

variable "pubsub_project" {
  description = "The Google Cloud project whose topics are discovered; null: no discovery."
  type        = string
  default     = null
}

variable "discovery_environment" {
  description = "More environment variables for discovery, such as where its image keeps Google's credential configuration."
  type        = map(string)
  default     = {}
}

variable "group_size" {
  description = "Topics that one job of the state machine takes."
  type        = number
  default     = 25

  validation {
    condition     = var.group_size >= 1 && var.group_size <= 200 && floor(var.group_size) == var.group_size
    error_message = "A group has 1 to 200 topics: its check must fit into the 256 KiB that a state hands on."
  }
}

variable "reserved_concurrency" {
  description = "Calls at a time that are kept for a function, by its short name; others take from what the account has left."
  type        = map(number)
  default     = {}

  validation {
    condition     = alltrue([for calls in values(var.reserved_concurrency) : calls >= 1])
    error_message = "To keep no calls for a function is to turn it off: leave it out of the map instead."
  }
}

variable "topic_concurrency" {
  description = "How many calls of sqs_processor may work on one topic's queue at a time; null for no limit."
  type        = number
  default     = 5

  validation {
    condition     = var.topic_concurrency == null || try(var.topic_concurrency >= 2 && var.topic_concurrency <= 1000, false)
    error_message = "Lambda limits a queue to 2 calls at the least and 1000 at the most."
  }
}

variable "pii_key_secret_arn" {
  description = "The secret with the key of `pii: hash`; null: schemas that hash are refused."
  type        = string
  default     = null
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 30
}

# jobs

variable "artifact_version" {
  description = "The wheel's version: scripts, wheel and jar are in artifacts/{version}/ of the iceberg bucket."
  type        = string

  validation {
    condition     = can(regex("^[0-9]+(\\.[0-9]+)+[A-Za-z0-9.+_]*$", var.artifact_version))
    error_message = "The version must be the wheel's, such as 0.1.0: it is part of the wheel's file name."
  }
}

variable "glue_python_modules" {
  description = "Packages that the jobs need beside the wheel, each with its version; `make glue` writes the tested ones to modules.txt."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for module in var.glue_python_modules : can(regex("^[A-Za-z0-9._-]+==[^,\\s]+$", module))])
    error_message = "Each package must be named with its version, such as duckdb==2.0.0."
  }
}

variable "glue_version" {
  description = "Glue's version; 6.0 has the Spark and the Iceberg that the jobs are tested with."
  type        = string
  default     = "6.0"
}

variable "glue_worker_type" {
  description = "The jobs' machines."
  type        = string
  default     = "G.1X"

  validation {
    condition     = contains(["G.1X", "G.2X", "G.4X", "G.8X", "R.1X", "R.2X", "R.4X", "R.8X"], var.glue_worker_type)
    error_message = "Not a worker type that runs Spark 4 jobs: take G.1X to G.8X or R.1X to R.8X."
  }
}

variable "glue_workers" {
  description = "Machines of one job run, its driver among them."
  type        = number
  default     = 2

  validation {
    condition     = var.glue_workers >= 2
    error_message = "A job needs its driver and at least one worker."
  }
}

variable "map_concurrency" {
  description = "Groups that the state machine works on at a time; so many runs of a job are allowed, and some more."
  type        = number
  default     = 30
}
