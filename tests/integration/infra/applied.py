"""What Terraform makes of the root module, applied to moto as far as it carries policies, once for all workers."""

from __future__ import annotations

import json
import os
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.integration.infra.policies import POLICY_ATTRIBUTES
from tests.integration.infra.terraform import Terraform
from tests.servers.server import ACCOUNT, REGION, Server

from lean_ops.lake.jars import alone

# Two hundred calls to a server in Python, on a machine that may be busy with something else.
PATIENCE_SECONDS: Final = 2400
_ZIPS: Final = ("get_all_checkpoints", "fetch_active_topics", "check_schema", "sqs_processor", "firehose_transform")
# The provider waits half a minute for each queue. Here no queue waits for the dead letter queue, and nothing that only
# names a queue for it: names are known before (test_iam.py holds that they are the queues' own), and what queues say of
# each other is held by the module's own tests.
_QUEUES_TOGETHER: Final = """
resource "aws_sqs_queue" "topic" {
  redrive_policy = null
}

output "queue_arns" {
  value = { for topic, queue in local.topics : topic => "${local.sqs_arn}:${queue}" }
}

output "dlq_arn" {
  value = "${local.sqs_arn}:${local.dlq_name}"
}
"""
_SECRET: Final = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:pii-key"


@dataclass(frozen=True, slots=True)
class Applied:
    """What would be made, and what of it carries policies, made (with all that it needs); both by address."""

    variables: dict[str, Any]
    planned: dict[str, dict[str, Any]]
    made: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Roots:
    """The root module with all that can be asked for, and its storage where buckets and key are made."""

    whole: Applied
    storage: Applied


@pytest.fixture(scope="session")
def roots(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Roots:
    """Applied by the first worker that asks; the others read what came of it."""
    place = _place_of_all_workers(tmp_path_factory) / "applied"
    with alone(place):
        kept = place / "roots.json"
        if not kept.exists():
            made = _apply_both(place, request.getfixturevalue("moto"))
            kept.write_text(json.dumps(asdict(made)), encoding="utf-8")
        read = json.loads(kept.read_text(encoding="utf-8"))
    return Roots(Applied(**read["whole"]), Applied(**read["storage"]))


@pytest.fixture(scope="session")
def applied(roots: Roots) -> Applied:
    """The root module with all that can be asked for."""
    return roots.whole


@pytest.fixture(scope="session")
def storage(roots: Roots) -> Applied:
    """The same where buckets and key are made: moto takes no objects in them, because it is reached without TLS."""
    return roots.storage


def _place_of_all_workers(folders: pytest.TempPathFactory) -> Path:
    own = folders.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def _apply_both(place: Path, moto: Server) -> Roots:
    """Side by side: the provider spends most of the time waiting, half a minute for each queue alone."""
    with ThreadPoolExecutor(2) as pool:
        whole, storage = pool.submit(_whole, place, moto), pool.submit(_storage, place, moto)
        return Roots(whole.result(), storage.result())


def _whole(place: Path, moto: Server) -> Applied:
    folder = place / f"whole-{uuid.uuid4().hex[:8]}"
    variables = _variables(folder)
    for bucket in ("iceberg_bucket", "schema_bucket"):
        location = {"LocationConstraint": REGION}
        moto.client("s3").create_bucket(Bucket=variables[bucket], CreateBucketConfiguration=location)
    return _applied(folder, moto, variables)


def _storage(place: Path, moto: Server) -> Applied:
    folder = place / f"storage-{uuid.uuid4().hex[:8]}"
    variables = {**_variables(folder), "create_buckets": True, "kms_key_arn": None}
    return _applied(folder, moto, variables, "module.storage")


def _applied(folder: Path, moto: Server, variables: dict[str, Any], *parts: str) -> Applied:
    terraform = Terraform.copy(folder / "infra", moto.environ(), variables)
    terraform.override(_QUEUES_TOGETHER, "messaging")
    planned = terraform.planned(*parts)
    carrying = [address for address, values in planned.items() if POLICY_ATTRIBUTES & values.keys()]
    return Applied(variables, planned, terraform.apply(carrying))


def _variables(folder: Path) -> dict[str, Any]:
    environment, zips = f"e{uuid.uuid4().hex[:8]}", folder / "zips"
    zips.mkdir(parents=True)
    for name in _ZIPS:
        with zipfile.ZipFile(zips / f"{name}.zip", "w") as archive:
            archive.writestr("nothing.txt", "")
    return {
        "environment": environment,
        "region": REGION,
        "topics": ["events", "orders"],
        "iceberg_bucket": f"lake-{environment}",
        "schema_bucket": f"schemas-{environment}",
        "database_prefix": f"{environment}_",
        "kms_key_arn": f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{uuid.uuid4()}",
        "lambda_zip_dir": str(zips),
        "lake_image_uri": "example.invalid/lake:test",
        "discovery_image_uri": "example.invalid/discovery:test",
        "pubsub_project": "a-project",
        "pii_key_secret_arn": _SECRET,
        "artifact_version": "0.1.0",
        "raise_message_size": False,
    }
