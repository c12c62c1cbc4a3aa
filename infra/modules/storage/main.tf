data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}
data "aws_region" "this" {}

# Buckets that are given stay as they are; only what is made here is configured here.
data "aws_s3_bucket" "given" {
  for_each = var.create_buckets ? {} : local.buckets

  bucket = each.value
}

locals {
  buckets      = { iceberg = var.iceberg_bucket, schema = var.schema_bucket }
  made_buckets = var.create_buckets ? local.buckets : {}
  bucket_arns = {
    for role, name in local.buckets :
    role => var.create_buckets ? aws_s3_bucket.this[role].arn : data.aws_s3_bucket.given[role].arn
  }
}

# Never force_destroy: a bucket that still holds data refuses to be deleted, and that is meant.
resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV_AWS_144:One region is the owner's design; the tables can be copied with Iceberg's own means where a second one is wanted.
  #checkov:skip=CKV2_AWS_62:Nobody reacts to objects of the lake; the schema bucket's events go to EventBridge, see events.tf.
  #checkov:skip=CKV_AWS_18:Access logs are written where access_log_bucket is given; an account with CloudTrail data events needs no second log.
  for_each = local.made_buckets

  bucket = each.value
  tags   = var.tags

  lifecycle {
    precondition {
      condition     = var.iceberg_bucket != var.schema_bucket
      error_message = "iceberg_bucket and schema_bucket are both ${var.iceberg_bucket}: buckets that are made here have different names."
    }
  }
}

resource "aws_s3_bucket_ownership_controls" "this" {
  for_each = aws_s3_bucket.this

  bucket = each.value.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_public_access_block" "this" {
  for_each = aws_s3_bucket.this

  bucket                  = each.value.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_versioning" "this" {
  for_each = aws_s3_bucket.this

  bucket = each.value.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  for_each = aws_s3_bucket.this

  bucket = each.value.id

  rule {
    # One data key a bucket and not one an object: a table has a hundred thousand files, and KMS bills by call.
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = local.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_policy" "this" {
  for_each = local.made_buckets

  bucket = aws_s3_bucket.this[each.key].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TlsOnly"
      Effect    = "Deny"
      Principal = { AWS = "*" }
      Action    = "s3:*" # a denial that names actions would let the next new one through
      Resource = [
        "arn:${data.aws_partition.this.partition}:s3:::${each.value}",
        "arn:${data.aws_partition.this.partition}:s3:::${each.value}/*",
      ]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  # S3 takes one change of a bucket's access at a time.
  depends_on = [aws_s3_bucket_public_access_block.this]
}

resource "aws_s3_bucket_logging" "this" {
  for_each = var.access_log_bucket == null ? {} : local.made_buckets

  bucket        = aws_s3_bucket.this[each.key].id
  target_bucket = var.access_log_bucket
  target_prefix = "${var.name}/${each.key}/"
}
