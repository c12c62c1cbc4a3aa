variable "name" {
  description = "What every name begins with: project and environment, such as lean-ops-dev."
  type        = string

  validation {
    condition     = length(var.name) <= 50
    error_message = "The name of the stream's role ends in -raw-firehose and has at most 64 characters, so name has at most 50."
  }
}

variable "iceberg_bucket_arn" {
  description = "ARN of the lake's bucket."
  type        = string
}

variable "catalog_arn" {
  description = "ARN of the Glue Data Catalog."
  type        = string
}

variable "raw_database_name" {
  description = "Name of the database of RAW tables."
  type        = string
}

variable "raw_database_arn" {
  description = "ARN of the database of RAW tables."
  type        = string
}

variable "raw_table_arn_pattern" {
  description = "ARN pattern of the RAW tables."
  type        = string
}

variable "transform_function_arn" {
  description = "ARN of the function that routes records to their tables, without a version."
  type        = string
}

variable "kms_key_arn" {
  description = "The key that the stream, its undelivered records and its log are encrypted with."
  type        = string
}

variable "log_retention_days" {
  description = "How long the stream's log is kept."
  type        = number
  default     = 30
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}
