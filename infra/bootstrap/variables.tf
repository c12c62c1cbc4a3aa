variable "project_name" {
  description = "First part of every name, the same as in infra/."
  type        = string
  default     = "lean-ops"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,19}$", var.project_name))
    error_message = "The project's name must be 2 to 20 lower case letters, digits and '-', as in infra/."
  }
}

variable "region" {
  description = "The region of the state bucket and of the images."
  type        = string
}

variable "state_bucket" {
  description = "Name of the bucket that is made for Terraform's state; S3 wants a name that nobody else in the world has."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.state_bucket))
    error_message = "A bucket's name has 3 to 63 lower case letters, digits, '.' and '-'."
  }
}

variable "environments" {
  description = "The environments of this account by name, as in infra/environments: their buckets, their prefix of databases, their own key if one is given, and from which branches they may be planned and deployed beside their GitHub environment."
  type = map(object({
    buckets         = list(string)
    database_prefix = optional(string, "")
    kms_key_arn     = optional(string)
    plan_branches   = optional(list(string), ["main"])
    deploy_branches = optional(list(string), [])
  }))

  validation {
    condition     = alltrue([for environment in keys(var.environments) : can(regex("^[a-z][a-z0-9]{1,11}$", environment)) && environment != "github"])
    error_message = "An environment has 2 to 12 lower case letters and digits, without '-', as in infra/; and it is not called github, because the roles made here are."
  }

  validation {
    condition     = alltrue([for environment in values(var.environments) : length(environment.buckets) > 0 && alltrue([for bucket in environment.buckets : !strcontains(bucket, "*")])])
    error_message = "Name each environment's buckets in full: rights are given by their names."
  }

  validation {
    condition     = alltrue([for environment in values(var.environments) : alltrue([for branch in concat(environment.plan_branches, environment.deploy_branches) : !strcontains(branch, "*") && branch != ""])])
    error_message = "Name branches in full: with a pattern anybody who may push a branch could deploy."
  }
}

variable "github_repository" {
  description = "The one repository whose workflows may take the roles, OWNER/NAME."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$", var.github_repository))
    error_message = "Give OWNER/NAME: a pattern would let other repositories in."
  }
}

variable "github_oidc_provider_arn" {
  description = "GitHub's identity provider of this account, of which there can be one only; null makes it."
  type        = string
  default     = null
}

variable "plan_pull_requests" {
  description = "Whether pull requests may take the roles that only look. A pull request's own Terraform is run with them: turn it off where not everybody who can open one may read the state."
  type        = bool
  default     = true
}

variable "images_kept" {
  description = "Images that each repository keeps; older ones go. A function whose image is gone can't be started again."
  type        = number
  default     = 20

  validation {
    condition     = var.images_kept >= 5 && floor(var.images_kept) == var.images_kept
    error_message = "Keep at least 5: the running one, and some to go back to."
  }
}

variable "access_log_bucket" {
  description = "A bucket for the access logs of the state bucket; null for none."
  type        = string
  default     = null
}

variable "tags" {
  description = "More tags for every resource."
  type        = map(string)
  default     = {}
}
