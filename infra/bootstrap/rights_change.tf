# What only the roles that deploy may do.
#
# Who may make roles for functions can give these roles any rights. That can't be narrowed here without knowing each
# policy of infra/ twice; an organisation bounds it from above, by a service control policy or a permissions boundary.

locals {
  change = {
    for environment, name in local.names : environment => {
      change-state = {
        changes = true
        statements = [
          # The lock is an object beside the state.
          {
            Sid      = "State"
            Effect   = "Allow"
            Action   = ["s3:PutObject"]
            Resource = ["${local.state_arn}/${var.project_name}/${environment}.tfstate", "${local.state_arn}/${var.project_name}/${environment}.tfstate.tflock"]
          },
          {
            Sid      = "Lock"
            Effect   = "Allow"
            Action   = ["s3:GetObject", "s3:DeleteObject"]
            Resource = "${local.state_arn}/${var.project_name}/${environment}.tfstate.tflock"
          },
          { Sid = "Key", Effect = "Allow", Action = ["kms:GenerateDataKey"], Resource = aws_kms_key.this.arn },
          {
            Sid    = "PushImages"
            Effect = "Allow"
            Action = [
              "ecr:BatchCheckLayerAvailability", "ecr:CompleteLayerUpload", "ecr:GetDownloadUrlForLayer",
              "ecr:InitiateLayerUpload", "ecr:PutImage", "ecr:UploadLayerPart",
            ]
            Resource = "${local.arn["ecr"]}:repository/${name}-*"
          },
          # A token is for the account's registry as a whole.
          { Sid = "Registry", Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = "*" },
        ]
      }

      change-data = {
        changes = true
        statements = concat([
          {
            Sid    = "Buckets"
            Effect = "Allow"
            Action = [
              "s3:CreateBucket", "s3:DeleteBucketPolicy", "s3:PutBucketLogging", "s3:PutBucketNotification",
              "s3:PutBucketOwnershipControls", "s3:PutBucketPolicy", "s3:PutBucketPublicAccessBlock",
              "s3:PutBucketTagging", "s3:PutBucketVersioning", "s3:PutEncryptionConfiguration",
              "s3:PutLifecycleConfiguration",
            ]
            Resource = [for bucket in var.environments[environment].buckets : "arn:${local.partition}:s3:::${bucket}"]
          },
          {
            Sid    = "ArtifactsAndSchemas"
            Effect = "Allow"
            Action = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject", "s3:PutObjectTagging"]
            Resource = flatten([
              for bucket in var.environments[environment].buckets : [
                for prefix in ["artifacts", "schemas"] : "arn:${local.partition}:s3:::${bucket}/${prefix}/*"
              ]
            ])
          },
          merge(local.keys[environment], {
            Sid    = "UseKey"
            Effect = "Allow"
            Action = ["kms:CreateGrant", "kms:Encrypt", "kms:GenerateDataKey"]
          }),
          {
            Sid    = "State"
            Effect = "Allow"
            Action = [
              "dynamodb:CreateTable", "dynamodb:DeleteTable", "dynamodb:TagResource", "dynamodb:UntagResource",
              "dynamodb:UpdateContinuousBackups", "dynamodb:UpdateTable", "dynamodb:UpdateTimeToLive",
            ]
            Resource = "${local.arn["dynamodb"]}:table/${name}-*"
          },
          {
            Sid      = "Catalog"
            Effect   = "Allow"
            Action   = ["glue:CreateDatabase", "glue:DeleteDatabase", "glue:TagResource", "glue:UntagResource", "glue:UpdateDatabase"]
            Resource = concat(["${local.arn["glue"]}:catalog"], local.databases[environment])
          },
          {
            Sid      = "Queues"
            Effect   = "Allow"
            Action   = ["sqs:CreateQueue", "sqs:DeleteQueue", "sqs:SetQueueAttributes", "sqs:TagQueue", "sqs:UntagQueue"]
            Resource = "${local.arn["sqs"]}:${name}-*"
          },
          {
            Sid      = "Alerts"
            Effect   = "Allow"
            Action   = ["sns:CreateTopic", "sns:DeleteTopic", "sns:SetTopicAttributes", "sns:Subscribe", "sns:TagResource", "sns:Unsubscribe", "sns:UntagResource"]
            Resource = "${local.arn["sns"]}:${name}-alerts*"
          },
          ], [for statement in [
            # A key has no name before it is made; what it must be given are the environment's tags.
            {
              Sid       = "MakeKey"
              Effect    = "Allow"
              Action    = ["kms:CreateKey", "kms:TagResource"]
              Resource  = "*"
              Condition = { StringEquals = { "aws:RequestTag/Project" = var.project_name, "aws:RequestTag/Environment" = environment } }
            },
            merge(local.keys[environment], {
              Sid    = "KeepKey"
              Effect = "Allow"
              Action = [
                "kms:CreateAlias", "kms:DeleteAlias", "kms:EnableKeyRotation", "kms:PutKeyPolicy",
                "kms:ScheduleKeyDeletion", "kms:TagResource", "kms:UntagResource", "kms:UpdateAlias",
                "kms:UpdateKeyDescription",
              ]
            }),
            { Sid = "Alias", Effect = "Allow", Action = ["kms:CreateAlias", "kms:DeleteAlias", "kms:UpdateAlias"], Resource = "${local.arn["kms"]}:alias/${name}" },
        ] : statement if var.environments[environment].kms_key_arn == null])
      }

      change-work = {
        changes = true
        statements = [
          {
            Sid    = "Functions"
            Effect = "Allow"
            Action = [
              "lambda:AddPermission", "lambda:CreateFunction", "lambda:DeleteFunction",
              "lambda:DeleteFunctionConcurrency", "lambda:DeleteFunctionEventInvokeConfig", "lambda:InvokeFunction",
              "lambda:PutFunctionConcurrency", "lambda:PutFunctionEventInvokeConfig", "lambda:RemovePermission",
              "lambda:TagResource", "lambda:UntagResource", "lambda:UpdateFunctionCode",
              "lambda:UpdateFunctionConfiguration", "lambda:UpdateFunctionEventInvokeConfig",
            ]
            Resource = "${local.arn["lambda"]}:function:${name}-*"
          },
          # A mapping's id is not known before it is made, so it is named by the function that it belongs to.
          {
            Sid       = "Mappings"
            Effect    = "Allow"
            Action    = ["lambda:CreateEventSourceMapping", "lambda:DeleteEventSourceMapping", "lambda:UpdateEventSourceMapping"]
            Resource  = "*"
            Condition = { ArnLike = { "lambda:FunctionArn" = "${local.arn["lambda"]}:function:${name}-*" } }
          },
          {
            Sid      = "MappingsTags"
            Effect   = "Allow"
            Action   = ["lambda:TagResource", "lambda:UntagResource"]
            Resource = "${local.arn["lambda"]}:event-source-mapping:*"
          },
          {
            Sid      = "Jobs"
            Effect   = "Allow"
            Action   = ["glue:CreateJob", "glue:DeleteJob", "glue:TagResource", "glue:UntagResource", "glue:UpdateJob"]
            Resource = "${local.arn["glue"]}:job/${name}-*"
          },
          # Glue knows no resource for security configurations, and CloudWatch Logs none for the delivery of logs.
          {
            Sid    = "WithoutResource"
            Effect = "Allow"
            Action = [
              "glue:CreateSecurityConfiguration", "glue:DeleteSecurityConfiguration", "logs:CreateLogDelivery",
              "logs:DeleteLogDelivery", "logs:DescribeResourcePolicies", "logs:GetLogDelivery",
              "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
            ]
            Resource = "*"
          },
          {
            Sid    = "Logs"
            Effect = "Allow"
            Action = [
              "logs:AssociateKmsKey", "logs:CreateLogGroup", "logs:CreateLogStream", "logs:DeleteLogGroup",
              "logs:DeleteLogStream", "logs:DisassociateKmsKey", "logs:PutRetentionPolicy", "logs:TagResource",
              "logs:UntagResource",
            ]
            Resource = flatten([for group in local.log_groups[environment] : [group, "${group}:*"]])
          },
          {
            Sid    = "Stream"
            Effect = "Allow"
            Action = [
              "firehose:CreateDeliveryStream", "firehose:DeleteDeliveryStream", "firehose:StartDeliveryStreamEncryption",
              "firehose:StopDeliveryStreamEncryption", "firehose:TagDeliveryStream", "firehose:UntagDeliveryStream",
              "firehose:UpdateDestination",
            ]
            Resource = "${local.arn["firehose"]}:deliverystream/${name}-raw"
          },
        ]
      }

      change-control = {
        changes = true
        statements = [
          {
            Sid      = "Machines"
            Effect   = "Allow"
            Action   = ["states:CreateStateMachine", "states:DeleteStateMachine", "states:TagResource", "states:UntagResource", "states:UpdateStateMachine"]
            Resource = "${local.arn["states"]}:stateMachine:${name}-*"
          },
          {
            Sid    = "Schedules"
            Effect = "Allow"
            Action = [
              "scheduler:CreateSchedule", "scheduler:CreateScheduleGroup", "scheduler:DeleteSchedule",
              "scheduler:DeleteScheduleGroup", "scheduler:TagResource", "scheduler:UntagResource",
              "scheduler:UpdateSchedule",
            ]
            Resource = ["${local.arn["scheduler"]}:schedule-group/${name}", "${local.arn["scheduler"]}:schedule/${name}/*"]
          },
          {
            Sid      = "Rules"
            Effect   = "Allow"
            Action   = ["events:DeleteRule", "events:PutRule", "events:PutTargets", "events:RemoveTargets", "events:TagResource", "events:UntagResource"]
            Resource = "${local.arn["events"]}:rule/${name}-*"
          },
          {
            Sid      = "Alarms"
            Effect   = "Allow"
            Action   = ["cloudwatch:DeleteAlarms", "cloudwatch:DeleteDashboards", "cloudwatch:PutDashboard", "cloudwatch:PutMetricAlarm", "cloudwatch:TagResource", "cloudwatch:UntagResource"]
            Resource = ["${local.arn["cloudwatch"]}:alarm:${name}-*", "arn:${local.partition}:cloudwatch::${local.account}:dashboard/${name}*"]
          },
          {
            Sid    = "Roles"
            Effect = "Allow"
            Action = [
              "iam:CreateRole", "iam:DeleteRole", "iam:DeleteRolePolicy", "iam:PutRolePolicy", "iam:TagRole",
              "iam:UntagRole", "iam:UpdateAssumeRolePolicy", "iam:UpdateRole", "iam:UpdateRoleDescription",
            ]
            Resource = "arn:${local.partition}:iam::${local.account}:role/${name}-*"
          },
          {
            Sid       = "GiveRoles"
            Effect    = "Allow"
            Action    = ["iam:PassRole"]
            Resource  = "arn:${local.partition}:iam::${local.account}:role/${name}-*"
            Condition = { StringEquals = { "iam:PassedToService" = [for service in ["firehose", "glue", "lambda", "scheduler", "states"] : "${service}.amazonaws.com"] } }
          },
        ]
      }
    }
  }
}
