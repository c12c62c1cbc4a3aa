"""Terraform on a copy of infra/ that talks to a local AWS; nothing is written into the tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.servers.supply import cache_dir

from lean_ops.lake.jars import alone
from lean_ops.model.errors import TerminalError

INFRA: Final = Path(__file__).resolve().parents[3] / "infra"
PLUGIN_DIR: Final = "TF_PLUGIN_DIR"
_PROVIDER: Final = "terraform-provider-aws*"
_USUAL_PLUGIN_DIRS: Final = (
    "~/.terraform.d/plugins",
    "/usr/local/share/terraform/plugins",
    "/usr/share/terraform/plugins",
)
_LEFT_OUT: Final = ("*.tfstate*", ".terraform*", "*.auto.tfvars*", "backend.tf", "tests")
# A minute or two on an idle machine.
_SECONDS: Final = 1200
# What only a stand-in needs; the endpoints come by AWS' own variables.
_OVERRIDE: Final = """
provider "aws" {
  s3_use_path_style           = true
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  max_retries                 = 2
}
"""
# moto forgets which queues may use a dead letter queue, and the provider would wait minutes for it to remember.
_MESSAGING_OVERRIDE: Final = """
resource "aws_sqs_queue" "dlq" {
  redrive_allow_policy = null
}
"""


@dataclass(frozen=True, slots=True)
class Terraform:
    """The root module in a folder of its own, with its variables and the environment that leads to a server."""

    folder: Path
    environ: Mapping[str, str]

    @classmethod
    def copy(cls, folder: Path, endpoint: Mapping[str, str], variables: Mapping[str, Any]) -> Terraform:
        """A fresh copy of the root module, ready to plan."""
        shutil.copytree(INFRA, folder, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        (folder / "local_override.tf").write_text(_OVERRIDE, encoding="utf-8")
        (folder / "modules/messaging/local_override.tf").write_text(_MESSAGING_OVERRIDE, encoding="utf-8")
        (folder / "test.auto.tfvars.json").write_text(json.dumps(variables), encoding="utf-8")
        environ = {**clean_environ(), **endpoint}
        init(folder, environ)
        return cls(folder, environ)

    def override(self, text: str, module: str) -> None:
        """Have a module do something otherwise, by Terraform's own rules of override files."""
        with (self.folder / "modules" / module / "local_override.tf").open("a", encoding="utf-8") as file:
            file.write(text)

    def run(self, command: str, *arguments: str) -> str:
        """What a command prints; AssertionError with its words if it fails."""
        return run(self.folder, self.environ, command, *arguments)

    def planned(self, *parts: str) -> dict[str, dict[str, Any]]:
        """The resources of all or some parts that would be made, by address: all attributes, known already or not."""
        self.run("plan", "-out=plan", "-no-color", *(f"-target={part}" for part in parts))
        changes = json.loads(self.run("show", "-json", "plan"))["resource_changes"]
        made = (each for each in changes if each["mode"] == "managed")
        return {each["address"]: {**each["change"]["after_unknown"], **each["change"]["after"]} for each in made}

    def apply(self, addresses: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Make these resources and what they need; all that is there then, by address."""
        targets = [f"-target={address}" for address in addresses]
        self.run("apply", "-auto-approve", "-no-color", "-parallelism=30", *targets)  # most of it is waiting
        return dict(_resources(json.loads(self.run("show", "-json"))["values"]["root_module"]))


def _resources(module: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for resource in module.get("resources", ()):
        if resource["mode"] == "managed":
            yield resource["address"], resource["values"]
    for child in module.get("child_modules", ()):
        yield from _resources(child)


def init(folder: Path, environ: Mapping[str, str]) -> None:
    """Make a folder ready for everything else; what comes from the registry is fetched once for all folders."""
    known = plugin_options()
    if known:
        run(folder, environ, "init", "-backend=false", "-no-color", *known)
        return
    cache = cache_dir() / "terraform"
    with alone(cache):  # Terraform's cache is not made for two at a time
        # Without the second variable Terraform trusts its cache only for what a lock file names, and there is none.
        told = {"TF_PLUGIN_CACHE_DIR": str(cache), "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE": "1"}
        run(folder, {**environ, **told}, "init", "-backend=false", "-no-color")


def run(folder: Path, environ: Mapping[str, str], command: str, *arguments: str) -> str:
    """What a command prints; AssertionError with its words if it fails."""
    done = subprocess.run(
        [terraform_binary(), command, *arguments],
        cwd=folder,
        env=dict(environ),
        text=True,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"terraform {command} failed:\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def terraform_binary() -> str:
    """Terraform on this machine; TerminalError if there is none."""
    found = shutil.which("terraform")
    if found is None:
        remedy = "Install Terraform 1.7 or newer and put it on PATH."
        raise TerminalError("terraform is missing", where="PATH", remedy=remedy)
    return found


def plugin_options() -> list[str]:
    """Where this machine keeps the provider; nothing if Terraform is to fetch it from its registry."""
    given = os.environ.get(PLUGIN_DIR)
    folder = Path(given) if given else next(filter(_has_provider, _usual_folders()), None)
    return [f"-plugin-dir={folder}"] if folder else []


def _usual_folders() -> Iterator[Path]:
    yield from (Path(folder).expanduser() for folder in _USUAL_PLUGIN_DIRS)
    yield from sorted(Path("/opt").glob("*/"))


def _has_provider(folder: Path) -> bool:
    """Providers lie at HOST/NAMESPACE/TYPE/VERSION/PLATFORM/FILE, or packed one folder higher."""
    return any(folder.glob(f"*/*/aws/*/*/{_PROVIDER}")) or any(folder.glob(f"*/*/aws/{_PROVIDER}"))


def clean_environ() -> dict[str, str]:
    """Of the person's environment what Terraform needs to run, and nothing that leads to a real account."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "TF_"))}
    told = os.environ.get("TF_CLI_CONFIG_FILE", "")
    config = {"TF_CLI_CONFIG_FILE": told} if told and Path(told).is_file() else {}
    return {**kept, **config, "TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}
