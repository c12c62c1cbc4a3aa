"""What tests deploy to the local cloud: small functions, small jobs, and a look at what became of them."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from tests.integration.aws.lone_pytest import eventually
from tests.servers.server import REGION, Server

PATIENCE_SECONDS: Final = 300.0  # for a machine that is busy with something else


@dataclass
class Deployed:
    """The cloud, and names of this test's own; `folder` is where the cloud writes, `bucket` where scripts are."""

    cloud: Server
    folder: Path
    objects: Server
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")

    @cached_property
    def functions(self) -> Any:
        return self.cloud.client("lambda")

    @cached_property
    def glue(self) -> Any:
        return self.cloud.client("glue")

    @cached_property
    def role(self) -> str:
        """A role's ARN; Lambda refuses one that is not there."""
        made = self.cloud.client("iam").create_role(RoleName=self.name, AssumeRolePolicyDocument="{}")
        return str(made["Role"]["Arn"])

    @cached_property
    def bucket(self) -> str:
        name = f"{self.name}-scripts"
        self.objects.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return name

    def said(self) -> str:
        """The cloud's own log."""
        return (self.folder / "what-happened.log").read_text(encoding="utf-8")

    # functions

    def function(self, short: str, files: Mapping[str, str | bytes], seconds: int = 30, **more: Any) -> str:
        """A function from a zip of these files, its handler `index.handler`; its name."""
        name = f"{self.name}-{short}"
        self.functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=self.role,
            Handler="index.handler",
            Code={"ZipFile": zipped(files)},
            Timeout=seconds,
            **more,
        )
        return name

    def delete_functions(self) -> None:
        """Those that this test made."""
        for function in self.functions.list_functions()["Functions"]:
            if function["FunctionName"].startswith(self.name):
                self.functions.delete_function(FunctionName=function["FunctionName"])

    def call(self, name: str, event: Any, **more: Any) -> tuple[Any, str | None]:
        """What a function answers, and whether that is an error."""
        answer = self.functions.invoke(FunctionName=name, Payload=json.dumps(event).encode(), **more)
        text = answer["Payload"].read()
        return json.loads(text) if text else None, answer.get("FunctionError")

    # jobs

    def job(self, short: str, script: str, most_runs: int = 5, **more: Any) -> str:
        """A Glue job of this script; its name."""
        name, key = f"{self.name}-{short}", f"artifacts/1/{short}.py"
        self.objects.client("s3").put_object(Bucket=self.bucket, Key=key, Body=script.encode())
        self.glue.create_job(
            Name=name,
            Role=self.role,
            Command={"Name": "glueetl", "ScriptLocation": f"s3://{self.bucket}/{key}", "PythonVersion": "3"},
            ExecutionProperty={"MaxConcurrentRuns": most_runs},
            **more,
        )
        return name

    def start(self, job: str, **arguments: str) -> str:
        """A run's id."""
        given = {f"--{name}": value for name, value in arguments.items()}
        return str(self.glue.start_job_run(JobName=job, Arguments=given)["JobRunId"])

    def run(self, job: str, run_id: str) -> dict[str, Any]:
        """A run as Glue shows it."""
        shown: dict[str, Any] = self.glue.get_job_run(JobName=job, RunId=run_id)["JobRun"]
        return shown

    def ended(self, job: str, run_id: str) -> dict[str, Any]:
        """A run that is over."""
        wait_until(lambda: "CompletedOn" in self.run(job, run_id))
        return self.run(job, run_id)


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip of some files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return content.getvalue()


def wait_until(holds: Callable[[], bool]) -> None:
    """Return when it holds, or fail."""
    assert eventually(holds, PATIENCE_SECONDS)


def at_once(most: int, spans: list[tuple[float, float]]) -> bool:
    """Whether of these spans of time never more than so many overlap."""
    return all(sum(begun <= start < ended for begun, ended in spans) <= most for start, _ in spans)
