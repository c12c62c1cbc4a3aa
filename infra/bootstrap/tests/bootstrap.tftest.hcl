# Mocked: who may take the roles, what they may do, and that state and images are kept safe. Planned and never applied:
# a test that applies destroys at its end, which the state bucket refuses. Values of what is not made yet are known in
# these plans by override_during, which needs Terraform 1.11.

mock_provider "aws" {
  override_during = plan

  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:eu-central-1:000000000000:key/mock", key_id = "mock" }
  }
  mock_resource "aws_iam_openid_connect_provider" {
    defaults = { arn = "arn:aws:iam::000000000000:oidc-provider/mock" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::000000000000:role/mock" }
  }
  mock_resource "aws_iam_policy" {
    defaults = { arn = "arn:aws:iam::000000000000:policy/mock" }
  }
}

variables {
  region            = "eu-central-1"
  state_bucket      = "lean-ops-terraform-state"
  github_repository = "an-owner/lean-ops"
  environments = {
    dev  = { buckets = ["dev-lake", "dev-schemas"], database_prefix = "dev_" }
    prod = { buckets = ["prod-lake", "prod-schemas"], kms_key_arn = "arn:aws:kms:eu-central-1:000000000000:key/given", deploy_branches = ["release"] }
  }
}

run "each_environment_has_its_repositories" {
  command = plan

  assert {
    condition     = toset(keys(aws_ecr_repository.this)) == toset(["lean-ops-dev-lake", "lean-ops-dev-discovery", "lean-ops-prod-lake", "lean-ops-prod-discovery"])
    error_message = "Images are pushed to {project}-{environment}-{image}."
  }

  assert {
    condition = alltrue([
      for repository in aws_ecr_repository.this :
      repository.image_tag_mutability == "IMMUTABLE" && repository.image_scanning_configuration[0].scan_on_push && repository.encryption_configuration[0].encryption_type == "KMS"
    ])
    error_message = "An image must stay what it was, be scanned, and be encrypted."
  }

  assert {
    condition     = alltrue([for policy in aws_ecr_lifecycle_policy.this : jsondecode(policy.policy).rules[0].selection.countNumber == 20])
    error_message = "The newest twenty images are kept."
  }

  assert {
    condition     = jsondecode(aws_ecr_repository_policy.this["lean-ops-dev-lake"].policy).Statement[0].Condition.ArnLike["aws:SourceArn"] == "arn:aws:lambda:eu-central-1:000000000000:function:lean-ops-dev-*"
    error_message = "An environment's images are for its own functions."
  }
}

run "the_state_is_private_and_kept" {
  command = plan

  assert {
    condition = alltrue([
      aws_s3_bucket_public_access_block.state.block_public_acls,
      aws_s3_bucket_public_access_block.state.block_public_policy,
      aws_s3_bucket_public_access_block.state.ignore_public_acls,
      aws_s3_bucket_public_access_block.state.restrict_public_buckets,
      aws_s3_bucket_versioning.state.versioning_configuration[0].status == "Enabled",
      one(aws_s3_bucket_server_side_encryption_configuration.state.rule).apply_server_side_encryption_by_default[0].sse_algorithm == "aws:kms",
      jsondecode(aws_s3_bucket_policy.state.policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false",
    ])
    error_message = "The state holds all that there is to know of an environment: private, versioned, encrypted, by TLS only."
  }

  assert {
    condition     = aws_s3_bucket.state.force_destroy != true
    error_message = "A bucket that holds state refuses to be deleted."
  }
}

run "only_one_repository_and_named_jobs_may_take_a_role" {
  command = plan

  assert {
    condition = alltrue([
      for role in aws_iam_role.github : alltrue([
        for subject in flatten([jsondecode(role.assume_role_policy).Statement[0].Condition.StringEquals["token.actions.githubusercontent.com:sub"]]) :
        startswith(subject, "repo:an-owner/lean-ops:") && !strcontains(subject, "*")
      ])
    ])
    error_message = "Every job is named in full, of this repository."
  }

  assert {
    condition     = jsondecode(aws_iam_role.github["lean-ops-github-dev-deploy"].assume_role_policy).Statement[0].Condition.StringEquals["token.actions.githubusercontent.com:sub"] == ["repo:an-owner/lean-ops:environment:dev"]
    error_message = "Without more said, only jobs of the GitHub environment deploy: that is where approval is asked for."
  }

  assert {
    condition     = contains(jsondecode(aws_iam_role.github["lean-ops-github-prod-deploy"].assume_role_policy).Statement[0].Condition.StringEquals["token.actions.githubusercontent.com:sub"], "repo:an-owner/lean-ops:ref:refs/heads/release")
    error_message = "A branch that is named may deploy, too."
  }

  assert {
    condition     = contains(jsondecode(aws_iam_role.github["lean-ops-github-dev-plan"].assume_role_policy).Statement[0].Condition.StringEquals["token.actions.githubusercontent.com:sub"], "repo:an-owner/lean-ops:pull_request")
    error_message = "Pull requests may look."
  }

  assert {
    condition     = alltrue([for role in aws_iam_role.github : jsondecode(role.assume_role_policy).Statement[0].Condition.StringEquals["token.actions.githubusercontent.com:aud"] == "sts.amazonaws.com"])
    error_message = "A token for somebody else is none for us."
  }
}

run "rights_are_named_and_within_the_environment" {
  command = plan

  assert {
    condition = alltrue(flatten([
      for policy in aws_iam_policy.github : [
        for statement in jsondecode(policy.policy).Statement : [for action in statement.Action : !strcontains(action, "*")]
      ]
    ]))
    error_message = "No action is a pattern."
  }

  # Each with its reason in rights.tf or rights_change.tf.
  assert {
    condition = toset(flatten([
      for policy in aws_iam_policy.github : [
        for statement in jsondecode(policy.policy).Statement : statement.Action
        if contains(flatten([statement.Resource]), "*") && length(try(statement.Condition, {})) == 0
      ]
      ])) == toset([
      "kms:ListAliases", "glue:GetSecurityConfiguration", "lambda:ListEventSourceMappings", "logs:DescribeLogGroups",
      "states:ValidateStateMachineDefinition", "ecr:GetAuthorizationToken", "glue:CreateSecurityConfiguration",
      "glue:DeleteSecurityConfiguration", "logs:CreateLogDelivery", "logs:DeleteLogDelivery",
      "logs:DescribeResourcePolicies", "logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy",
      "logs:UpdateLogDelivery",
    ])
    error_message = "Only what AWS knows no resource for may be unscoped."
  }

  assert {
    condition     = alltrue([for name, policy in aws_iam_policy.github : !strcontains(policy.policy, startswith(name, "lean-ops-github-dev") ? "prod" : "lean-ops-dev")])
    error_message = "Who deploys one environment has no rights in the other."
  }

  assert {
    condition     = alltrue([for policy in aws_iam_policy.github : length(policy.policy) <= 6144])
    error_message = "IAM takes no longer policies."
  }

  # Else who deploys could give itself any rights.
  assert {
    condition     = alltrue([for role in keys(aws_iam_role.github) : !startswith(role, "lean-ops-dev-") && !startswith(role, "lean-ops-prod-")])
    error_message = "The workflows' own roles must not begin like an environment's."
  }
}

run "who_only_looks_changes_nothing" {
  command = plan

  assert {
    condition = toset([for key, what in local.attachments : what.policy if what.role == "lean-ops-github-dev-plan"]) == toset([
      "lean-ops-github-dev-see-state", "lean-ops-github-dev-see-data", "lean-ops-github-dev-see-work",
    ])
    error_message = "The role of pull requests has the three policies that see."
  }

  assert {
    condition = alltrue(flatten([
      for name, policy in aws_iam_policy.github : [
        for statement in jsondecode(policy.policy).Statement : [
          for action in statement.Action : can(regex(":(Get|List|Describe|BatchGet|Validate|Decrypt)", action))
        ]
      ] if strcontains(name, "-see-")
    ]))
    error_message = "What sees must not change."
  }

  assert {
    condition     = length([for key, what in local.attachments : what.policy if what.role == "lean-ops-github-dev-deploy"]) == 7
    error_message = "Who deploys sees and changes."
  }
}

run "a_given_key_is_not_made_or_deleted" {
  command = plan

  assert {
    condition     = !strcontains(aws_iam_policy.github["lean-ops-github-prod-change-data"].policy, "kms:CreateKey") && !strcontains(aws_iam_policy.github["lean-ops-github-prod-change-data"].policy, "ScheduleKeyDeletion")
    error_message = "A key that belongs to somebody else is used and left alone."
  }
}

run "a_provider_that_is_there_is_used" {
  command = plan

  variables {
    github_oidc_provider_arn = "arn:aws:iam::000000000000:oidc-provider/given"
  }

  assert {
    condition     = length(aws_iam_openid_connect_provider.github) == 0 && jsondecode(aws_iam_role.github["lean-ops-github-dev-deploy"].assume_role_policy).Statement[0].Principal.Federated == "arn:aws:iam::000000000000:oidc-provider/given"
    error_message = "An account has one provider of GitHub's."
  }
}

run "pull_requests_can_be_kept_out" {
  command = plan

  variables {
    plan_pull_requests = false
  }

  assert {
    condition     = alltrue([for role in aws_iam_role.github : !strcontains(role.assume_role_policy, "pull_request")])
    error_message = "No pull request may take a role then."
  }
}

run "patterns_are_refused" {
  command = plan

  variables {
    github_repository = "an-owner/*"
    environments      = { dev = { buckets = ["lake"], deploy_branches = ["feature/*"] } }
  }

  expect_failures = [var.github_repository, var.environments]
}

run "an_environment_called_like_the_roles_is_refused" {
  command = plan

  variables {
    environments = { github = { buckets = ["lake"] } }
  }

  expect_failures = [var.environments]
}
