# What Terraform of infra/, and the uploads around it, call: by environment and subject, on what begins with the
# environment's name. What is seen stands here and is for both roles; what is changed stands in rights_change.tf.

locals {
  arn = {
    for service in ["dynamodb", "ecr", "events", "firehose", "glue", "kms", "lambda", "logs", "scheduler", "sns", "sqs", "states", "cloudwatch"] :
    service => "arn:${local.partition}:${service}:${var.region}:${local.account}"
  }
  state_arn = "arn:${local.partition}:s3:::${var.state_bucket}"

  # A key that infra/ makes is known by its tags, because its id is anybody's guess; one that is given, by its ARN.
  keys = {
    for environment, how in var.environments : environment => how.kms_key_arn == null ? {
      Resource  = "${local.arn["kms"]}:key/*"
      Condition = { StringEquals = { "aws:ResourceTag/Project" = var.project_name, "aws:ResourceTag/Environment" = environment } }
      } : {
      Resource  = how.kms_key_arn
      Condition = {}
    }
  }

  databases = {
    for environment, how in var.environments : environment => flatten([
      for database in ["iceberg_raw_db", "iceberg_standardized_db", "iceberg_curated_db", "ops_db"] : [
        for what in ["database/%s", "table/%s/*", "userDefinedFunction/%s/*"] :
        "${local.arn["glue"]}:${format(what, "${how.database_prefix}${database}")}"
      ]
    ])
  }

  log_groups = {
    for environment, name in local.names : environment => [
      for group in ["/aws/lambda/${name}-*", "/aws-glue/${name}*", "/aws/kinesisfirehose/${name}-*", "/aws/vendedlogs/states/${name}-*"] :
      "${local.arn["logs"]}:log-group:${group}"
    ]
  }

  see = {
    for environment, name in local.names : environment => {
      see-state = {
        changes = false
        statements = [
          { Sid = "State", Effect = "Allow", Action = ["s3:GetObject"], Resource = "${local.state_arn}/${var.project_name}/${environment}.tfstate" },
          { Sid = "Bucket", Effect = "Allow", Action = ["s3:ListBucket"], Resource = local.state_arn },
          { Sid = "Key", Effect = "Allow", Action = ["kms:Decrypt"], Resource = aws_kms_key.this.arn },
        ]
      }

      see-data = {
        changes = false
        statements = [
          {
            Sid    = "Buckets"
            Effect = "Allow"
            Action = [
              "s3:GetAccelerateConfiguration", "s3:GetBucketAcl", "s3:GetBucketCORS", "s3:GetBucketLocation",
              "s3:GetBucketLogging", "s3:GetBucketNotification", "s3:GetBucketObjectLockConfiguration",
              "s3:GetBucketOwnershipControls", "s3:GetBucketPolicy", "s3:GetBucketPublicAccessBlock",
              "s3:GetBucketRequestPayment", "s3:GetBucketTagging", "s3:GetBucketVersioning", "s3:GetBucketWebsite",
              "s3:GetEncryptionConfiguration", "s3:GetLifecycleConfiguration", "s3:GetReplicationConfiguration",
              "s3:ListBucket",
            ]
            Resource = [for bucket in var.environments[environment].buckets : "arn:${local.partition}:s3:::${bucket}"]
          },
          {
            Sid      = "Artifacts"
            Effect   = "Allow"
            Action   = ["s3:GetObject", "s3:GetObjectTagging"]
            Resource = [for bucket in var.environments[environment].buckets : "arn:${local.partition}:s3:::${bucket}/artifacts/*"]
          },
          merge(local.keys[environment], {
            Sid    = "Key"
            Effect = "Allow"
            Action = ["kms:DescribeKey", "kms:GetKeyPolicy", "kms:GetKeyRotationStatus", "kms:ListResourceTags", "kms:Decrypt"]
          }),
          # KMS knows no resource for this list.
          { Sid = "Aliases", Effect = "Allow", Action = ["kms:ListAliases"], Resource = "*" },
          {
            Sid    = "State"
            Effect = "Allow"
            Action = [
              "dynamodb:DescribeContinuousBackups", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive",
              "dynamodb:ListTagsOfResource",
            ]
            Resource = "${local.arn["dynamodb"]}:table/${name}-*"
          },
          {
            Sid      = "Catalog"
            Effect   = "Allow"
            Action   = ["glue:GetDatabase", "glue:GetTags"]
            Resource = concat(["${local.arn["glue"]}:catalog"], local.databases[environment])
          },
          {
            Sid      = "Queues"
            Effect   = "Allow"
            Action   = ["sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:ListQueueTags"]
            Resource = "${local.arn["sqs"]}:${name}-*"
          },
          {
            Sid      = "Alerts"
            Effect   = "Allow"
            Action   = ["sns:GetTopicAttributes", "sns:ListTagsForResource", "sns:GetSubscriptionAttributes"]
            Resource = "${local.arn["sns"]}:${name}-alerts*"
          },
        ]
      }

      see-work = {
        changes = false
        statements = [
          {
            Sid    = "Functions"
            Effect = "Allow"
            Action = [
              "lambda:GetFunction", "lambda:GetFunctionCodeSigningConfig", "lambda:GetFunctionConcurrency",
              "lambda:GetFunctionEventInvokeConfig", "lambda:GetPolicy", "lambda:ListTags",
              "lambda:ListVersionsByFunction",
            ]
            Resource = "${local.arn["lambda"]}:function:${name}-*"
          },
          {
            Sid      = "Mappings"
            Effect   = "Allow"
            Action   = ["lambda:GetEventSourceMapping", "lambda:ListTags"]
            Resource = "${local.arn["lambda"]}:event-source-mapping:*"
          },
          # Lambda knows no resource for this list, Glue none for security configurations, CloudWatch Logs none for groups
          # that are looked for, and Step Functions none for a definition that is only judged.
          {
            Sid    = "Lists"
            Effect = "Allow"
            Action = [
              "glue:GetSecurityConfiguration", "lambda:ListEventSourceMappings", "logs:DescribeLogGroups",
              "states:ValidateStateMachineDefinition",
            ]
            Resource = "*"
          },
          { Sid = "Jobs", Effect = "Allow", Action = ["glue:GetJob", "glue:GetTags"], Resource = "${local.arn["glue"]}:job/${name}-*" },
          {
            Sid      = "Logs"
            Effect   = "Allow"
            Action   = ["logs:DescribeLogStreams", "logs:ListTagsForResource"]
            Resource = flatten([for group in local.log_groups[environment] : [group, "${group}:*"]])
          },
          {
            Sid      = "Stream"
            Effect   = "Allow"
            Action   = ["firehose:DescribeDeliveryStream", "firehose:ListTagsForDeliveryStream"]
            Resource = "${local.arn["firehose"]}:deliverystream/${name}-raw"
          },
          {
            Sid      = "Machines"
            Effect   = "Allow"
            Action   = ["states:DescribeStateMachine", "states:ListStateMachineVersions", "states:ListTagsForResource"]
            Resource = "${local.arn["states"]}:stateMachine:${name}-*"
          },
          {
            Sid      = "Schedules"
            Effect   = "Allow"
            Action   = ["scheduler:GetSchedule", "scheduler:GetScheduleGroup", "scheduler:ListTagsForResource"]
            Resource = ["${local.arn["scheduler"]}:schedule-group/${name}", "${local.arn["scheduler"]}:schedule/${name}/*"]
          },
          {
            Sid      = "Rules"
            Effect   = "Allow"
            Action   = ["events:DescribeRule", "events:ListTagsForResource", "events:ListTargetsByRule"]
            Resource = "${local.arn["events"]}:rule/${name}-*"
          },
          {
            Sid      = "Alarms"
            Effect   = "Allow"
            Action   = ["cloudwatch:DescribeAlarms", "cloudwatch:GetDashboard", "cloudwatch:ListTagsForResource"]
            Resource = ["${local.arn["cloudwatch"]}:alarm:${name}-*", "arn:${local.partition}:cloudwatch::${local.account}:dashboard/${name}*"]
          },
          {
            Sid      = "Roles"
            Effect   = "Allow"
            Action   = ["iam:GetRole", "iam:GetRolePolicy", "iam:ListAttachedRolePolicies", "iam:ListInstanceProfilesForRole", "iam:ListRolePolicies"]
            Resource = "arn:${local.partition}:iam::${local.account}:role/${name}-*"
          },
          {
            Sid      = "Images"
            Effect   = "Allow"
            Action   = ["ecr:BatchGetImage", "ecr:DescribeImages", "ecr:DescribeRepositories"]
            Resource = "${local.arn["ecr"]}:repository/${name}-*"
          },
        ]
      }
    }
  }
}
