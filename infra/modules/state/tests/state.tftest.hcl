mock_provider "aws" {}

variables {
  name        = "lean-ops-test"
  kms_key_arn = "arn:aws:kms:eu-central-1:000000000000:key/00000000-0000-0000-0000-000000000000"
}

run "tables_are_those_of_the_code" {
  command = plan

  assert {
    condition = toset(keys(aws_dynamodb_table.this)) == toset([
      "checkpoints", "locks", "schema_registry", "idempotency_keys", "error_tracker", "circuit_breaker"
    ])
    error_message = "the product knows exactly six tables"
  }

  assert {
    condition     = alltrue([for name, table in aws_dynamodb_table.this : table.name == "lean-ops-test-${name}"])
    error_message = "the product finds its tables by project, environment and short name"
  }

  assert {
    condition = { for name, table in aws_dynamodb_table.this : name => join("/", compact([table.hash_key, table.range_key])) } == {
      checkpoints      = "pipeline_id"
      locks            = "topic_name"
      schema_registry  = "topic_name"
      idempotency_keys = "id"
      error_tracker    = "error_id"
      circuit_breaker  = "topic_name/item"
    }
    error_message = "a table has another key than the code reads it by"
  }

  assert {
    condition = [
      for index in aws_dynamodb_table.this["error_tracker"].global_secondary_index :
      [index.name, index.hash_key, index.range_key, index.projection_type]
    ] == [["by_topic", "topic_name", "recorded_at", "ALL"]]
    error_message = "errors are read by topic and time from the index by_topic"
  }

  assert {
    condition = alltrue([
      for name, table in aws_dynamodb_table.this : length(table.global_secondary_index) == 0 if name != "error_tracker"
    ])
    error_message = "only the error tracker has an index"
  }
}

run "only_what_may_be_forgotten_expires" {
  command = plan

  assert {
    condition = toset([for name, table in aws_dynamodb_table.this : name if length(table.ttl) > 0]) == toset([
      "idempotency_keys", "error_tracker", "circuit_breaker"
    ])
    error_message = "checkpoints and schemas are kept, and a lock that expires would forget its fence"
  }

  assert {
    condition = alltrue(flatten([
      for table in aws_dynamodb_table.this : [for ttl in table.ttl : ttl.enabled && ttl.attribute_name == "expires_at"]
    ]))
    error_message = "the code writes the time of expiry into expires_at"
  }
}

run "tables_are_kept_safe" {
  command = plan

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : table.point_in_time_recovery[0].enabled])
    error_message = "every table can be brought back to an earlier second"
  }

  assert {
    condition = alltrue([
      for table in aws_dynamodb_table.this :
      table.server_side_encryption[0].enabled && table.server_side_encryption[0].kms_key_arn == var.kms_key_arn
    ])
    error_message = "every table is encrypted with the given key"
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : table.deletion_protection_enabled])
    error_message = "tables are protected unless somebody says otherwise"
  }

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : table.billing_mode == "PAY_PER_REQUEST"])
    error_message = "work comes every 15 minutes: provisioned capacity would throttle then and be paid for in between"
  }
}

run "protection_can_be_lifted" {
  command = plan

  variables {
    deletion_protection = false
  }

  assert {
    condition     = !anytrue([for table in aws_dynamodb_table.this : table.deletion_protection_enabled])
    error_message = "an environment that is to be destroyed lifts the protection"
  }
}
