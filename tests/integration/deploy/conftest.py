"""Deployments are tried against moto, with programs on PATH that only write down what they were called with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.deploy.deploy_scene import SCRIPTS, Scene
from tests.servers.fixtures import moto
from tests.servers.server import Server

__all__ = ["moto"]


@pytest.fixture(autouse=True)
def scripts_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`deploy` and `deployment` are found as they are when the script is started."""
    monkeypatch.syspath_prepend(str(SCRIPTS))


@pytest.fixture
def scene(moto: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A small repository, an environment in it, and its buckets in moto."""
    moto.use(monkeypatch)
    for name in ("STATE_BUCKET", "STATE_REGION", "ARTIFACT_VERSION", "LAKE_IMAGE_URI", "TF_PLUGIN_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("TF_CLI_CONFIG_FILE", raising=False)
    made = Scene.make(tmp_path, moto)
    monkeypatch.setenv("PATH", str(made.bin))
    yield made
    for name in [name for name in sys.modules if name == "deploy" or name.partition(".")[0] == "deployment"]:
        del sys.modules[name]
