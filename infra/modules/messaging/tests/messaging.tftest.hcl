mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { name = "eu-central-1" }
  }
  mock_resource "aws_sqs_queue" {
    defaults = { arn = "arn:aws:sqs:eu-central-1:000000000000:made" }
  }
}

variables {
  name        = "lean-ops-test"
  topics      = ["events", "orders"]
  kms_key_arn = "arn:aws:kms:eu-central-1:000000000000:key/test"
}

run "a_queue_for_each_topic" {
  command = plan

  assert {
    condition = { for topic, queue in aws_sqs_queue.topic : topic => queue.name } == {
      events = "lean-ops-test-events"
      orders = "lean-ops-test-orders"
    }
    error_message = "the bridge finds a topic's queue by its name"
  }

  assert {
    condition     = alltrue([for queue in aws_sqs_queue.topic : queue.visibility_timeout_seconds == 360])
    error_message = "six times the processor's timeout of 60 s: sooner, a message comes again while it is worked on"
  }

  assert {
    condition     = alltrue([for queue in aws_sqs_queue.topic : queue.message_retention_seconds == 14 * 24 * 3600])
    error_message = "messages wait as long as SQS lets them, an open circuit over a holiday included"
  }

  assert {
    condition = alltrue([
      for queue in concat(values(aws_sqs_queue.topic), [aws_sqs_queue.dlq]) : queue.kms_master_key_id == var.kms_key_arn
    ])
    error_message = "every queue is encrypted with the given key"
  }
}

run "the_dead_letter_queue" {
  command = plan

  assert {
    condition     = aws_sqs_queue.dlq.name == "lean-ops-test-dlq"
    error_message = "the product finds the DLQ by its name"
  }

  assert {
    condition     = aws_sqs_queue.dlq.message_retention_seconds == 14 * 24 * 3600
    error_message = "dead letters are kept for 14 days"
  }

  assert {
    condition     = aws_sqs_queue.dlq.visibility_timeout_seconds == 1800
    error_message = "six times the DLQ processor's timeout of five minutes"
  }

  assert {
    condition = jsondecode(aws_sqs_queue.dlq.redrive_allow_policy) == {
      redrivePermission = "byQueue"
      sourceQueueArns = [
        "arn:aws:sqs:eu-central-1:000000000000:lean-ops-test-events",
        "arn:aws:sqs:eu-central-1:000000000000:lean-ops-test-orders",
      ]
    }
    error_message = "the topics' queues, and no others, may move messages to the DLQ"
  }
}

run "five_receives_then_the_dlq" {
  # The DLQ's ARN is known only once it is there. The provisioners are left out: they would call the AWS CLI.
  command = apply

  variables {
    raise_message_size = false
  }

  assert {
    condition = alltrue([
      for queue in aws_sqs_queue.topic : jsondecode(queue.redrive_policy) == {
        deadLetterTargetArn = aws_sqs_queue.dlq.arn
        maxReceiveCount     = 5
      }
    ])
    error_message = "what fails five times goes to the DLQ, neither sooner nor never"
  }
}

run "messages_of_1_MiB" {
  command = plan

  assert {
    condition     = toset(keys(terraform_data.topic_message_size)) == toset(["events", "orders"])
    error_message = "every topic's queue is raised"
  }

  assert {
    condition     = keys(terraform_data.dlq_message_size) == ["dlq"]
    error_message = "the DLQ is raised, too: it takes what the queues take"
  }

  assert {
    condition     = strcontains(local.raise_message_size, "MaximumMessageSize=1048576")
    error_message = "the product sends up to 1 MiB"
  }
}

run "encrypted_transport_only" {
  command = plan

  assert {
    condition = alltrue([
      for queue in concat(values(aws_sqs_queue.topic), [aws_sqs_queue.dlq]) : alltrue([
        for statement in jsondecode(queue.policy).Statement :
        statement.Effect == "Deny" && statement.Condition.Bool["aws:SecureTransport"] == "false"
        && statement.Resource == "arn:aws:sqs:eu-central-1:000000000000:${queue.name}"
      ])
    ])
    error_message = "every queue refuses whoever comes without TLS, and its policy allows nobody anything"
  }
}

run "more_topics_than_sqs_lists" {
  command = plan

  variables {
    topics = [for number in range(11) : "topic_${number}"]
  }

  assert {
    condition     = jsondecode(aws_sqs_queue.dlq.redrive_allow_policy) == { redrivePermission = "allowAll" }
    error_message = "SQS lists at most ten sources; the eleventh topic must not be refused"
  }
}

run "topic_that_makes_too_long_a_name" {
  command = plan

  variables {
    name   = "a-project-with-a-long-name-staging"
    topics = ["events", "a_topic_whose_name_is_as_long_as_a_topics_name_may_be_it_has_63"]
  }

  expect_failures = [aws_sqs_queue.topic]
}

run "topic_in_another_form" {
  command = plan

  variables {
    topics = ["events", "Order-Lines"]
  }

  expect_failures = [var.topics]
}

run "topic_with_a_reserved_name" {
  command = plan

  variables {
    topics = ["events", "dlq"]
  }

  expect_failures = [var.topics]
}

run "topic_with_a_reserved_ending" {
  command = plan

  variables {
    topics = ["events_staging"]
  }

  expect_failures = [var.topics]
}

run "topic_that_is_listed_twice" {
  command = plan

  variables {
    topics = ["events", "events"]
  }

  expect_failures = [var.topics]
}
