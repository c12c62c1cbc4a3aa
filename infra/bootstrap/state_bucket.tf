# Terraform's state: one object for each environment, {project}/{environment}.tfstate, locked by S3 itself
# (`use_lockfile`), so there is no table of locks.

resource "aws_s3_bucket" "state" {
  #checkov:skip=CKV_AWS_144:One region is the owner's design; versions of the state are kept, and it can be imported anew.
  #checkov:skip=CKV2_AWS_62:Nobody reacts to a new version of the state.
  #checkov:skip=CKV_AWS_18:Access logs are written where access_log_bucket is given; an account with CloudTrail data events needs no second log.
  bucket = var.state_bucket
  tags   = var.tags

  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_s3_bucket_ownership_controls" "state" {
  bucket = aws_s3_bucket.state.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_public_access_block" "state" {
  bucket                  = aws_s3_bucket.state.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_versioning" "state" {
  bucket = aws_s3_bucket.state.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "state" {
  bucket = aws_s3_bucket.state.id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.this.arn
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "state" {
  bucket = aws_s3_bucket.state.id

  rule {
    id     = "old-versions"
    status = "Enabled"

    filter {}

    # Long enough to find out, half a year later, what an apply had done.
    noncurrent_version_expiration {
      noncurrent_days = 180
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }

  # Rules about versions mean nothing before there are versions.
  depends_on = [aws_s3_bucket_versioning.state]
}

resource "aws_s3_bucket_policy" "state" {
  bucket = aws_s3_bucket.state.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TlsOnly"
      Effect    = "Deny"
      Principal = { AWS = "*" }
      Action    = "s3:*" # a denial that names actions would let the next new one through
      Resource = [
        "arn:${local.partition}:s3:::${var.state_bucket}",
        "arn:${local.partition}:s3:::${var.state_bucket}/*",
      ]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  # S3 takes one change of a bucket's access at a time.
  depends_on = [aws_s3_bucket_public_access_block.state]
}

resource "aws_s3_bucket_logging" "state" {
  for_each = var.access_log_bucket == null ? {} : { this = var.access_log_bucket }

  bucket        = aws_s3_bucket.state.id
  target_bucket = each.value
  target_prefix = "${var.project_name}/terraform-state/"
}
