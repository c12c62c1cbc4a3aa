variable "name" {
  description = "What every name begins with: project and environment, such as lean-ops-dev."
  type        = string
}

variable "topics" {
  description = "Topics in the product's own form; each gets a queue. A name that is removed takes its queue with it."
  type        = list(string)

  # The rules of src/lean_ops/model/topic.py.
  validation {
    condition     = alltrue([for topic in var.topics : can(regex("^[a-z][a-z0-9_]{0,62}$", topic))])
    error_message = "A topic is a lower case letter, then at most 62 lower case letters, digits or '_'. Not so: ${join(", ", [for topic in var.topics : topic if !can(regex("^[a-z][a-z0-9_]{0,62}$", topic))])}."
  }

  validation {
    condition     = length(setintersection(var.topics, ["dlq", "errors", "parse_errors", "dlq_errors"])) == 0
    error_message = "These names are the platform's own: ${join(", ", setintersection(var.topics, ["dlq", "errors", "parse_errors", "dlq_errors"]))}."
  }

  validation {
    condition     = !anytrue([for topic in var.topics : endswith(topic, "_latest") || endswith(topic, "_staging")])
    error_message = "Names that end in _latest or _staging are the platform's own: ${join(", ", [for topic in var.topics : topic if endswith(topic, "_latest") || endswith(topic, "_staging")])}."
  }

  validation {
    condition     = length(var.topics) == length(distinct(var.topics))
    error_message = "A topic is listed once."
  }
}

variable "kms_key_arn" {
  description = "The key that messages are encrypted with. Who sends needs kms:GenerateDataKey and kms:Decrypt of it, who reads kms:Decrypt."
  type        = string
}

variable "raise_message_size" {
  description = "Whether queues are raised to messages of 1 MiB by the AWS CLI, with the credentials of the environment; false leaves them at 256 KiB."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}
