variable "name" {
  description = "Project and environment, such as lean-ops-dev."
  type        = string
}

variable "database_prefix" {
  description = "What the databases' names begin with, so that several environments can share an account; may be empty."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^[a-z0-9_]{0,40}$", var.database_prefix))
    error_message = "database_prefix is at most 40 lower case letters, digits or '_': what the product's own setting takes."
  }
}

variable "warehouse" {
  description = "Where all tables lie, such as s3://BUCKET/warehouse."
  type        = string

  validation {
    condition     = can(regex("^s3://[^/]+/.+", var.warehouse))
    error_message = "warehouse is an address such as s3://BUCKET/warehouse."
  }
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}
