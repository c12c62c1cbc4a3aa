"""What Spark is told of a catalog: a home's file, Glue, or a REST catalog; the same as pyiceberg and boto3."""

from __future__ import annotations

from pathlib import Path

import pytest

from lean_ops.lake.spark_conf import session_conf
from lean_ops.model.errors import WrongUseError
from lean_ops.settings import Settings, load_settings

CATALOG = "spark.sql.catalog.lean_ops."
REGION = {"AWS_REGION": "eu-central-1"}
AWS = {
    "LEAN_OPS_ENVIRONMENT": "test",
    "LEAN_OPS_WAREHOUSE": "s3://lake/warehouse",
    "LEAN_OPS_SCHEMA_BUCKET": "acme-schemas",
    "LEAN_OPS_ARCHIVE_BUCKET": "acme-archive",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def aws(**more: str) -> Settings:
    return load_settings(
        {"profile": "aws"}, {**AWS, **{f"LEAN_OPS_{key}": value for key, value in more.items()}}
    ).settings


def catalog(told: dict[str, str]) -> dict[str, str]:
    return {key.removeprefix(CATALOG): value for key, value in told.items() if key.startswith(CATALOG)}


def test_a_home_has_its_sqlite_file_and_local_files(tmp_path: Path) -> None:
    told = session_conf(Settings(home=tmp_path / "home"), {})
    assert catalog(told)["uri"] == f"jdbc:sqlite:{tmp_path / 'home' / 'catalog.db'}?busy_timeout=30000"
    assert "spark.hadoop.fs.file.impl" in told
    assert not [key for key in told if "s3" in key or "region" in key]


def test_glue_on_aws_needs_no_address() -> None:
    told = session_conf(aws(), REGION)
    assert catalog(told) == {
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "warehouse": "s3://lake/warehouse",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": "eu-central-1",
        "cache-enabled": "false",
    }
    assert "spark.hadoop.fs.file.impl" not in told


def test_stand_ins_are_found_by_the_variables_that_boto3_takes() -> None:
    both = {**REGION, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:2"}
    found = catalog(session_conf(aws(), both))
    assert found["glue.endpoint"] == "http://127.0.0.1:1"
    assert (found["s3.endpoint"], found["s3.path-style-access"]) == ("http://127.0.0.1:2", "true")


def test_a_rest_catalog_is_told_who_we_are() -> None:
    settings = aws(CATALOG="rest", CATALOG_URI="https://catalog.example/", CATALOG_CREDENTIAL="id:secret")
    found = catalog(session_conf(settings, REGION))
    assert found["catalog-impl"] == "org.apache.iceberg.rest.RESTCatalog"
    assert found["uri"] == "https://catalog.example"
    assert found["credential"] == "id:secret"
    assert found["oauth2-server-uri"] == "https://catalog.example/v1/oauth/tokens"
    assert "credential" not in catalog(session_conf(aws(CATALOG="rest", CATALOG_URI="https://catalog.example"), REGION))


def test_without_a_region_nothing_is_asked_of_the_network() -> None:
    with pytest.raises(WrongUseError, match="no region is known"):
        session_conf(aws(), {})
