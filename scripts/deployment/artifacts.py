"""The jobs' files to the bucket: what a version has meant once it means for good."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from .aws import client, code_of
from .finding import DeployError

if TYPE_CHECKING:
    from pathlib import Path

    from .environment import Environment

MANIFEST: Final = "manifest.json"
_MODULES: Final = "modules.txt"
# Kept with each object, because S3's own tag of an encrypted object is no hash of its content.
_HASH: Final = "sha256"


def packages(environment: Environment) -> list[str]:
    """The packages that jobs need beside our wheel, each with the version that is tested."""
    return (environment.artifacts / _MODULES).read_text(encoding="utf-8").strip().split(",")


def upload(environment: Environment, *, force: bool = False) -> list[str]:
    """Bring the files of this version to the bucket; the keys that were written.

    Files that are there with the same content are left alone; with another content nothing at all is written, unless
    `force` says so. The manifest goes last: where it is, everything is.
    """
    folder, bucket = environment.artifacts, environment.buckets["iceberg_bucket"]
    s3 = client("s3", environment.region)
    prefix = f"artifacts/{environment.version}/"
    listed: dict[str, str] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    hashes = {**listed, MANIFEST: _sha256((folder / MANIFEST).read_bytes())}
    there = {name: _hash_there(s3, bucket, prefix + name) for name in hashes}
    others = [name for name, digest in hashes.items() if there[name] not in {None, digest}]
    if others and not force:
        raise DeployError(_refusal(environment, f"s3://{bucket}/{prefix}", others))
    changed = [name for name, digest in hashes.items() if there[name] != digest]
    for name in changed:
        _put(s3, bucket, prefix + name, folder / name, hashes[name])
    return [prefix + name for name in changed]


def _refusal(environment: Environment, place: str, others: list[str]) -> str:
    return (
        f"{place} has other content of {', '.join(others)}. Jobs may be running it, and it is what version "
        f"{environment.version} means: raise the version in pyproject.toml, or overwrite it by UPLOAD_FLAGS=--force."
    )


def _hash_there(s3: Any, bucket: str, key: str) -> str | None:
    """The hash of an object; of one that was not put here, by its content."""
    from botocore.exceptions import ClientError

    try:
        told: str | None = s3.head_object(Bucket=bucket, Key=key)["Metadata"].get(_HASH)
        return told or _sha256(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    except ClientError as error:
        if code_of(error) in {"404", "NoSuchKey"}:
            return None
        raise


def _put(s3: Any, bucket: str, key: str, file: Path, digest: str) -> None:
    s3.put_object(Bucket=bucket, Key=key, Body=file.read_bytes(), Metadata={_HASH: digest})


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
