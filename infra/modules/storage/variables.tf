variable "name" {
  description = "What every name begins with: project and environment, such as lean-ops-dev."
  type        = string
}

variable "iceberg_bucket" {
  description = "The bucket of the lake: warehouse/, dlq-archive/, oversized/, firehose-errors/ and artifacts/."
  type        = string
}

variable "schema_bucket" {
  description = "The bucket of schemas/ and discovery/; a bucket that is given may be the lake's."
  type        = string
}

variable "create_buckets" {
  description = "Whether the two buckets are made here. Buckets that are given are not changed, but for their notification."
  type        = bool
  default     = false
}

variable "manage_schema_bucket_notification" {
  description = "Whether the schema bucket's notification is set here; it takes the place of all that the bucket has. If false, turn EventBridge on for it by other means."
  type        = bool
  default     = true
}

variable "access_log_bucket" {
  description = "A bucket for the access logs of the buckets that are made here; null for none."
  type        = string
  default     = null
}

variable "kms_key_arn" {
  description = "The key that everything is encrypted with; null makes one. A given key must let cloudwatch.amazonaws.com, events.amazonaws.com (without conditions) and logs.REGION.amazonaws.com use it, or alarms and logs fail."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", var.kms_key_arn))
    error_message = "kms_key_arn is the ARN of a key; an alias can't stand in a policy."
  }
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}
