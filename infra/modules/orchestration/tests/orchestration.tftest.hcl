# Mocked: what is made, and what starts when. What the policies say is rendered and judged by
# tests/integration/infra/test_iam.py; the machines' texts by tests of their own.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000" }
  }
  mock_data "aws_region" {
    defaults = { name = "eu-central-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{}" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::000000000000:role/mock" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:000000000000:log-group:mock" }
  }
  mock_resource "aws_scheduler_schedule_group" {
    defaults = { arn = "arn:aws:scheduler:eu-central-1:000000000000:schedule-group/lean-ops-test" }
  }
  mock_resource "aws_cloudwatch_event_rule" {
    defaults = { arn = "arn:aws:events:eu-central-1:000000000000:rule/mock" }
  }
}

variables {
  name               = "lean-ops-test"
  kms_key_arn        = "arn:aws:kms:eu-central-1:000000000000:key/k"
  function_arns      = { for function in ["fetch_active_topics", "check_schema", "ensure_table", "get_all_checkpoints", "health", "schema_validator", "circuit_breaker", "discovery"] : function => "arn:aws:lambda:eu-central-1:000000000000:function:lean-ops-test-${function}" }
  glue_job_names     = { for job in ["standardized", "curated", "rebuild", "maintenance"] : job => "lean-ops-test-${job}" }
  glue_job_arns      = { for job in ["standardized", "curated", "rebuild", "maintenance"] : job => "arn:aws:glue:eu-central-1:000000000000:job/lean-ops-test-${job}" }
  alert_topic_arn    = "arn:aws:sns:eu-central-1:000000000000:lean-ops-test-alerts"
  schema_bucket_name = "schema-bucket"
}

run "machines" {
  assert {
    condition     = { for machine, made in aws_sfn_state_machine.this : machine => made.name } == { master = "lean-ops-test-master", rebuilder = "lean-ops-test-rebuilder", maintenance = "lean-ops-test-maintenance" }
    error_message = "There must be these three machines."
  }

  assert {
    condition     = alltrue([for made in aws_sfn_state_machine.this : can(jsondecode(made.definition).StartAt)])
    error_message = "A machine's text must be JSON with a first state."
  }

  assert {
    condition     = alltrue([for made in aws_sfn_state_machine.this : !can(regex("[$][{]", made.definition))])
    error_message = "A variable of a template was not filled in."
  }

  assert {
    condition     = strcontains(aws_sfn_state_machine.this["master"].definition, "arn:aws:states:eu-central-1:000000000000:stateMachine:lean-ops-test-master")
    error_message = "The master asks for its own executions, so it must know its name."
  }

  assert {
    condition     = alltrue([for made in aws_sfn_state_machine.this : made.type == "STANDARD" && made.encryption_configuration[0].kms_key_id == var.kms_key_arn && made.tracing_configuration[0].enabled && !made.logging_configuration[0].include_execution_data])
    error_message = "Executions are encrypted and traced, and their data stay out of the logs."
  }

  assert {
    condition     = alltrue([for group in aws_cloudwatch_log_group.machine : startswith(group.name, "/aws/vendedlogs/states/")])
    error_message = "Without the prefix CloudWatch's resource policy runs out of room."
  }
}

run "a_machine_may_call_what_its_text_names" {
  command = plan

  assert {
    condition     = toset(local.machines["master"].jobs) == toset(["standardized", "curated"]) && local.machines["rebuilder"].jobs == ["rebuild"] && local.machines["maintenance"].jobs == ["maintenance"]
    error_message = "A machine must be allowed the jobs that it starts, and no others."
  }

  assert {
    condition     = contains(local.machines["master"].functions, "check_schema") && !contains(local.machines["master"].functions, "health")
    error_message = "A machine must be allowed the functions that it calls, and no others."
  }
}

run "schedules" {
  assert {
    condition = { for schedule, made in aws_scheduler_schedule.this : schedule => made.schedule_expression } == {
      run                = "rate(15 minutes)"
      daily-maintenance  = "cron(0 2 * * ? *)"
      weekly-maintenance = "cron(0 4 ? * SUN *)"
      reconcile          = "cron(0 6 * * ? *)"
      watch              = "rate(15 minutes)"
      circuit-breaker    = "rate(1 minute)"
      discovery          = "cron(30 5 * * ? *)"
    }
    error_message = "A run and a look every 15 minutes, the breaker each minute, the rest daily or weekly."
  }

  assert {
    condition     = aws_scheduler_schedule.this["watch"].target[0].input == "{\"books\":false}" && aws_scheduler_schedule.this["reconcile"].target[0].input == "{}" && aws_scheduler_schedule.this["watch"].target[0].arn == aws_scheduler_schedule.this["reconcile"].target[0].arn
    error_message = "The books are looked at once a day, what waits or drifts each time."
  }

  assert {
    condition     = aws_scheduler_schedule.this["daily-maintenance"].target[0].input == "{\"cadence\":\"daily\"}" && aws_scheduler_schedule.this["weekly-maintenance"].target[0].input == "{\"cadence\":\"weekly\"}"
    error_message = "The maintenance machine is told which of the two it is."
  }

  assert {
    condition     = alltrue([for made in aws_scheduler_schedule.this : made.group_name == "lean-ops-test" && made.flexible_time_window[0].mode == "OFF"])
    error_message = "Schedules keep their times and their group."
  }

  assert {
    condition     = [for schedule, made in aws_scheduler_schedule.this : schedule if made.state == "ENABLED"] == ["circuit-breaker", "discovery", "reconcile", "run", "watch"]
    error_message = "Schedules are on unless they are turned off, but for maintenance, whose job is yet to come."
  }

  assert {
    condition     = aws_scheduler_schedule.this["run"].target[0].arn == "arn:aws:states:eu-central-1:000000000000:stateMachine:lean-ops-test-master"
    error_message = "A run is the master's."
  }
}

run "maintenance_can_be_turned_on" {
  variables {
    maintenance_enabled = true
  }

  assert {
    condition     = alltrue([for made in aws_scheduler_schedule.this : made.state == "ENABLED"])
    error_message = "All schedules are on."
  }
}

run "schedules_can_be_turned_off" {
  variables {
    schedules_enabled = false
  }

  assert {
    condition     = alltrue([for made in aws_scheduler_schedule.this : made.state == "DISABLED"])
    error_message = "Nothing may start by itself."
  }

  assert {
    condition     = aws_cloudwatch_event_rule.pending_schema.state == "ENABLED"
    error_message = "Uploads are judged all the same."
  }
}

run "one_schedule_can_be_changed" {
  variables {
    schedules = { run = "rate(5 minutes)" }
  }

  assert {
    condition     = aws_scheduler_schedule.this["run"].schedule_expression == "rate(5 minutes)" && aws_scheduler_schedule.this["reconcile"].schedule_expression == "cron(0 6 * * ? *)"
    error_message = "The others keep their times."
  }
}

run "without_discovery_nothing_starts_it" {
  variables {
    function_arns = { for function in ["fetch_active_topics", "check_schema", "ensure_table", "get_all_checkpoints", "health", "schema_validator", "circuit_breaker"] : function => "arn:aws:lambda:eu-central-1:000000000000:function:lean-ops-test-${function}" }
  }

  assert {
    condition     = !contains(keys(aws_scheduler_schedule.this), "discovery")
    error_message = "What is not there can't be started."
  }
}

run "uploads" {
  assert {
    condition     = jsondecode(aws_cloudwatch_event_rule.pending_schema.event_pattern).detail == { bucket = { name = ["schema-bucket"] }, object = { key = [{ wildcard = "schemas/*/pending/schema.json" }] } }
    error_message = "Only pending schemas of the schema bucket are judged."
  }

  assert {
    condition     = aws_lambda_permission.pending_schema.principal == "events.amazonaws.com" && aws_lambda_permission.pending_schema.source_arn == aws_cloudwatch_event_rule.pending_schema.arn
    error_message = "No other rule may call the validator."
  }
}

run "an_unlimited_map_is_refused" {
  command = plan

  variables {
    map_concurrency = 0
  }

  expect_failures = [var.map_concurrency]
}

run "a_schedule_that_is_none_is_refused" {
  command = plan

  variables {
    schedules = { run = "15 minutes" }
  }

  expect_failures = [var.schedules]
}
