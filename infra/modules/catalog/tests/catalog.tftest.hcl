mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "000000000000" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { name = "eu-central-1" }
  }
}

variables {
  name      = "lean-ops-test"
  warehouse = "s3://lake/warehouse"
}

run "databases_are_those_of_the_code" {
  command = plan

  assert {
    condition = { for zone, database in aws_glue_catalog_database.this : zone => database.name } == {
      raw          = "iceberg_raw_db"
      standardized = "iceberg_standardized_db"
      curated      = "iceberg_curated_db"
      ops          = "ops_db"
    }
    error_message = "the product knows exactly these four databases"
  }

  assert {
    condition     = aws_glue_catalog_database.this["raw"].location_uri == "s3://lake/warehouse/iceberg_raw_db"
    error_message = "a database lies in the warehouse under its own name, where the product looks for its tables"
  }

  assert {
    condition     = output.catalog_arn == "arn:aws:glue:eu-central-1:000000000000:catalog"
    error_message = "the catalog is the account's own"
  }

  assert {
    condition     = output.table_arn_patterns["ops"] == "arn:aws:glue:eu-central-1:000000000000:table/ops_db/*"
    error_message = "a zone's pattern takes in its own tables only"
  }
}

run "prefix_separates_environments" {
  command = plan

  variables {
    database_prefix = "dev_"
    warehouse       = "s3://lake/warehouse/"
  }

  assert {
    condition     = alltrue([for database in aws_glue_catalog_database.this : startswith(database.name, "dev_")])
    error_message = "the prefix begins every database's name"
  }

  assert {
    condition     = aws_glue_catalog_database.this["curated"].location_uri == "s3://lake/warehouse/dev_iceberg_curated_db"
    error_message = "environments with a prefix each have their own folder"
  }

  assert {
    condition     = output.table_arn_patterns["raw"] == "arn:aws:glue:eu-central-1:000000000000:table/dev_iceberg_raw_db/*"
    error_message = "patterns follow the prefix"
  }
}

run "prefix_that_the_product_refuses" {
  command = plan

  variables {
    database_prefix = "Dev-"
  }

  expect_failures = [var.database_prefix]
}

run "warehouse_that_is_no_folder_of_a_bucket" {
  command = plan

  variables {
    warehouse = "lake/warehouse"
  }

  expect_failures = [var.warehouse]
}
