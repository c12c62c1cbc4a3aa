"""Clients of AWS for an environment's region, and waiting that ends."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .finding import DeployError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MISSING: Final = frozenset({"404", "NoSuchKey", "NoSuchBucket", "NotFound"})
T = TypeVar("T")


def client(service: str, region: str) -> Any:
    """A client with timeouts; boto3's types of most of these services are not among our packages."""
    import boto3
    from botocore.config import Config

    limits = Config(connect_timeout=5, read_timeout=60, retries={"mode": "standard", "total_max_attempts": 5})
    session: Any = boto3.Session(region_name=region)
    return session.client(service, config=limits)


@contextmanager
def told_plainly() -> Iterator[None]:
    """What AWS refuses, or can't be asked, is a DeployError in AWS' own words."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise DeployError(f"AWS says: {error}") from error


def code_of(error: Any) -> str:
    """The word by which AWS names an error."""
    return str(error.response.get("Error", {}).get("Code", ""))


def object_or_none(s3: Any, bucket: str, key: str) -> bytes | None:
    """An object's content; None if there is no such object."""
    from botocore.exceptions import ClientError

    try:
        content: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        if code_of(error) in _MISSING:
            return None
        raise
    return content


def waited_for(what: str, look: Callable[[], T | None], seconds: float, pause: float) -> T:
    """What a look finds once it finds something; DeployError if that takes too long."""
    end = time.monotonic() + seconds
    while (seen := look()) is None:
        if time.monotonic() >= end:
            raise DeployError(f"waited {seconds:.0f} s for {what}, in vain")
        time.sleep(pause)
    return seen
