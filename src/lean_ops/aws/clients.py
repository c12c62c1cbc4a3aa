"""Clients of AWS's services: every call has its timeouts and a bounded number of attempts.

boto3 takes longer to load than everything else together, so it is loaded when the first client is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_firehose import FirehoseClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one attempt of a call may take, and how many attempts the client makes by itself."""

    connect_seconds: float = 2.0
    read_seconds: float = 5.0
    attempts: int = 3

    @property
    def attempt_seconds(self) -> float:
        """How long one attempt takes at the longest."""
        return self.connect_seconds + self.read_seconds

    @property
    def call_seconds(self) -> float:
        """How long a call takes at the longest, the client's own pauses of about a second between attempts included."""
        return self.attempts * (self.attempt_seconds + 1.0)

    def config(self) -> Config:
        """The limits as a client takes them."""
        from botocore.config import Config

        return Config(
            connect_timeout=self.connect_seconds,
            read_timeout=self.read_seconds,
            retries={"mode": "standard", "total_max_attempts": self.attempts},
        )


USUAL: Final = Limits()
# For callers that send again what was refused, in the time that they have.
ONE_ATTEMPT: Final = Limits(attempts=1)
# For what is good to have: its outage must not take the time of what is needed.
BRIEF: Final = Limits(connect_seconds=1.0, read_seconds=1.0, attempts=2)


def firehose_client(limits: Limits = ONE_ATTEMPT) -> FirehoseClient:
    """A client of Firehose."""
    import boto3

    return boto3.client("firehose", config=limits.config())


def sqs_client(limits: Limits = ONE_ATTEMPT) -> SQSClient:
    """A client of SQS."""
    import boto3

    return boto3.client("sqs", config=limits.config())


def s3_client(limits: Limits = USUAL) -> S3Client:
    """A client of S3."""
    import boto3

    return boto3.client("s3", config=limits.config())


def dynamodb_client(limits: Limits = USUAL) -> DynamoDBClient:
    """A client of DynamoDB."""
    import boto3

    return boto3.client("dynamodb", config=limits.config())


def glue_client(limits: Limits = USUAL) -> Any:
    """A client of Glue; boto3's types for it are not among our packages."""
    import boto3

    return boto3.client("glue", config=limits.config())


def secrets_client(limits: Limits = USUAL) -> Any:
    """A client of Secrets Manager; boto3's types for it are not among our packages."""
    import boto3

    return boto3.client("secretsmanager", config=limits.config())


def lambda_client(limits: Limits = USUAL) -> LambdaClient:
    """A client of Lambda."""
    import boto3

    return boto3.client("lambda", config=limits.config())


def sns_client(limits: Limits = BRIEF) -> SNSClient:
    """A client of SNS."""
    import boto3

    return boto3.client("sns", config=limits.config())
