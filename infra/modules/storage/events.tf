# A bucket has one notification setting, which this takes over as a whole. EventBridge gets every event, and rules there
# decide: uploads to pending/ start the schema validator, failed/error.json raises an alert.
resource "aws_s3_bucket_notification" "schema" {
  for_each = toset(var.manage_schema_bucket_notification ? ["schema"] : [])

  bucket      = var.create_buckets ? aws_s3_bucket.this["schema"].id : data.aws_s3_bucket.given["schema"].id
  eventbridge = true
}
