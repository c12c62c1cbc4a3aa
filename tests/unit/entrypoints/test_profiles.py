"""The two places where the product runs: neither loads or touches what belongs to the other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lean_ops.entrypoints import cli
from lean_ops.lake.spark_conf import session_conf
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

AWS = {
    "LEAN_OPS_ENVIRONMENT": "test",
    "LEAN_OPS_WAREHOUSE": "s3://lake/warehouse",
    "LEAN_OPS_SCHEMA_BUCKET": "acme-schemas",
    "LEAN_OPS_ARCHIVE_BUCKET": "acme-archive",
    "LEAN_OPS_REGION": "eu-central-1",
}
STATUS = """
import sys
from lean_ops.entrypoints import cli
from lean_ops.lake.spark_conf import session_conf
try:
    cli.main(["--home", sys.argv[1], "--json", "status"])
except SystemExit as left:
    assert left.code in {0, None}, left.code
print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings file of the folder that a test happens to run in."""
    monkeypatch.chdir(tmp_path)


def test_looking_at_a_home_loads_nothing_of_the_cloud(tmp_path: Path) -> None:
    home = tmp_path / "home"
    Services(load_settings({"home": home}, {})).lake.ensure_shared()
    done = subprocess.run(
        [sys.executable, "-c", STATUS, str(home)], capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == []
    loaded = set(done.stderr.split())
    assert "lean_ops.ledger.status" in loaded
    assert not {"boto3", "botocore", "pyiceberg", "pyarrow", "google", "lean_ops.aws"} & loaded


def test_nothing_is_connected_or_made_before_a_part_is_asked_for(tmp_path: Path) -> None:
    services = Services(load_settings({"profile": "aws", "home": tmp_path / "home"}, AWS))
    assert services.on_aws
    assert services.settings.given("warehouse") == "s3://lake/warehouse"
    services.close()
    assert list(tmp_path.iterdir()) == []


def test_spark_of_the_aws_profile_is_told_of_the_same_catalog_and_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")  # as a test leaves it, whatever a part writes there
    services = Services(load_settings({"profile": "aws", "home": tmp_path / "home"}, AWS))
    assert services.sessions.failure() is None
    told = session_conf(services.settings)
    assert told["spark.sql.catalog.lean_ops.catalog-impl"].endswith("GlueCatalog")
    assert told["spark.sql.catalog.lean_ops.client.region"] == "eu-central-1"
    assert told["spark.sql.catalog.lean_ops.warehouse"] == "s3://lake/warehouse"
    assert list(tmp_path.iterdir()) == []


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        cli.main(list(arguments))
    return int(left.value.code or 0), capsys.readouterr().out


def test_the_aws_profile_without_its_settings_is_wrong_use_that_names_the_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = told(capsys, "--profile", "aws", "--json", "config")
    assert code == 2
    assert "key 'environment'" in json.loads(out)["error"]["message"]


def test_config_shows_the_settings_of_the_aws_profile_and_where_they_came_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    code, out = told(capsys, "--profile", "aws", "--json", "config")
    rows = {row["setting"]: row for row in json.loads(out)}
    assert code == 0
    assert (rows["profile"]["value"], rows["profile"]["from"]) == ("aws", "--profile")
    assert (rows["warehouse"]["value"], rows["warehouse"]["from"]) == ("s3://lake/warehouse", "LEAN_OPS_WAREHOUSE")
