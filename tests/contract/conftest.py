"""Every contract runs against every store."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.bench import Bench

from lean_ops.state.port import StateStore


@pytest.fixture(params=["sqlite"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(request.param, str(tmp_path / "home" / "state.db"))


@pytest.fixture
def store(bench: Bench) -> StateStore:
    return bench.open()
