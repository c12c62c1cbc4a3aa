"""What functions and jobs are told by Terraform is what they understand."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest
from tests.integration.infra.applied import PATIENCE_SECONDS, Applied

from lean_ops.aws.environment import ProcessorEnvironment, TransformEnvironment
from lean_ops.entrypoints.lambdas import circuit_breaker, discovery, dlq_processor
from lean_ops.settings import load_settings
from lean_ops.state.dynamodb_tables import DynamoTables

pytestmark = pytest.mark.timeout(PATIENCE_SECONDS)

NEEDS = {
    "circuit_breaker": circuit_breaker.NEEDS,
    "discovery": discovery.NEEDS,
    "dlq_processor": dlq_processor.NEEDS,
    "ensure_table": ("environment", "warehouse"),
    "health": ("environment", "warehouse", "schema_bucket"),
    "schema_validator": ("environment", "warehouse", "schema_bucket"),
}


def _function(applied: Applied, function: str) -> dict[str, Any]:
    return applied.made[f'module.compute.aws_lambda_function.this["{function}"]']


def _told(applied: Applied, function: str) -> dict[str, str]:
    told: dict[str, str] = _function(applied, function)["environment"][0]["variables"]
    return told


@pytest.mark.parametrize("function", sorted(NEEDS))
def test_a_function_of_the_lake_is_told_what_it_needs_and_nothing_unknown(
    applied: Applied, function: str, tmp_path: Path
) -> None:
    settings = load_settings({"profile": "aws", "home": tmp_path}, _told(applied, function), NEEDS[function]).settings
    assert settings.warehouse == f"s3://{applied.variables['iceberg_bucket']}/warehouse"
    assert settings.environment == applied.variables["environment"]


@pytest.mark.parametrize("function", ["circuit_breaker", "discovery", "dlq_processor", "health"])
def test_who_raises_alerts_knows_the_topic(applied: Applied, function: str) -> None:
    topic = f"lean-ops-{applied.variables['environment']}-alerts"
    assert _told(applied, function)["LEAN_OPS_ALERT_TOPIC_ARN"].endswith(f":{topic}")


def test_the_processor_and_the_transform_find_stream_and_bucket(applied: Applied) -> None:
    processor = ProcessorEnvironment.of(_told(applied, "sqs_processor"))
    assert processor.delivery_stream == f"lean-ops-{applied.variables['environment']}-raw"
    assert processor.archive_bucket == applied.variables["iceberg_bucket"]
    assert TransformEnvironment.of(_told(applied, "firehose_transform")).deployment == processor.deployment


def test_every_function_runs_the_handler_of_its_name(applied: Applied) -> None:
    for address, values in applied.made.items():
        if ".aws_lambda_function.this[" in address:
            function = address.partition('["')[2].removesuffix('"]')
            command = values["image_config"][0]["command"][0] if values["image_config"] else values["handler"]
            assert command == f"lean_ops.entrypoints.lambdas.{function}.handler"


def test_a_zip_is_named_by_the_hash_of_its_bytes(applied: Applied) -> None:
    zipped = Path(applied.variables["lambda_zip_dir"]) / "check_schema.zip"
    digest = base64.b64encode(hashlib.sha256(zipped.read_bytes()).digest()).decode()
    assert _function(applied, "check_schema")["source_code_hash"] == digest


def test_the_tables_have_the_names_that_the_state_store_looks_for(applied: Applied) -> None:
    wanted = DynamoTables.of("lean-ops", applied.variables["environment"])
    made = {values["name"] for address, values in applied.made.items() if ".aws_dynamodb_table." in address}
    assert made == {getattr(wanted, name) for name in wanted.__slots__}


def test_the_jobs_settings_file_is_one(applied: Applied, tmp_path: Path) -> None:
    content = applied.made["module.compute.aws_s3_object.settings"]["content"]
    (tmp_path / "lean-ops.toml").write_text(content, encoding="utf-8")
    settings = load_settings({"profile": "aws", "home": tmp_path}, {}).settings
    assert settings.schema_bucket == applied.variables["schema_bucket"]
    assert settings.archive_bucket == applied.variables["iceberg_bucket"]
    assert settings.delivery_stream == f"lean-ops-{applied.variables['environment']}-raw"
    assert settings.pii_key is None
