resource "aws_iam_role" "this" {
  name = "${local.stream_name}-firehose"
  tags = var.tags

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OurStreams"
      Effect    = "Allow"
      Principal = { Service = "firehose.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.this.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  name = "delivery"
  role = aws_iam_role.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "CommitToRawTables"
        Effect   = "Allow"
        Action   = ["glue:GetDatabase", "glue:GetTable", "glue:UpdateTable"]
        Resource = [var.catalog_arn, var.raw_database_arn, var.raw_table_arn_pattern]
      },
      {
        Sid    = "FilesOfRawTables"
        Effect = "Allow"
        Action = [
          "s3:AbortMultipartUpload",
          "s3:DeleteObject", # its own files, when a commit fails
          "s3:GetObject",
          "s3:PutObject",
        ]
        Resource = "${var.iceberg_bucket_arn}/warehouse/${var.raw_database_name}/*"
      },
      {
        Sid      = "UndeliveredRecords"
        Effect   = "Allow"
        Action   = ["s3:AbortMultipartUpload", "s3:PutObject"]
        Resource = "${var.iceberg_bucket_arn}/${local.errors_prefix}*"
      },
      {
        # These are permissions of the bucket as a whole. Listing is not limited to a prefix: without it S3 answers
        # "forbidden" in the place of "not there" to whoever asks for a single object.
        Sid      = "TheBucket"
        Effect   = "Allow"
        Action   = ["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"]
        Resource = var.iceberg_bucket_arn
      },
      {
        Sid      = "Transform"
        Effect   = "Allow"
        Action   = ["lambda:GetFunctionConfiguration", "lambda:InvokeFunction"]
        Resource = [var.transform_function_arn, "${var.transform_function_arn}:$LATEST"]
      },
      {
        Sid      = "KeyThroughS3AndFirehose"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = var.kms_key_arn
        Condition = {
          StringEquals = {
            "kms:ViaService" = [for service in ["firehose", "s3"] : "${service}.${data.aws_region.this.name}.amazonaws.com"]
          }
        }
      },
      {
        Sid      = "OwnLog"
        Effect   = "Allow"
        Action   = "logs:PutLogEvents"
        Resource = "arn:${data.aws_partition.this.partition}:logs:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:log-group:${aws_cloudwatch_log_group.this.name}:log-stream:*"
      },
    ]
  })
}
