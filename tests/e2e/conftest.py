"""Ingestion on AWS runs on real servers; they start when a test first asks for them."""

from tests.integration.aws.catalogs import strict_glue
from tests.servers.fixtures import dynamodb, elasticmq, pubsub, seaweed

__all__ = ["dynamodb", "elasticmq", "pubsub", "seaweed", "strict_glue"]
