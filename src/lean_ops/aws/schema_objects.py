"""Schema files in a bucket: what must not be overtaken is written on condition, which S3 itself checks."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from lean_ops.aws.calls import calling
from lean_ops.aws.faults import code_of
from lean_ops.model.stored_file import MovedError, Stored
from lean_ops.model.strict_json import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client

PREFIX: Final = "schemas/"
_MISSING: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_REFUSED: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409", *_MISSING})


class S3SchemaFiles:
    """The schema files of one bucket, under `schemas/`."""

    def __init__(self, s3: S3Client, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def place(self, key: str) -> str:
        """The object's address."""
        return f"s3://{self._bucket}/{PREFIX}{key}"

    def read(self, key: str) -> Stored | None:
        """The object; of one that is larger than any schema may be, its beginning, so that it is refused for that."""
        from botocore.exceptions import ClientError

        with calling(self.place(key)):
            try:
                answer = self._s3.get_object(Bucket=self._bucket, Key=PREFIX + key)
            except ClientError as error:
                if code_of(error) in _MISSING:
                    return None
                raise
            with answer["Body"] as body:
                return Stored(body.read(MAX_BYTES + 1), answer["ETag"])

    def write(self, key: str, content: bytes) -> None:
        """Write the object, whatever was there."""
        with calling(self.place(key)):
            self._put(key, content)

    def replace(self, key: str, content: bytes, seen: Stored | None) -> None:
        """Write the object if it is still as it was seen."""
        condition = {"IfNoneMatch": "*"} if seen is None else {"IfMatch": seen.tag}
        with calling(self.place(key)), self._on_condition(key):
            self._put(key, content, **condition)

    def _put(self, key: str, content: bytes, **condition: Any) -> None:
        self._s3.put_object(
            Bucket=self._bucket, Key=PREFIX + key, Body=content, ContentType="application/json", **condition
        )

    def remove(self, key: str, seen: Stored | None = None) -> None:
        """Remove the object, or leave it if it is another one than was seen."""
        with calling(self.place(key)):
            if seen is None:
                self._s3.delete_object(Bucket=self._bucket, Key=PREFIX + key)
            elif self._is_still(key, seen):
                self._delete(key, seen)

    def _is_still(self, key: str, seen: Stored) -> bool:
        """A look before the deletion: not every store takes a condition on one."""
        found = self.read(key)
        return found is not None and found.tag == seen.tag

    def _delete(self, key: str, seen: Stored) -> None:
        try:
            with self._on_condition(key):
                self._s3.delete_object(Bucket=self._bucket, Key=PREFIX + key, IfMatch=seen.tag)
        except MovedError:
            return  # another upload came between: it stays

    @contextmanager
    def _on_condition(self, key: str) -> Iterator[None]:
        """A write that S3 refuses because the object is not as it was seen is a MovedError."""
        from botocore.exceptions import ClientError

        try:
            yield
        except ClientError as error:
            if code_of(error) in _REFUSED:
                raise MovedError(self.place(key)) from error
            raise

    def keys(self, prefix: str) -> list[str]:
        """The keys that begin so."""
        return sorted(self._keys(prefix))

    def topics_with(self, name: str) -> list[str]:
        """The topics that have a file of this name."""
        endings = (key.partition("/") for key in self._keys(""))
        return sorted(topic for topic, _, rest in endings if rest == name)

    def _keys(self, prefix: str) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2")
        with calling(self.place(prefix)):
            for page in pages.paginate(Bucket=self._bucket, Prefix=PREFIX + prefix):
                for entry in page.get("Contents", ()):
                    yield entry["Key"].removeprefix(PREFIX)
