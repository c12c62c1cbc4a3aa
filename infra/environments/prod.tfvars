# Production. Its topics are not here: discovery keeps them in discovery/topics.auto.tfvars.json of the schema bucket.
# Put that file beside main.tf, where Terraform reads it by itself; a list in this file would be taken instead of it.
environment    = "prod"
region         = "eu-central-1"
iceberg_bucket = "lean-ops-production-iceberg"
schema_bucket  = "lean-ops-production-schemas"

group_size         = 25
map_concurrency    = 30
glue_worker_type   = "G.1X"
glue_workers       = 4
topic_concurrency  = 5
log_retention_days = 90
