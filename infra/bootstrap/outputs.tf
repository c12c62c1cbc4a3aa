output "state_bucket" {
  description = "The bucket of Terraform's state: STATE_BUCKET of the make targets."
  value       = aws_s3_bucket.state.bucket
}

output "kms_key_arn" {
  description = "The key of state and images."
  value       = aws_kms_key.this.arn
}

output "repository_urls" {
  description = "Where images are pushed to, by the repository's name."
  value       = { for name, repository in aws_ecr_repository.this : name => repository.repository_url }
}

output "plan_role_arns" {
  description = "The roles that only look, by environment: AWS_PLAN_ROLE_ARN of the repository's variables."
  value       = { for role, who in local.roles : who.environment => aws_iam_role.github[role].arn if !who.changes }
}

output "deploy_role_arns" {
  description = "The roles that change, by environment: AWS_DEPLOY_ROLE_ARN of each GitHub environment's variables."
  value       = { for role, who in local.roles : who.environment => aws_iam_role.github[role].arn if who.changes }
}
