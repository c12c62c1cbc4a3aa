"""The command line in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.quick_java import QUICK_JAVA

LEAN_OPS = Path(sys.executable).with_name("lean-ops")


@dataclass(frozen=True)
class CommandLine:
    """`lean-ops` on one home."""

    home: Path

    def run(self, *arguments: str, code: int = 0, stdin: bytes | None = None) -> str:
        """What a command prints; its exit code must be the expected one."""
        done = self.start(*arguments, stdin=stdin)
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def json(self, *arguments: str, code: int = 0, stdin: bytes | None = None) -> Any:
        """The one document that a command prints with --json."""
        done = self.start(*arguments, "--json", stdin=stdin)
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def start(self, *arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(LEAN_OPS), "--home", str(self.home), *arguments]
        environ = {**os.environ, "LEAN_OPS_SPARK_JAVA_OPTIONS": QUICK_JAVA}
        done = subprocess.run(command, check=False, capture_output=True, input=stdin, timeout=540, env=environ)
        return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def with_tests_on_path() -> dict[str, str]:
    """The environment of a script that imports from tests/."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def body(message_id: str, payload: Any, **more: Any) -> str:
    """A queue body."""
    envelope = {"message_id": message_id, "publish_time": "2026-02-03T10:15:30.120Z", "payload": payload}
    return json.dumps(envelope | more)


def schema_of(topic: str, version: str = "1.0.0") -> str:
    """The smallest schema that opens a topic's gate; it stops at Standardized."""
    return _schema(topic, version, {"a": {"json_path": "$.a", "type": "STRING"}}, ["standardized"])


def curated_schema_of(topic: str, columns: dict[str, Any], version: str = "1.0.0", **more: Any) -> str:
    """A schema that leads on to Curated."""
    return _schema(topic, version, columns, ["standardized", "curated"], **more)


def _schema(topic: str, version: str, columns: dict[str, Any], zones: list[str], **more: Any) -> str:
    envelope = {
        "message_id": {"type": "STRING", "required": True},
        "idempotency_key": {"type": "STRING", "required": True, "cde": True},
        "publish_time": {"type": "TIMESTAMP", "required": True},
    }
    schema = {
        "schema_version": version,
        "table_name": topic,
        "envelope_columns": envelope,
        "payload_columns": columns,
        "zones": zones,
    }
    return json.dumps(schema | more)
