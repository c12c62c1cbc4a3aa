variable "name" {
  description = "What every name begins with: project and environment, such as lean-ops-dev."
  type        = string
}

variable "kms_key_arn" {
  description = "The key that the tables are encrypted with."
  type        = string
}

variable "deletion_protection" {
  description = "Whether the tables refuse to be deleted. Turn it off, and apply, before a destroy."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}
