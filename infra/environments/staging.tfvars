# As production, with fewer topics.
environment    = "staging"
region         = "eu-central-1"
topics         = ["events", "orders", "payments"]
iceberg_bucket = "lean-ops-staging-iceberg"
schema_bucket  = "lean-ops-staging-schemas"

database_prefix    = "staging_"
map_concurrency    = 10
log_retention_days = 14
