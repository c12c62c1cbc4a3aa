"""Objects of a bucket, behind a port that is as small as what is asked of it."""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol, cast

from lean_ops.aws.calls import calling
from lean_ops.aws.faults import code_of
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from mypy_boto3_s3 import S3Client


class MissingObjectError(TerminalError):
    """There is no object under that key."""


class Objects(Protocol):
    """Bytes under keys; an object is there whole or not at all."""

    def put(self, key: str, content: IO[bytes]) -> None:
        """Keep a file's content under a key, in the place of what was there."""

    def add(self, key: str, content: IO[bytes]) -> bool:
        """Keep a file's content under a key; False, and nothing changes, if there is an object already."""

    def opened(self, key: str) -> AbstractContextManager[IO[bytes]]:
        """An object to be read piece by piece; MissingObjectError if there is none."""

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys that begin so, in their order."""


@dataclass(frozen=True, slots=True)
class BucketObjects:
    """The objects of a bucket of S3."""

    client: S3Client
    bucket: str

    def put(self, key: str, content: IO[bytes]) -> None:
        """Keep a file's content as an object, in the place of what was there."""
        with calling(self._place(key)):
            self.client.put_object(Bucket=self.bucket, Key=key, Body=content, ContentType="application/json")

    def add(self, key: str, content: IO[bytes]) -> bool:
        """Keep a file's content as an object; False, and nothing changes, if there is one already."""
        from botocore.exceptions import ClientError

        with calling(self._place(key)):
            try:
                self.client.put_object(
                    Bucket=self.bucket, Key=key, Body=content, ContentType="application/json", IfNoneMatch="*"
                )
            except ClientError as error:
                if code_of(error) in {"PreconditionFailed", "412"}:
                    return False
                raise
        return True

    @contextmanager
    def opened(self, key: str) -> Iterator[IO[bytes]]:
        """An object to be read piece by piece; MissingObjectError if there is none."""
        from botocore.exceptions import ClientError

        with calling(self._place(key)):
            try:
                body = self.client.get_object(Bucket=self.bucket, Key=key)["Body"]
            except ClientError as error:
                if code_of(error) in {"NoSuchKey", "404"}:
                    raise MissingObjectError("there is no such object", where=self._place(key)) from error
                raise
            with body:
                # Reads a line without asking for it byte by byte.
                yield io.BufferedReader(cast("io.RawIOBase", body))

    def keys(self, prefix: str) -> Iterator[str]:
        """The keys that begin so, page by page."""
        with calling(self._place(prefix)):
            for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
                yield from (entry["Key"] for entry in page.get("Contents", ()))

    def _place(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"
