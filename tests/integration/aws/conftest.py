"""The edges on AWS are tested against real servers."""

from tests.servers.fixtures import dynamodb, elasticmq, moto, pubsub, seaweed

__all__ = ["dynamodb", "elasticmq", "moto", "pubsub", "seaweed"]
