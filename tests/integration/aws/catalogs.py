"""Lakes whose catalog is elsewhere: Glue by moto, and the REST catalog of SeaweedFS."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.servers.process import HOST, start
from tests.servers.seaweed import CATALOG_URL
from tests.servers.server import Server, on_aws_endpoint

from lean_ops.aws.lake_place import catalog_place
from lean_ops.lake.catalog import CATALOG_NAME, Lake
from lean_ops.model.tables import Names
from lean_ops.settings import Settings, load_settings


@dataclass(frozen=True, slots=True)
class Cloud:
    """An environment with a catalog; each of its lakes is as another process would open it."""

    kind: str
    settings: Settings
    server: Server

    def lake(self) -> Lake:
        return Lake(self.settings, catalog_place(CATALOG_NAME, self.settings))

    @property
    def names(self) -> Names:
        return self.settings.names

    def make_databases(self) -> None:
        """What Terraform does."""
        if self.kind == "glue":
            for database in self.names.databases:
                self.server.client("glue").create_database(DatabaseInput={"Name": database})
            return
        for database in self.names.databases:
            self.lake().catalog.create_namespace(database)


@pytest.fixture(scope="session")
def strict_glue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    main = Path(__file__).with_name("strict_glue_main.py")
    process = start("strict-glue", [sys.executable, "-I", str(main)], tmp_path_factory.mktemp("glue"))
    port = process.wait_for_words(rf"listening on {HOST}:(\d+)")[1]
    server = on_aws_endpoint(process, int(port), "AWS_ENDPOINT_URL")
    yield server
    server.stop()


@pytest.fixture
def glue_cloud(strict_glue: Server, seaweed: Server, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Glue by moto with S3 by SeaweedFS: moto's own loses objects that are written side by side."""
    strict_glue.use(monkeypatch)
    seaweed.use(monkeypatch)
    bucket, prefix = f"lake-{uuid.uuid4().hex[:12]}", f"t{uuid.uuid4().hex[:8]}_"
    seaweed.client("s3").create_bucket(Bucket=bucket)
    return Cloud("glue", aws_settings(warehouse=f"s3://{bucket}/warehouse", database_prefix=prefix), strict_glue)


@pytest.fixture
def rest_cloud(seaweed: Server, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    seaweed.use(monkeypatch)
    bucket, environ = f"lake-{uuid.uuid4().hex[:12]}", seaweed.environ()
    seaweed.client("s3tables").create_table_bucket(name=bucket)
    settings = aws_settings(
        catalog="rest",
        catalog_uri=environ[CATALOG_URL],
        catalog_credential=f"{environ['AWS_ACCESS_KEY_ID']}:{environ['AWS_SECRET_ACCESS_KEY']}",
        warehouse=f"s3://{bucket}",
    )
    return Cloud("rest", settings, seaweed)


@pytest.fixture(params=["glue", "rest"])
def cloud(request: pytest.FixtureRequest) -> Cloud:
    found: Cloud = request.getfixturevalue(f"{request.param}_cloud")
    return found


def aws_settings(**values: Any) -> Settings:
    """Settings of an environment on AWS."""
    variables = {f"LEAN_OPS_{key.upper()}": value for key, value in values.items()}
    needed = {"ENVIRONMENT": "test", "SCHEMA_BUCKET": "schemas-of-tests", "ARCHIVE_BUCKET": "archive-of-tests"}
    return load_settings({"profile": "aws"}, {**{f"LEAN_OPS_{k}": v for k, v in needed.items()}, **variables}).settings
