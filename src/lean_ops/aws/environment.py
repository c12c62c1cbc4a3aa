"""What a function on AWS is told by its environment variables, read once per cold start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lean_ops.model.topic import Topic

PROJECT: Final = "LEAN_OPS_PROJECT"
ENVIRONMENT: Final = "LEAN_OPS_ENVIRONMENT"
DELIVERY_STREAM: Final = "LEAN_OPS_DELIVERY_STREAM"
ARCHIVE_BUCKET: Final = "LEAN_OPS_ARCHIVE_BUCKET"
DATABASE_PREFIX: Final = "LEAN_OPS_DATABASE_PREFIX"

# What may stand in the name of a queue and of a table.
_NAME_PART: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class Deployment:
    """One installation in an account: `{project}-{environment}` begins the name of everything that belongs to it."""

    project: str
    environment: str

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Deployment:
        """The deployment that a function belongs to."""
        project, environment = required(variables, PROJECT, ENVIRONMENT)
        for name, value in ((PROJECT, project), (ENVIRONMENT, environment)):
            if not _NAME_PART.fullmatch(value):
                expected = "1 to 40 letters, digits, '_' or '-'"
                raise WrongUseError("a setting can't be", where=name, found=repr(value), expected=expected)
        return cls(project, environment)

    @property
    def name(self) -> str:
        """What every name of the deployment begins with."""
        return f"{self.project}-{self.environment}"

    def queue(self, topic: str) -> str:
        """The name of a topic's queue."""
        return f"{self.name}-{topic}"

    @property
    def dead_letter_queue(self) -> str:
        """The name of the one queue for what is refused."""
        return f"{self.name}-dlq"

    def table(self, table: str) -> str:
        """The name of a DynamoDB table."""
        return f"{self.name}-{table}"

    def topic_of_queue(self, queue: str) -> Topic:
        """The topic that a queue carries, or WrongUseError when there can be none."""
        if not queue.startswith(f"{self.name}-"):
            raise WrongUseError(
                "not a queue of this deployment", where=f"queue {queue!r}", expected=f"a name like {self.name}-TOPIC"
            )
        return parse_topic(queue.removeprefix(f"{self.name}-"))


@dataclass(frozen=True, slots=True)
class ProcessorEnvironment:
    """What the SQS processor needs to know."""

    deployment: Deployment
    delivery_stream: str
    archive_bucket: str

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> ProcessorEnvironment:
        """The settings, or an error that names all that is missing."""
        required(variables, PROJECT, ENVIRONMENT, DELIVERY_STREAM, ARCHIVE_BUCKET)
        return cls(Deployment.of(variables), *required(variables, DELIVERY_STREAM, ARCHIVE_BUCKET))


@dataclass(frozen=True, slots=True)
class TransformEnvironment:
    """What the Firehose transform needs to know; without a prefix the databases have their plain names."""

    deployment: Deployment
    database_prefix: str

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> TransformEnvironment:
        """The settings, or an error that names all that is missing."""
        return cls(Deployment.of(variables), variables.get(DATABASE_PREFIX, ""))


def required(variables: Mapping[str, str], *names: str) -> tuple[str, ...]:
    """The values of variables that must be there and say something."""
    missing = [name for name in names if not variables.get(name, "").strip()]
    if missing:
        raise TerminalError(
            "the function's settings are incomplete",
            where=f"environment variable {', '.join(missing)}",
            found="nothing",
            remedy="Set it in the function's configuration.",
        )
    return tuple(variables[name] for name in names)


def queue_of_arn(arn: str) -> str:
    """The name of the queue that an ARN stands for."""
    return arn.rpartition(":")[2]
