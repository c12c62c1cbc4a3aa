"""The servers as fixtures: started when first asked for, one of each for a worker, stopped when its session ends.

A conftest takes what its tests need: `from tests.servers.fixtures import dynamodb as dynamodb`. However many of them
do so, there is one server.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.servers.dynamodb import start_dynamodb
from tests.servers.elasticmq import start_elasticmq
from tests.servers.moto import start_moto
from tests.servers.pubsub import start_pubsub
from tests.servers.seaweed import start_seaweed
from tests.servers.server import Server
from tests.servers.supply import WITHOUT_SERVERS, cache_dir

from lean_ops.model.errors import TerminalError

_RUNNING: Final = pytest.StashKey[dict[str, Server]]()


@pytest.fixture(scope="session")
def elasticmq(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """SQS."""
    return _running(request.config, tmp_path_factory, "elasticmq", start_elasticmq)


@pytest.fixture(scope="session")
def dynamodb(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """DynamoDB."""
    return _running(request.config, tmp_path_factory, "dynamodb", start_dynamodb)


@pytest.fixture(scope="session")
def seaweed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """S3."""
    return _running(request.config, tmp_path_factory, "seaweed", start_seaweed)


@pytest.fixture(scope="session")
def pubsub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """Pub/Sub."""
    return _running(request.config, tmp_path_factory, "pubsub", start_pubsub)


@pytest.fixture(scope="session")
def moto(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The rest of AWS."""
    return _running(request.config, tmp_path_factory, "moto", start_moto)


def _running(
    config: pytest.Config, folders: pytest.TempPathFactory, name: str, start: Callable[[Path, Path], Server]
) -> Server:
    servers = config.stash.setdefault(_RUNNING, {})
    if name not in servers:
        servers[name] = _start_or_say(folders.mktemp(name), start)
        config.add_cleanup(servers[name].stop)
    return servers[name]


def _start_or_say(folder: Path, start: Callable[[Path, Path], Server]) -> Server:
    """The server; where this machine lacks something for it, a failure that says what to do, or a skip if asked for."""
    try:
        return start(folder, cache_dir())
    except TerminalError as error:
        if os.environ.get(WITHOUT_SERVERS) == "1":
            pytest.skip(f"{WITHOUT_SERVERS}=1 and {error}")
        pytest.fail(f"{error} To go without: {WITHOUT_SERVERS}=1, which skips these tests.", pytrace=False)
