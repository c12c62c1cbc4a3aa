# The tables of the topics: Firehose needs RAW before the first message comes, and Terraform makes databases only.

locals {
  # So many fit into the time that a function has. Without topics there are still the tables that all of them share.
  topic_chunks = length(var.topics) == 0 ? [[]] : chunklist(sort(var.topics), 100)
}

resource "aws_lambda_invocation" "ensure_table" {
  for_each = { for number, topics in local.topic_chunks : format("chunk-%03d", number) => topics }

  function_name = aws_lambda_function.this["ensure_table"].function_name
  input         = jsonencode({ topics = each.value })

  # Tables that are there stay as they are, so a call too much is harmless; it is made when the topics of a chunk or
  # the databases change.
  triggers = { databases = join(",", [for zone in sort(keys(var.database_names)) : var.database_names[zone]]) }
}

check "every_topic_has_its_tables" {
  assert {
    condition     = alltrue([for made in aws_lambda_invocation.ensure_table : length(try(jsondecode(made.result).failed, [])) == 0])
    error_message = "Some tables could not be made: ${join("; ", flatten([for made in aws_lambda_invocation.ensure_table : [for failed in try(jsondecode(made.result).failed, []) : "${failed.topic}: ${failed.error}"]]))}. Call the function ensure_table with these topics again."
  }
}
