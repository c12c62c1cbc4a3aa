# A small environment to try things: few topics, the least machines, little kept. What is not here is given by `make`:
# the images, and the version of the artifacts.
environment    = "dev"
region         = "eu-central-1"
topics         = ["events", "orders", "payments"]
iceberg_bucket = "lean-ops-development-iceberg"
schema_bucket  = "lean-ops-development-schemas"

database_prefix     = "dev_"
glue_workers        = 2
map_concurrency     = 5
topic_concurrency   = 2
deletion_protection = false
schedules_enabled   = false # runs are started by hand, and cost nothing in between
log_retention_days  = 7
