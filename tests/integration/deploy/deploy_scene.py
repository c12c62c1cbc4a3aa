"""A repository as small as a deployment can do with, and stand-ins of the programs that it starts."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers.server import REGION, Server

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "scripts"
VERSION = "0.1.0"
ACCOUNT = "123456789012"  # moto's own

# Writes down how it was called; answers what terraform would.
TERRAFORM = """
import json, os, sys
from pathlib import Path
here = Path(__file__).parent
arguments = [each for each in sys.argv[1:] if not each.startswith("-chdir=")]
told = {key: os.environ.get(key) for key in ("TF_DATA_DIR", "TF_CLI_CONFIG_FILE")}
with (here / "terraform.jsonl").open("a") as log:
    log.write(json.dumps({"arguments": arguments, "environ": told, "chdir": sys.argv[1]}) + "\\n")
answers = json.loads((here / "terraform.json").read_text())
command = arguments[0]
if command in answers["failing"]:
    sys.exit(f"{command} went wrong")
for each in arguments:
    if each.startswith("-out="):
        Path(each.removeprefix("-out=")).write_text("a plan")
print(json.dumps(answers["version"]) if command == "version" else
      json.dumps(answers["outputs"]) if command == "output" else
      "\\n".join(answers["state"]) if arguments[:2] == ["state", "list"] else f"terraform {command} spoke")
"""

# Writes down how it was called; what is pushed, ECR then knows.
DOCKER = """
import json, sys
from pathlib import Path
here = Path(__file__).parent
typed = sys.stdin.read() if "login" in sys.argv else None
with (here / "docker.jsonl").open("a") as log:
    log.write(json.dumps({"arguments": sys.argv[1:], "input": typed}) + "\\n")
if sys.argv[1] == "version":
    if (here / "docker.stopped").exists():
        sys.exit("Cannot connect to the Docker daemon")
    print("28.0.0")
if sys.argv[1] == "push":
    import boto3
    name, _, tag = sys.argv[2].partition("/")[2].partition(":")
    manifest = json.dumps({"mediaType": "application/vnd.docker.distribution.manifest.v2+json", "tag": tag})
    boto3.client("ecr").put_image(repositoryName=name, imageManifest=manifest, imageTag=tag)
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """The repository, its programs and its account."""

    root: Path
    bin: Path
    server: Server
    s3: Any
    mark: str

    @classmethod
    def make(cls, folder: Path, server: Server) -> Scene:
        """Everything that an environment called `trial` needs."""
        mark = f"t{uuid.uuid4().hex[:8]}"
        scene = cls(folder / "repository", folder / "bin", server, server.client("s3"), mark)
        scene._files()
        scene._programs()
        for bucket in (scene.lake, scene.schemas):
            scene.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        return scene

    def _files(self) -> None:
        (self.root / "infra" / "environments").mkdir(parents=True)
        shutil.copy(ROOT / "infra" / "backend.tf.example", self.root / "infra")
        (self.root / "pyproject.toml").write_text(f'[project]\nversion = "{VERSION}"\n')
        shutil.copytree(ROOT / "deploy" / "lambdas", self.root / "deploy" / "lambdas")
        shutil.copytree(ROOT / "schemas", self.root / "schemas")
        for file in ("lock/lambda-lake.txt", "lock/lambda-discovery.txt", "src/lean_ops/one.py"):
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / file).write_text("something\n")
        self.write_variables()
        self.write_zips()
        self.write_artifacts({"standardized.py": b"one", "curated.py": b"two"})

    def _programs(self) -> None:
        self.bin.mkdir()
        self.program("terraform", TERRAFORM)
        self.program("docker", DOCKER)
        self.program("aws", "")
        self.answers()

    def program(self, name: str, text: str) -> None:
        """A program on PATH."""
        file = self.bin / name
        file.write_text(f"#!{sys.executable}\n{text}")
        file.chmod(0o755)

    # files

    @property
    def lake(self) -> str:
        return f"lake-{self.mark}"

    @property
    def schemas(self) -> str:
        return f"schemas-{self.mark}"

    @property
    def image(self) -> str:
        """An image that ECR has, put there now."""
        name = f"lean-ops-{self.mark}-lake"
        ecr = self.server.client("ecr")
        ecr.create_repository(repositoryName=name)
        manifest = json.dumps({"mediaType": "application/vnd.docker.distribution.manifest.v2+json"})
        put = ecr.put_image(repositoryName=name, imageManifest=manifest, imageTag="1")
        return f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{name}@{put['image']['imageId']['imageDigest']}"

    def write_variables(self, **more: Any) -> None:
        """The variable file; a value of None leaves its line out."""
        values = {
            "environment": self.mark,
            "region": REGION,
            "topics": ["events", "orders"],
            "iceberg_bucket": self.lake,
            "schema_bucket": self.schemas,
            "deletion_protection": False,
            **more,
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None]
        (self.root / "infra" / "environments" / "trial.tfvars").write_text("\n".join(["# a comment", *lines]) + "\n")

    def write_zips(self) -> None:
        folder = self.root / "build" / "lambdas"
        folder.mkdir(parents=True, exist_ok=True)
        names = ("get_all_checkpoints", "fetch_active_topics", "check_schema", "sqs_processor", "firehose_transform")
        for name in names:
            (folder / f"{name}.zip").write_bytes(name.encode())
        listed = [{"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest()} for name in names]
        (folder / "manifest.json").write_text(json.dumps(listed))

    def write_artifacts(self, files: dict[str, bytes]) -> None:
        folder = self.root / "build" / "glue" / VERSION
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        files = {**files, "modules.txt": b"duckdb==2.0.0,pydantic==2.14.3\n"}
        for name, content in files.items():
            (folder / name).write_bytes(content)
        listed = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        (folder / "manifest.json").write_text(json.dumps(listed))

    # programs

    def answers(self, **more: Any) -> None:
        """What terraform answers from now on."""
        usual = {"version": {"terraform_version": "1.11.4"}, "outputs": {}, "state": [], "failing": []}
        (self.bin / "terraform.json").write_text(json.dumps({**usual, **more}))

    def calls(self, program: str) -> list[list[str]]:
        """How a program was called, questions after its version left out."""
        return [call["arguments"] for call in self.logged(program) if call["arguments"][0] != "version"]

    def logged(self, program: str) -> list[dict[str, Any]]:
        log = self.bin / f"{program}.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    # the account

    def keys(self, bucket: str) -> set[str]:
        return {entry["Key"] for entry in self.s3.list_objects_v2(Bucket=bucket).get("Contents", ())}

    def put(self, key: str, content: bytes) -> None:
        """An object of the schema bucket."""
        self.s3.put_object(Bucket=self.schemas, Key=key, Body=content)

    # the script

    def deploy(self, command: str, *options: str) -> int:
        """A command's exit code, for the environment `trial`."""
        code: int = module("deploy").main([command, "trial", "--root", str(self.root), *options])
        return code

    @property
    def work(self) -> Path:
        return self.root / ".lean-ops-terraform" / "trial"


def module(name: str) -> Any:
    """A module of scripts/."""
    return importlib.import_module(name)
