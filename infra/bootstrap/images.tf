# A repository for each image of each environment: what runs in production is not what somebody tries in dev.

locals {
  repositories = merge([
    for environment, name in local.names : {
      for image in ["lake", "discovery"] : "${name}-${image}" => { environment = environment, functions = "${name}-*" }
    }
  ]...)
}

resource "aws_ecr_repository" "this" {
  for_each = local.repositories

  name                 = each.key
  image_tag_mutability = "IMMUTABLE" # a tag is made of the image's content, so it never means anything else
  tags                 = merge(var.tags, { Environment = each.value.environment })

  image_scanning_configuration {
    scan_on_push = true
  }

  encryption_configuration {
    encryption_type = "KMS"
    kms_key         = aws_kms_key.this.arn
  }
}

resource "aws_ecr_lifecycle_policy" "this" {
  for_each = aws_ecr_repository.this

  repository = each.value.name
  policy = jsonencode({
    rules = [{
      rulePriority = 1
      description  = "The newest ${var.images_kept}"
      selection    = { tagStatus = "any", countType = "imageCountMoreThan", countNumber = var.images_kept }
      action       = { type = "expire" }
    }]
  })
}

# Lambda takes the image by itself, and again when it has been idle for weeks.
resource "aws_ecr_repository_policy" "this" {
  for_each = local.repositories

  repository = aws_ecr_repository.this[each.key].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "FunctionsOfTheEnvironment"
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
      Condition = {
        ArnLike = { "aws:SourceArn" = "arn:${local.partition}:lambda:${var.region}:${local.account}:function:${each.value.functions}" }
      }
    }]
  })
}
