# Two roles for each environment, taken by GitHub's workflows without any key: `plan` only looks, for pull requests;
# `deploy` changes, for jobs of the GitHub environment of the same name, which is where approval is asked for.

locals {
  github_host         = "token.actions.githubusercontent.com"
  github_provider_arn = var.github_oidc_provider_arn == null ? aws_iam_openid_connect_provider.github["this"].arn : var.github_oidc_provider_arn

  # What GitHub says of a job: the job's environment if it has one, else what started it.
  plan_jobs = {
    for environment, how in var.environments : environment => concat(
      var.plan_pull_requests ? ["pull_request"] : [],
      [for branch in how.plan_branches : "ref:refs/heads/${branch}"],
    )
  }
  deploy_jobs = {
    for environment, how in var.environments : environment => concat(
      ["environment:${environment}"],
      [for branch in how.deploy_branches : "ref:refs/heads/${branch}"],
    )
  }

  # Called github and not like an environment: who deploys may change roles that begin with the environment's name, and
  # must not be able to change these.
  roles = merge(
    { for environment, jobs in local.plan_jobs : "${var.project_name}-github-${environment}-plan" => { environment = environment, jobs = jobs, changes = false } if length(jobs) > 0 },
    { for environment, jobs in local.deploy_jobs : "${var.project_name}-github-${environment}-deploy" => { environment = environment, jobs = jobs, changes = true } },
  )
}

resource "aws_iam_openid_connect_provider" "github" {
  for_each = var.github_oidc_provider_arn == null ? { this = local.github_host } : {}

  url            = "https://${each.value}"
  client_id_list = ["sts.amazonaws.com"]
  tags           = var.tags
}

resource "aws_iam_role" "github" {
  for_each = local.roles

  name                 = each.key
  description          = "What GitHub's workflows may ${each.value.changes ? "change" : "see"} of ${local.names[each.value.environment]}"
  max_session_duration = 7200 # an apply of hundreds of topics takes more than the usual hour
  tags                 = merge(var.tags, { Environment = each.value.environment })

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "JobsOfOneRepository"
      Effect    = "Allow"
      Principal = { Federated = local.github_provider_arn }
      Action    = "sts:AssumeRoleWithWebIdentity"
      Condition = {
        StringEquals = {
          "${local.github_host}:aud" = "sts.amazonaws.com"
          "${local.github_host}:sub" = [for job in each.value.jobs : "repo:${var.github_repository}:${job}"]
        }
      }
    }]
  })
}

locals {
  # By environment and subject: a role's policies have room for 6,144 characters each, so that one would not do.
  policies = merge([
    for environment, name in local.names : {
      for subject, how in merge(local.see[environment], local.change[environment]) : "${var.project_name}-github-${environment}-${subject}" => {
        environment = environment
        subject     = subject
        changes     = how.changes
        statements  = how.statements
      }
    }
  ]...)

  attachments = merge([
    for role, who in local.roles : {
      for policy, what in local.policies : "${role}/${what.subject}" => { role = role, policy = policy }
      if what.environment == who.environment && (who.changes || !what.changes)
    }
  ]...)
}

resource "aws_iam_policy" "github" {
  for_each = local.policies

  name        = each.key
  description = "${each.value.changes ? "Change" : "See"} ${local.names[each.value.environment]}: ${each.value.subject}"
  policy      = jsonencode({ Version = "2012-10-17", Statement = each.value.statements })
  tags        = var.tags

  lifecycle {
    precondition {
      condition     = length(jsonencode({ Version = "2012-10-17", Statement = each.value.statements })) <= 6144
      error_message = "IAM takes policies of at most 6,144 characters; give ${each.key} shorter names or split its subject in two."
    }
  }
}

resource "aws_iam_role_policy_attachment" "github" {
  for_each = local.attachments

  role       = aws_iam_role.github[each.value.role].name
  policy_arn = aws_iam_policy.github[each.value.policy].arn
}
