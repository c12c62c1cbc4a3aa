"""What Terraform makes of the root module, applied to moto as far as it carries policies."""

from __future__ import annotations

import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.integration.infra.policies import POLICY_ATTRIBUTES
from tests.integration.infra.terraform import Terraform
from tests.servers.server import ACCOUNT, REGION, Server

# Two hundred calls to a server in Python, on a machine that may be busy with something else.
PATIENCE_SECONDS: Final = 2400
_ZIPS: Final = ("get_all_checkpoints", "fetch_active_topics", "check_schema", "sqs_processor", "firehose_transform")
_SECRET: Final = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:pii-key"


@dataclass(frozen=True, slots=True)
class Applied:
    """What would be made, and what of it carries policies, made (with all that it needs); both by address."""

    variables: dict[str, Any]
    planned: dict[str, dict[str, Any]]
    made: dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def applied(moto: Server, tmp_path_factory: pytest.TempPathFactory) -> Applied:
    """The root module with all that can be asked for."""
    folder, environment = tmp_path_factory.mktemp("infra"), f"e{uuid.uuid4().hex[:8]}"
    variables = _variables(folder, environment)
    for bucket in ("iceberg_bucket", "schema_bucket"):
        location = {"LocationConstraint": REGION}
        moto.client("s3").create_bucket(Bucket=variables[bucket], CreateBucketConfiguration=location)
    return _applied(folder, moto, variables)


@pytest.fixture(scope="session")
def storage(moto: Server, tmp_path_factory: pytest.TempPathFactory) -> Applied:
    """The same where buckets and key are made: moto takes no objects in them, because it is reached without TLS."""
    folder, environment = tmp_path_factory.mktemp("storage"), f"e{uuid.uuid4().hex[:8]}"
    variables = {**_variables(folder, environment), "create_buckets": True, "kms_key_arn": None}
    return _applied(folder, moto, variables, "module.storage")


def _applied(folder: Path, moto: Server, variables: dict[str, Any], *parts: str) -> Applied:
    terraform = Terraform.copy(folder / "infra", moto.environ(), variables)
    planned = terraform.planned(*parts)
    carrying = [address for address, values in planned.items() if POLICY_ATTRIBUTES & values.keys()]
    return Applied(variables, planned, terraform.apply(carrying))


def _variables(folder: Path, environment: str) -> dict[str, Any]:
    zips = folder / "zips"
    zips.mkdir()
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
