variable "name" {
  description = "What every name begins with: project and environment, such as lean-ops-dev. The product's own metrics carry it, too."
  type        = string
}

variable "kms_key_arn" {
  description = "The key that alerts are encrypted with. It must let cloudwatch.amazonaws.com, and events.amazonaws.com without conditions, use it."
  type        = string
}

variable "function_names" {
  description = "Names of the functions by short name, such as sqs_processor."
  type        = map(string)
}

variable "glue_job_names" {
  description = "Names of the Glue jobs by short name: standardized, curated, rebuild, maintenance."
  type        = map(string)
}

variable "state_machine_arns" {
  description = "ARNs of the state machines by short name: master, rebuilder, maintenance."
  type        = map(string)
}

variable "stream_name" {
  description = "Name of the delivery stream."
  type        = string
}

variable "dlq_name" {
  description = "Name of the dead letter queue."
  type        = string
}

variable "queue_names" {
  description = "Names of the queues by topic; the dashboard says how many there are."
  type        = map(string)
  default     = {}
}

variable "table_names" {
  description = "Names of the state tables by short name; an alarm sums at most ten."
  type        = map(string)

  validation {
    condition     = length(var.table_names) > 0 && length(var.table_names) <= 10
    error_message = "An alarm of CloudWatch sums one to ten metrics."
  }
}

variable "schema_bucket_name" {
  description = "The bucket whose refused schemas raise an alert; null for no such alert. Its events must go to EventBridge."
  type        = string
  default     = null
}

variable "schedules_enabled" {
  description = "Whether the master state machine runs by schedule; if not, that it has not run is no reason for an alarm."
  type        = bool
  default     = true
}

variable "alert_emails" {
  description = "Who is told by mail; each has to confirm a first mail from AWS."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for email in var.alert_emails : can(regex("^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", email))])
    error_message = "Not a mail address: ${join(", ", [for email in var.alert_emails : email if !can(regex("^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$", email))])}."
  }
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}
