# What the product promises to tell, and who tells it. All of it is published to the topic below.
#
# | alert                             | who publishes it                                                              |
# |-----------------------------------|-------------------------------------------------------------------------------|
# | job failure                       | the job, by topic: JOB_FAILED; the state machine's HandleError; here: a job   |
# |                                   | run that died (rules.tf), an execution that failed (alarm *-executions)       |
# | errors above 5 % / 10 %           | the job: ERROR_RATE                                                           |
# | unbalanced batch                  | the job: UNBALANCED                                                           |
# | variance of a recount             | the recount: RECOUNT_VARIANCE; books that don't balance daily the function    |
# |                                   | health: BOOKS_UNBALANCED                                                      |
# | failed schema                     | here: failed/error.json was written (rules.tf)                                |
# | oldest dead letter > 15 minutes   | here: alarm dlq-age; of letters that were taken late the function: DLQ_AGE    |
# | circuit open                      | the circuit breaker: CIRCUIT_OPEN, CIRCUIT_CLOSED                             |
# | data waits an hour at an open gate| the function health, by topic: DATA_WAITING; here: alarm pipeline-stalled, if |
# |                                   | no topic is processed at all                                                  |
# | topic paused by failures          | the job: TOPIC_PAUSED                                                         |
# | drift (information)               | the function health, once for what is new: DRIFT                              |
#
# Beside these: new topics (discovery: NEW_TOPICS), and alarms on the parts themselves (alarms.tf).
data "aws_caller_identity" "this" {}
data "aws_region" "this" {}

resource "aws_sns_topic" "alerts" {
  name              = "${var.name}-alerts"
  kms_master_key_id = var.kms_key_arn
  tags              = var.tags
}

resource "aws_sns_topic_subscription" "email" {
  for_each = toset(var.alert_emails)

  topic_arn = aws_sns_topic.alerts.arn
  protocol  = "email"
  endpoint  = each.value
}

# Functions, jobs and state machines publish by their own roles; only services need to be let in here.
resource "aws_sns_topic_policy" "alerts" {
  arn = aws_sns_topic.alerts.arn

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "AlarmsOfThisAccount"
        Effect    = "Allow"
        Principal = { Service = "cloudwatch.amazonaws.com" }
        Action    = "sns:Publish"
        Resource  = aws_sns_topic.alerts.arn
        Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.this.account_id } }
      },
      {
        # Without a condition, because EventBridge tells SNS neither its account nor its rule: with one, every alert
        # that comes by a rule would be lost without a word.
        Sid       = "RulesOfEventBridge"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sns:Publish"
        Resource  = aws_sns_topic.alerts.arn
      },
      {
        Sid       = "TlsOnly"
        Effect    = "Deny"
        Principal = { AWS = "*" }
        Action    = "sns:Publish"
        Resource  = aws_sns_topic.alerts.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}
