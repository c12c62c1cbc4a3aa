# What CloudWatch has no metric of, but EventBridge an event. The messages look like the product's own alerts; but
# EventBridge sets no message attributes, so subscriptions that filter by kind or severity must filter by the body.
locals {
  rules = merge(
    {
      glue-job-failed = {
        description = "A run of a Glue job that died: the job itself could tell nobody."
        pattern = {
          source      = ["aws.glue"]
          detail-type = ["Glue Job State Change"]
          detail      = { jobName = values(var.glue_job_names), state = ["FAILED", "TIMEOUT", "ERROR"] }
        }
        paths = {
          job     = "$.detail.jobName"
          message = "$.detail.message"
          run     = "$.detail.jobRunId"
          state   = "$.detail.state"
        }
        template = "{\"kind\": \"JOB_FAILED\", \"severity\": \"critical\", \"job\": <job>, \"state\": <state>, \"run_id\": <run>, \"message\": <message>}"
      }
    },
    {
      for bucket in compact([var.schema_bucket_name]) : "schema-failed" => {
        description = "A schema that was uploaded is refused; the object holds the reasons."
        pattern = {
          source      = ["aws.s3"]
          detail-type = ["Object Created"]
          detail      = { bucket = { name = [bucket] }, object = { key = [{ wildcard = "schemas/*/failed/error.json" }] } }
        }
        paths    = { bucket = "$.detail.bucket.name", key = "$.detail.object.key" }
        template = "{\"kind\": \"SCHEMA_FAILED\", \"severity\": \"critical\", \"bucket\": <bucket>, \"key\": <key>, \"message\": \"A schema was refused; the object has the reasons.\"}"
      }
    },
  )
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = local.rules

  name          = "${var.name}-${each.key}"
  description   = each.value.description
  event_pattern = jsonencode(each.value.pattern)
  tags          = var.tags
}

# No role: EventBridge publishes by the topic's own policy, and with a role it fails at encrypted topics.
resource "aws_cloudwatch_event_target" "this" {
  for_each = local.rules

  rule      = aws_cloudwatch_event_rule.this[each.key].name
  target_id = "alerts"
  arn       = aws_sns_topic.alerts.arn

  input_transformer {
    input_paths    = each.value.paths
    input_template = each.value.template
  }
}
