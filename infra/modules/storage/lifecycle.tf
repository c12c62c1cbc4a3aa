# What expires, and nothing else: bodies that are too large to travel, once the dead letter's archive has its own copy.
# Tables belong to Iceberg's own maintenance, dlq-archive/ is kept for good, and firehose-errors/ holds records that
# somebody still has to bring back.
locals {
  noncurrent_days = {
    iceberg = {
      "warehouse/"       = 30
      "dlq-archive/"     = 30
      "oversized/"       = 30
      "firehose-errors/" = 30
      # A job may be rolled back to what it ran a while ago.
      "artifacts/" = 90
    }
    schema = {
      "schemas/"   = 30
      "discovery/" = 30
    }
  }
  expired_after_days = {
    iceberg = { "oversized/" = 30 }
    schema  = {}
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  for_each = local.made_buckets

  bucket = aws_s3_bucket.this[each.key].id

  rule {
    id     = "unfinished"
    status = "Enabled"

    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }

    # Markers of deleted objects whose last version is gone: Iceberg deletes many files, and markers slow every listing.
    expiration {
      expired_object_delete_marker = true
    }
  }

  dynamic "rule" {
    for_each = local.noncurrent_days[each.key]

    content {
      id     = "noncurrent-${trimsuffix(rule.key, "/")}"
      status = "Enabled"

      filter {
        prefix = rule.key
      }

      noncurrent_version_expiration {
        noncurrent_days = rule.value
      }
    }
  }

  dynamic "rule" {
    for_each = local.expired_after_days[each.key]

    content {
      id     = "expired-${trimsuffix(rule.key, "/")}"
      status = "Enabled"

      filter {
        prefix = rule.key
      }

      expiration {
        days = rule.value
      }
    }
  }

  # Rules about versions mean nothing before there are versions.
  depends_on = [aws_s3_bucket_versioning.this]
}
