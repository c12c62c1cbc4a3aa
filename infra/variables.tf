variable "project_name" {
  description = "First part of the name of every resource."
  type        = string
  default     = "lean-ops"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.project_name))
    error_message = "The project's name must be 2 to 20 lower case letters, digits and '-': names of roles and functions end at 64."
  }
}

variable "environment" {
  description = "Second part of it: dev, staging, prod or any short name."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9]{1,11}$", var.environment))
    error_message = "The environment must be 2 to 12 lower case letters and digits, without '-': rights are given by what names begin with."
  }
}

variable "region" {
  description = "The AWS region."
  type        = string
}

variable "tags" {
  description = "More tags for every resource."
  type        = map(string)
  default     = {}
}

# topics

variable "topics" {
  description = "The topics. Adding a topic is adding its name: its queue, mapping and tables follow. Discovery writes them to topics.auto.tfvars.json."
  type        = list(string)
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

# storage

variable "iceberg_bucket" {
  description = "The bucket for tables, archives and artifacts."
  type        = string
}

variable "schema_bucket" {
  description = "The bucket for schemas."
  type        = string
}

variable "create_buckets" {
  description = "Whether the buckets are made here; by default they are given."
  type        = bool
  default     = false
}

variable "manage_schema_bucket_notification" {
  description = "Whether the schema bucket is made to tell EventBridge of new objects; false if somebody else has seen to it."
  type        = bool
  default     = true
}

variable "access_log_bucket" {
  description = "A bucket for the access logs of buckets that are made here; null for none."
  type        = string
  default     = null
}

variable "deletion_protection" {
  description = "Whether the state's tables refuse to be deleted. Turn it off, and apply, before a destroy."
  type        = bool
  default     = true
}

variable "database_prefix" {
  description = "Separates environments that share an account's catalog, such as dev_; empty for none."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[a-z0-9_]{0,40}$", var.database_prefix))
    error_message = "The prefix must be at most 40 lower case letters, digits and '_'."
  }
}

variable "kms_key_arn" {
  description = "The key that everything is encrypted with; null makes one. What its policy must allow is said in modules/storage."
  type        = string
  default     = null
}

variable "raise_message_size" {
  description = "Whether queues are raised to messages of 1 MiB by the AWS CLI, as modules/messaging explains."
  type        = bool
  default     = true
}

# functions

variable "lambda_zip_dir" {
  description = "Folder of the functions' zips, as `make lambdas` builds them."
  type        = string
  default     = "../build/lambdas"
}

variable "lambda_architecture" {
  description = "What the functions run on: x86_64 or arm64. Zips and images must be built for it."
  type        = string
  default     = "x86_64"
}

variable "lake_image_uri" {
  description = "The image of the functions that write Iceberg tables; best named by its digest."
  type        = string
}

variable "discovery_image_uri" {
  description = "The image of the discovery of topics. Needed with pubsub_project only."
  type        = string
  default     = null
}

variable "topic_concurrency" {
  description = "How many calls may work on one topic's queue at a time; null for no limit."
  type        = number
  default     = 5
}

variable "reserved_concurrency" {
  description = "Calls at a time that are kept for a function, by its short name such as sqs_processor."
  type        = map(number)
  default     = {}
}

variable "pii_key_secret_arn" {
  description = "The secret with the key of `pii: hash`; null: schemas that hash are refused."
  type        = string
  default     = null
}

# jobs

variable "artifact_version" {
  description = "The wheel's version: scripts, wheel and jar are uploaded to artifacts/{version}/ of the iceberg bucket."
  type        = string
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
}

variable "glue_workers" {
  description = "Machines of one job run, its driver among them."
  type        = number
  default     = 2
}

variable "group_size" {
  description = "Topics that one job takes."
  type        = number
  default     = 25
}

variable "map_concurrency" {
  description = "Groups of topics that are worked on at a time."
  type        = number
  default     = 30
}

# operations

variable "schedules" {
  description = "When things are started; what is left out keeps the time that modules/orchestration has for it."
  type = object({
    run                = optional(string)
    daily_maintenance  = optional(string)
    weekly_maintenance = optional(string)
    reconcile          = optional(string)
    watch              = optional(string)
    discovery          = optional(string)
    circuit_breaker    = optional(string)
  })
  default = {}
}

variable "maintenance_enabled" {
  description = "Whether the schedules start maintenance, too. Off until its job is part of the artifacts."
  type        = bool
  default     = false
}

variable "schedules_enabled" {
  description = "Whether the schedules start anything."
  type        = bool
  default     = true
}

variable "alert_emails" {
  description = "Who gets alerts by mail; each address has to confirm."
  type        = list(string)
  default     = []
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 30
}
