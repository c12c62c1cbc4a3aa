# The environments of infra/environments: the same names, buckets and prefixes.
environments = {
  dev = {
    buckets         = ["lean-ops-development-iceberg", "lean-ops-development-schemas"]
    database_prefix = "dev_"
  }
  staging = {
    buckets         = ["lean-ops-staging-iceberg", "lean-ops-staging-schemas"]
    database_prefix = "staging_"
  }
  prod = {
    buckets = ["lean-ops-production-iceberg", "lean-ops-production-schemas"]
  }
}
