# The state machines. Their texts are templates in state_machines/; what each may do is in iam.tf.

data "aws_partition" "current" {}

data "aws_region" "current" {}

data "aws_caller_identity" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.name

  # What a machine may call is what its text names, so that its rights can't be more or less than that.
  texts = { for machine in ["master", "rebuilder", "maintenance"] : machine => file("${path.module}/state_machines/${machine}.asl.json") }
  machines = {
    for machine, text in local.texts : machine => {
      functions = [for function in ["fetch_active_topics", "check_schema", "ensure_table", "get_all_checkpoints", "health"] : function if strcontains(text, "$${${function}_arn}")]
      jobs      = [for job in ["standardized", "curated", "rebuild", "maintenance"] : job if strcontains(text, "$${${job}_job}")]
    }
  }

  machine_names = { for machine in keys(local.machines) : machine => "${var.name}-${machine}" }
  # Put together from names: a machine's text holds its own ARN, and its role names it before it is there.
  states_arn   = "arn:${local.partition}:states:${local.region}:${local.account}"
  machine_arns = { for machine, name in local.machine_names : machine => "${local.states_arn}:stateMachine:${name}" }
}

resource "aws_cloudwatch_log_group" "machine" {
  #checkov:skip=CKV_AWS_338:How long logs are kept is the environment's choice; the ledger in the lake is kept for years.
  for_each = local.machines

  # With this prefix CloudWatch keeps room in its resource policy, which ends at some dozen groups otherwise.
  name              = "/aws/vendedlogs/states/${local.machine_names[each.key]}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = var.tags
}

resource "aws_sfn_state_machine" "this" {
  for_each = local.machines

  name     = local.machine_names[each.key]
  type     = "STANDARD" # a run takes longer than the five minutes of an express one, and waits for Glue jobs
  role_arn = aws_iam_role.machine[each.key].arn
  tags     = var.tags

  definition = templatefile("${path.module}/state_machines/${each.key}.asl.json", {
    fetch_active_topics_arn = var.function_arns["fetch_active_topics"]
    check_schema_arn        = var.function_arns["check_schema"]
    ensure_table_arn        = var.function_arns["ensure_table"]
    get_all_checkpoints_arn = var.function_arns["get_all_checkpoints"]
    health_arn              = var.function_arns["health"]
    standardized_job        = var.glue_job_names["standardized"]
    curated_job             = var.glue_job_names["curated"]
    rebuild_job             = var.glue_job_names["rebuild"]
    maintenance_job         = var.glue_job_names["maintenance"]
    alert_topic_arn         = var.alert_topic_arn
    state_machine_arn       = local.machine_arns[each.key]
    map_concurrency         = var.map_concurrency
  })

  logging_configuration {
    log_destination = "${aws_cloudwatch_log_group.machine[each.key].arn}:*"
    level           = var.log_level
    # Inputs are names of topics and of little use in a log; an error's words may quote a record. Both are in the
    # execution's history, which is encrypted and kept for 90 days.
    #checkov:skip=CKV_AWS_285:Executions' data stay out of the logs on purpose, as the line above says.
    include_execution_data = false
  }

  tracing_configuration {
    enabled = true
  }

  encryption_configuration {
    type                              = "CUSTOMER_MANAGED_KMS_KEY"
    kms_key_id                        = var.kms_key_arn
    kms_data_key_reuse_period_seconds = 300
  }

  # Step Functions looks at the role's rights to log when the machine is made.
  depends_on = [aws_iam_role_policy.machine]
}
