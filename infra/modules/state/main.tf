# Keys, index and time-to-live are those of src/lean_ops/state/dynamodb_tables.py: change both or neither.
locals {
  tables = {
    checkpoints     = { hash_key = "pipeline_id", expires = false }
    schema_registry = { hash_key = "topic_name", expires = false }
    # A lock's expires_at is no time-to-live: a deleted lock would forget its fence.
    locks            = { hash_key = "topic_name", expires = false }
    idempotency_keys = { hash_key = "id", expires = true }
    error_tracker = {
      hash_key = "error_id"
      expires  = true
      index    = { name = "by_topic", hash_key = "topic_name", range_key = "recorded_at" }
    }
    circuit_breaker = { hash_key = "topic_name", range_key = "item", expires = true }
  }

  # DynamoDB is told of the attributes that are keys, each once, and of no others.
  key_attributes = {
    for name, table in local.tables : name => toset(compact([
      table.hash_key,
      try(table.range_key, null),
      try(table.index.hash_key, null),
      try(table.index.range_key, null),
    ]))
  }
}

resource "aws_dynamodb_table" "this" {
  for_each = local.tables

  name                        = "${var.name}-${each.key}"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = each.value.hash_key
  range_key                   = try(each.value.range_key, null)
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  dynamic "attribute" {
    for_each = local.key_attributes[each.key]

    content {
      name = attribute.value
      type = "S"
    }
  }

  dynamic "global_secondary_index" {
    for_each = try([each.value.index], [])

    content {
      name            = global_secondary_index.value.name
      hash_key        = global_secondary_index.value.hash_key
      range_key       = global_secondary_index.value.range_key
      projection_type = "ALL"
    }
  }

  dynamic "ttl" {
    for_each = each.value.expires ? ["expires_at"] : []

    content {
      attribute_name = ttl.value
      enabled        = true
    }
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = var.kms_key_arn
  }
}
