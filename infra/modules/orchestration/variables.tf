variable "name" {
  description = "What every resource's name begins with: project and environment, such as lean-ops-dev."
  type        = string
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}

variable "kms_key_arn" {
  description = "The key that executions and logs are encrypted with, and with it what the machines send to the alert topic."
  type        = string
}

variable "function_arns" {
  description = "Functions' ARNs by their short names; discovery may be missing."
  type        = map(string)

  validation {
    condition = length(setsubtract(
      ["fetch_active_topics", "check_schema", "ensure_table", "get_all_checkpoints", "health", "schema_validator", "circuit_breaker"],
      keys(var.function_arns),
    )) == 0
    error_message = "The machines and schedules need fetch_active_topics, check_schema, ensure_table, get_all_checkpoints, health, schema_validator and circuit_breaker."
  }
}

variable "glue_job_names" {
  description = "Jobs' names: standardized, curated, rebuild, maintenance."
  type        = map(string)
}

variable "glue_job_arns" {
  description = "Their ARNs."
  type        = map(string)
}

variable "alert_topic_arn" {
  description = "The SNS topic of alerts."
  type        = string
}

variable "schema_bucket_name" {
  description = "The bucket with schemas/, which tells EventBridge of new objects."
  type        = string
}

variable "map_concurrency" {
  description = "Groups of topics that the master works on at a time."
  type        = number
  default     = 30

  validation {
    condition     = var.map_concurrency >= 1 && var.map_concurrency <= 1000 && floor(var.map_concurrency) == var.map_concurrency
    error_message = "Give 1 to 1000: to a Distributed Map 0 means as many as it likes, which is as many Glue jobs."
  }
}

variable "schedules" {
  description = "When things are started, as EventBridge Scheduler writes it; times are UTC."
  type = object({
    run                = optional(string, "rate(15 minutes)")
    daily_maintenance  = optional(string, "cron(0 2 * * ? *)")
    weekly_maintenance = optional(string, "cron(0 4 ? * SUN *)")
    reconcile          = optional(string, "cron(0 6 * * ? *)")
    watch              = optional(string, "rate(15 minutes)")
    discovery          = optional(string, "cron(30 5 * * ? *)")
    circuit_breaker    = optional(string, "rate(1 minute)")
  })
  default = {}

  validation {
    condition     = alltrue([for expression in values(var.schedules) : can(regex("^(rate|cron)\\(.+\\)$", expression))])
    error_message = "A schedule is rate(...) or cron(...)."
  }
}

variable "maintenance_enabled" {
  description = "Whether the schedules start maintenance, too. Off until its job is part of the artifacts."
  type        = bool
  default     = false
}

variable "schedules_enabled" {
  description = "Whether the schedules start anything; without them everything is started by hand."
  type        = bool
  default     = true
}

variable "log_level" {
  description = "What the machines log: ALL, ERROR, FATAL or OFF."
  type        = string
  default     = "ERROR"

  validation {
    condition     = contains(["ALL", "ERROR", "FATAL", "OFF"], var.log_level)
    error_message = "The level must be ALL, ERROR, FATAL or OFF."
  }
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 30
}
