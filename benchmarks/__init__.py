"""What the product costs, measured against what Spark, Iceberg and others need for the same rows."""
