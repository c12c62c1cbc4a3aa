"""A repository as small as a deployment can do with, for the local AWS: `scripts/deployment` works on it as on ours.

infra/ is a copy with one file more, which tells the provider of Terraform that this is no real AWS.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.aws_local.stage_build import ROOT
from tests.integration.infra.terraform import INFRA, plugin_options
from tests.servers.server import ACCOUNT, REGION

from lean_ops.model.errors import TerminalError

LABEL: Final = "local"
_LAST_CHARACTERS: Final = 4000
_LEFT_OUT: Final = ("*.tfstate*", ".terraform*", "*.auto.tfvars*", "backend.tf", "tests", "bootstrap", "*.tfvars")
# Endpoints come by AWS' own variables.
_OVERRIDE: Final = """
provider "aws" {
  s3_use_path_style           = true
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  max_retries                 = 2
}
"""
# Nobody fetches it: a function that is an image runs the repository's own code.
IMAGE: Final = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/lean-ops-{LABEL}-lake@sha256:{'0' * 64}"


@dataclass(frozen=True, slots=True)
class StageRoot:
    """The folder; what it does to AWS is done with the variables of this process."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, artifacts: Path, variables: Mapping[str, Any]) -> StageRoot:
        """A fresh one with these artifacts and variables of the root module."""
        shutil.copytree(INFRA, folder / "infra", ignore=shutil.ignore_patterns(*_LEFT_OUT))
        (folder / "infra" / "local_override.tf").write_text(_OVERRIDE, encoding="utf-8")
        (folder / "build").symlink_to(artifacts)
        for name in ("schemas", "pyproject.toml", "deploy"):
            (folder / name).symlink_to(ROOT / name)
        given = {**variables, "lambda_zip_dir": str(artifacts / "lambdas")}
        lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
        environments = folder / "infra" / "environments"
        environments.mkdir(exist_ok=True)
        (environments / f"{LABEL}.tfvars").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return cls(folder)

    @property
    def environment(self) -> Any:
        """The environment, as `make` reads it."""
        _scripts_on_path()
        from deployment.environment import load

        return load(self.folder, LABEL)

    @property
    def terraform(self) -> Any:
        """Terraform, as `make` calls it; its state is in this folder."""
        _scripts_on_path()
        from deployment.terraform import Terraform

        plugins = [option.partition("=")[2] for option in plugin_options()]
        return Terraform(self.environment, plugin_dir=plugins[0] if plugins else None)

    def variables(self) -> dict[str, str]:
        """What Terraform is told beside the variable file."""
        from deployment.artifacts import packages

        modules = json.dumps(packages(self.environment))
        return {"artifact_version": self.environment.version, "glue_python_modules": modules, "lake_image_uri": IMAGE}

    def apply(self) -> dict[str, Any]:
        """The whole root module; its outputs."""
        terraform = self.terraform
        with self._quietly():
            terraform.init()
            terraform.apply(terraform.plan(self.variables()))
        outputs: dict[str, Any] = terraform.outputs()
        return outputs

    def changes(self) -> dict[str, dict[str, Any]]:
        """What another apply would change, by address."""
        terraform = self.terraform
        with self._quietly():
            plan = terraform.plan(self.variables())
        planned = json.loads(terraform._told("show", "-json", str(plan)))
        return {
            change["address"]: change["change"]
            for change in planned["resource_changes"]
            if change["change"]["actions"] not in (["no-op"], ["read"])
        }

    def destroy(self) -> None:
        """All that the apply made."""
        terraform = self.terraform
        with self._quietly():
            terraform.apply(terraform.plan(self.variables(), destroy=True))

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """What Terraform says goes to a file; its last words are told if it fails."""
        from deployment.finding import DeployError

        log = self.folder / "terraform.log"
        sys.stdout.flush()
        screen = os.dup(1)
        try:
            with log.open("ab") as file:
                os.dup2(file.fileno(), 1)
            yield
        except DeployError as error:
            words = log.read_text(encoding="utf-8", errors="replace")[-_LAST_CHARACTERS:]
            raise TerminalError(str(error), where=str(log), found=words) from error
        finally:
            os.dup2(screen, 1)
            os.close(screen)

    def upload(self) -> list[str]:
        """The jobs' files to the bucket; their keys."""
        _scripts_on_path()
        from deployment.artifacts import upload

        written: list[str] = upload(self.environment)
        return written

    def submit_schemas(self, schemas: dict[str, Path], seconds: float) -> list[Any]:
        """Schemas as pending objects; what became of each."""
        _scripts_on_path()
        from deployment.schemas import submit

        outcomes: list[Any] = submit(self.environment, schemas, seconds)
        return outcomes

    def settings(self, outputs: Mapping[str, Any]) -> dict[str, str]:
        """The variables by which `lean-ops` finds the environment."""
        _scripts_on_path()
        from deployment.trial import settings

        found: dict[str, str] = settings(outputs, self.environment.values)
        return found


def _scripts_on_path() -> None:
    scripts = str(ROOT / "scripts")
    if scripts not in sys.path:
        sys.path.append(scripts)
