"""Every contract runs against every store."""

from __future__ import annotations

import uuid
from dataclasses import astuple
from pathlib import Path

import pytest
from tests.contract.bench import Bench, dynamodb_client, empty
from tests.servers.fixtures import dynamodb as dynamodb  # noqa: PLC0414  a fixture for these tests
from tests.servers.server import Server

from lean_ops.state.dynamodb_tables import create_tables
from lean_ops.state.port import Deliveries, ErrorTracker, StateStore


@pytest.fixture(scope="session")
def tables(dynamodb: Server) -> Bench:
    """Tables of this worker's own; to make them for each test would take most of the tests' time."""
    bench = Bench("dynamodb", uuid.uuid4().hex)
    create_tables(dynamodb.client("dynamodb"), bench.tables)
    return bench


@pytest.fixture
def on_dynamodb(dynamodb: Server, tables: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Tables without items."""
    dynamodb.use(monkeypatch)
    for table in astuple(tables.tables):
        empty(dynamodb_client(), table)
    return Bench("dynamodb", tables.address)


@pytest.fixture
def on_own_tables(dynamodb: Server, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Tables that this test may spoil."""
    dynamodb.use(monkeypatch)
    bench = Bench("dynamodb", uuid.uuid4().hex)
    create_tables(dynamodb_client(), bench.tables)
    return bench


@pytest.fixture
def on_sqlite(tmp_path: Path) -> Bench:
    return Bench("sqlite", str(tmp_path / "home" / "state.db"))


@pytest.fixture(params=["sqlite", "dynamodb"])
def bench(request: pytest.FixtureRequest) -> Bench:
    bench = request.getfixturevalue(f"on_{request.param}")
    assert isinstance(bench, Bench)
    return bench


@pytest.fixture
def store(bench: Bench) -> StateStore:
    return bench.open()


@pytest.fixture
def deliveries(bench: Bench) -> Deliveries:
    return bench.deliveries()


@pytest.fixture
def tracker(bench: Bench) -> ErrorTracker:
    return bench.errors()
