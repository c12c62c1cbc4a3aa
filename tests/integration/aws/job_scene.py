"""An environment on AWS with topics in it, and Spark jobs that work on it as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import pytest
from tests.integration.aws.catalogs import Cloud
from tests.servers.server import Server

from lean_ops.lake.append import append_files, write_files
from lean_ops.lake.query import QuerySession
from lean_ops.settings import load_settings
from lean_ops.state.dynamodb_tables import DynamoTables, create_tables
from lean_ops.wiring import Services

ROOT: Final = Path(__file__).parents[3]
NOW: Final = datetime(2026, 2, 3, 10, 15, 30, tzinfo=UTC)
_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class Account:
    """One environment; every call opens it as another process would."""

    cloud: Cloud
    home: Path

    @contextmanager
    def services(self) -> Iterator[Services]:
        services = Services(load_settings({"profile": "aws", "home": self.home}))
        try:
            yield services
        finally:
            services.close()

    def submit(self, topic: str, **more: Any) -> None:
        """Open a topic's gate."""
        envelope = {"idempotency_key": {"type": "STRING", "required": True, "cde": True}}
        columns = {"user": {"type": "STRING", "required": True}, "amount": {"type": "DECIMAL(10,2)"}}
        document = {"schema_version": "1.0.0", "table_name": topic, "envelope_columns": envelope}
        content = json.dumps({**document, "payload_columns": columns, **more}).encode()
        with self.services() as services:
            services.submissions.submit(topic, content, submitted_by="ann", now=NOW)

    def land(self, topic: str, rows: Sequence[tuple[str, str, str]]) -> None:
        """Messages (id, key, payload) in RAW, as Firehose commits them: nothing of ours is in the snapshot."""
        table = self.cloud.lake().ensure_raw(topic)
        columns = {"topic_name": topic, "publish_time": NOW, "ingestion_ts": 1}
        found = [
            {**columns, "message_id": message, "idempotency_key": key, "json_payload": payload}
            for message, key, payload in rows
        ]
        values = pa.Table.from_pylist(found, schema=table.schema().as_arrow())
        append_files(table, write_files(table, values), {})

    def query(self, sql: str) -> list[dict[str, Any]]:
        return QuerySession(self.cloud.names, self.cloud.lake().file).query(sql)

    def job(self, name: str, topics: Sequence[str], *more: str) -> subprocess.CompletedProcess[str]:
        """A job as a plain Python program."""
        return _run([sys.executable, "-m", f"lean_ops.entrypoints.jobs.{name}", *_arguments(topics), *more], self.home)

    def submitted(self, name: str, topics: Sequence[str], jars: Sequence[Path]) -> subprocess.CompletedProcess[str]:
        """A job that `spark-submit` starts, as Glue and EMR do, with arguments that Glue adds of its own."""
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--master", "local[2]", "--conf", "spark.driver.host=127.0.0.1"]
        command += ["--conf", "spark.driver.bindAddress=127.0.0.1", "--conf", "spark.ui.enabled=false"]
        command += ["--jars", ",".join(map(str, jars))] if jars else []
        script = ROOT / "deploy" / "glue" / f"{name}.py"
        of_glue = ["--JOB_NAME", f"lean-ops-test-{name}", "--enable-metrics", "true"]
        return _run([*command, str(script), *_arguments(topics), *of_glue], self.home)


def _arguments(topics: Sequence[str]) -> list[str]:
    return ["--topics", json.dumps(list(topics)), "--profile", "aws"]


def _run(command: Sequence[str], home: Path) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environ |= {"LEAN_OPS_HOME": str(home), "LEAN_OPS_SPARK_MASTER": "local[2]", "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, env=environ, check=False)


def report(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The document that a job ends with."""
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"run_id"')]
    assert len(lines) == 1, f"{done.stdout[-1000:]}\n{done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads(lines[0])
    return found


def account_on(cloud: Cloud, dynamodb: Server, seaweed: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """A new environment on a catalog; the environment of this process and its children leads to it."""
    dynamodb.use(monkeypatch)
    cloud.server.use(monkeypatch)
    seaweed.use(monkeypatch)
    project, bucket = f"p{uuid.uuid4().hex[:8]}", f"schemas-{uuid.uuid4().hex[:12]}"
    create_tables(dynamodb.client("dynamodb"), DynamoTables.of(project, "test"))
    seaweed.client("s3").create_bucket(Bucket=bucket)
    given = cloud.settings
    variables = {"PROJECT": project, "ENVIRONMENT": "test", "SCHEMA_BUCKET": bucket, "ARCHIVE_BUCKET": bucket}
    variables |= {"WAREHOUSE": str(given.warehouse), "DATABASE_PREFIX": given.database_prefix, "CATALOG": given.catalog}
    if given.catalog_uri and given.catalog_credential:
        variables["CATALOG_URI"] = given.catalog_uri
        variables["CATALOG_CREDENTIAL"] = given.catalog_credential.get_secret_value()
    for name, value in variables.items():
        monkeypatch.setenv(f"LEAN_OPS_{name}", value)
    cloud.make_databases()
    cloud.lake().ensure_shared()
    return Account(cloud, home)
