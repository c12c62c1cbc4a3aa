"""What a deployment needs: each is looked for by itself, so that one call tells all that is missing."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from .aws import client, code_of
from .finding import Finding
from .processes import found

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .environment import Environment

_IMAGE: Final = re.compile(
    r"^(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/(?P<repository>[a-z0-9._/-]+)"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64})|:(?P<tag>[\w.-]+))$"
)
_LOG_IN: Final = "Log in, for example by `aws sso login`, and name the profile: AWS_PROFILE=…"


def credentials(environment: Environment) -> Finding:
    """Who AWS takes us for."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        caller = client("sts", environment.region).get_caller_identity()
    except (BotoCoreError, ClientError) as error:
        return Finding("credentials", str(error), _LOG_IN)
    return Finding("credentials", f"account {caller['Account']} as {caller['Arn']}")


def region(environment: Environment) -> Finding:
    """Whether there is such a region."""
    import boto3

    session = boto3.Session()
    known = {name for part in session.get_available_partitions() for name in session.get_available_regions("sqs", part)}
    remedy = f"Correct `region` in infra/environments/{environment.label}.tfvars."
    return Finding("region", environment.region, None if environment.region in known else remedy)


def aws_cli(environment: Environment) -> Finding:
    """Terraform raises the queues' message size by the AWS CLI, because its provider can't."""
    if environment.values.get("raise_message_size") is False:
        return Finding("aws cli", "not needed: raise_message_size is false")
    remedy = "Install the AWS CLI, or say raise_message_size = false: then messages above 256 KiB are refused."
    program = found("aws")
    return Finding("aws cli", program or "not on PATH", None if program else remedy)


def buckets(environment: Environment) -> list[Finding]:
    """Whether the buckets that are given are there, in the right region, and ours to use."""
    if environment.values["create_buckets"]:
        names = ", ".join(environment.buckets.values())
        return [Finding("buckets", f"{names}: made by Terraform (create_buckets)")]
    return [_bucket(environment, key, name) for key, name in environment.buckets.items()]


def _bucket(environment: Environment, key: str, name: str) -> Finding:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        answer = client("s3", environment.region).head_bucket(Bucket=name)
    except ClientError as error:
        return Finding(key, *_bucket_fault(environment, name, code_of(error)))
    except BotoCoreError as error:
        return Finding(key, f"{name}: {error}", _LOG_IN)
    there = answer.get("BucketRegion") or answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region")
    if there and there != environment.region:
        return Finding(key, f"{name} is in {there}", f"Take a bucket in {environment.region}, or change `region`.")
    return Finding(key, name)


def _bucket_fault(environment: Environment, name: str, code: str) -> tuple[str, str]:
    if code in {"404", "NoSuchBucket"}:
        make = f"Make it, `aws s3 mb s3://{name} --region {environment.region}`, or say create_buckets = true."
        return f"there is no bucket {name}", make
    if code in {"301", "PermanentRedirect"}:
        return f"{name} is in another region", f"Take a bucket in {environment.region}, or change `region`."
    return f"{name}: {code}", "It belongs to another account, or these credentials may not use it."


def deletable(environment: Environment) -> Finding:
    """Whether the state's tables let themselves be deleted; Terraform would find out half way."""
    if environment.values.get("deletion_protection") is False:
        return Finding("deletion_protection", "false")
    remedy = "Say deletion_protection = false in the variable file and `make apply` that first."
    return Finding("deletion_protection", "on: the state's tables refuse to be deleted", remedy)


def zips(environment: Environment) -> Finding:
    """Whether every function that is a zip has been built, and nobody changed it since."""
    listed = tomllib.loads((environment.root / "deploy" / "lambdas" / "functions.toml").read_text(encoding="utf-8"))
    needed = [name for name, how in listed["functions"].items() if how["form"] == "zip"]
    built = {each["name"]: each["sha256"] for each in _json(environment.zips / "manifest.json", [])}
    wrong = [
        name for name in needed if built.get(name) is None or _sha256(environment.zips / f"{name}.zip") != built[name]
    ]
    what = f"{len(needed) - len(wrong)} of {len(needed)} in {environment.zips}"
    return Finding("functions' zips", what, f"`make lambdas` builds {', '.join(wrong)}." if wrong else None)


def artifacts(environment: Environment) -> Finding:
    """Whether what the jobs need has been built, and nobody changed it since."""
    folder = environment.artifacts
    listed: dict[str, str] = _json(folder / "manifest.json", {})
    if not listed:
        return Finding("jobs' files", f"no {folder}/manifest.json", "`make glue` builds them.")
    wrong = [name for name, digest in listed.items() if _sha256(folder / name) != digest]
    remedy = f"`make glue` builds {', '.join(wrong)} again." if wrong else None
    return Finding("jobs' files", f"{len(listed) - len(wrong)} of {len(listed)} in {folder}", remedy)


def images(environment: Environment, chosen: Mapping[str, str]) -> list[Finding]:
    """Whether the functions' images are named and are where they are said to be."""
    needed = ["lake_image_uri", *(["discovery_image_uri"] if environment.values.get("pubsub_project") else [])]
    return [_image(environment, key, chosen.get(key)) for key in needed]


def _image(environment: Environment, key: str, uri: str | None) -> Finding:
    push = f"`make images ENV={environment.label}` pushes it; or name one that is there: {key.upper()}=…"
    if not uri:
        return Finding(key, "no image is named, pushed from here or deployed", push)
    parts = _IMAGE.match(uri)
    if parts is None:
        return Finding(key, uri, "Lambda takes images of ECR only: ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME@sha256:…")
    if parts["region"] != environment.region:
        return Finding(key, f"{uri} is in {parts['region']}", f"Lambda takes images of its own region: {push}")
    return _pushed_image(environment, key, parts, push)


def _pushed_image(environment: Environment, key: str, parts: re.Match[str], push: str) -> Finding:
    from botocore.exceptions import BotoCoreError, ClientError

    which = {"imageDigest": parts["digest"]} if parts["digest"] else {"imageTag": parts["tag"]}
    try:
        client("ecr", environment.region).describe_images(
            registryId=parts["account"], repositoryName=parts["repository"], imageIds=[which]
        )
    except ClientError as error:
        return Finding(key, f"{parts[0]}: {code_of(error)}", push)
    except BotoCoreError as error:
        return Finding(key, f"{parts[0]}: {error}", _LOG_IN)
    return Finding(key, parts[0])


def _json(file: Path, otherwise: Any) -> Any:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else otherwise


def _sha256(file: Path) -> str | None:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
