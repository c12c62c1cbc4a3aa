"""Terraform on infra/, with state and working files of one environment only."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .finding import DeployError, Finding
from .processes import found, run, said

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .environment import Environment

OLDEST: Final = (1, 7)
# S3's own lock of the state is younger.
OLDEST_WITH_BUCKET: Final = (1, 10)
_INSTALL: Final = "Install Terraform 1.10 or newer and put it on PATH."
_QUESTION_SECONDS: Final = 600
_WORK_SECONDS: Final = 3 * 3600
# What a destroy leaves in the account: the buckets that were made here, with their settings, and the key without which
# nothing in them can be read.
_KEPT: Final = re.compile(r"^module\.storage\.aws_(kms_|s3_bucket(?!_notification))")


@dataclass(frozen=True, slots=True)
class Terraform:
    """Terraform for an environment; with a bucket its state is there, else in a file of this machine."""

    environment: Environment
    state_bucket: str | None = None
    state_region: str | None = None
    plugin_dir: str | None = None

    @property
    def state_file(self) -> Path:
        """The state of an environment that no bucket keeps."""
        return self.environment.folder / "terraform.tfstate"

    @property
    def plan_file(self) -> Path:
        """The plan that was shown last."""
        return self.environment.folder / "plan"

    @property
    def state_key(self) -> str:
        """The state's place in the bucket, as infra/bootstrap gives rights for it."""
        return f"{self.environment.values['project_name']}/{self.environment.values['environment']}.tfstate"

    def findings(self) -> list[Finding]:
        """Whether Terraform can be had, and knows where its state is."""
        return [self._version(), self._state()]

    def _version(self) -> Finding:
        program = found("terraform")
        if program is None:
            return Finding("terraform", "not on PATH", _INSTALL)
        version = str(json.loads(said([program, "version", "-json"], self._environ(), 60))["terraform_version"])
        oldest = OLDEST_WITH_BUCKET if self.state_bucket else OLDEST
        is_new = tuple(int(part) for part in re.findall(r"\d+", version)[:2]) >= oldest
        wanted = ".".join(str(part) for part in oldest)
        return Finding("terraform", version, None if is_new else f"{wanted} is needed. {_INSTALL}")

    def _state(self) -> Finding:
        what, backend = "terraform's state", self.environment.infra / "backend.tf"
        if self.state_bucket is None:
            if backend.is_file():
                remedy = "Name the bucket, STATE_BUCKET=…, or remove that file."
                return Finding(
                    what, f"{backend.relative_to(self.environment.root)} says that a bucket keeps it", remedy
                )
            return Finding(what, f"{self.state_file.relative_to(self.environment.root)}, on this machine only")
        place = f"s3://{self.state_bucket}/{self.state_key}"
        if self.state_file.is_file():
            remedy = f"Bring it to the bucket: aws s3 cp {self.state_file} {place}, and remove the file."
            return Finding(what, f"{self.state_file} on this machine, but STATE_BUCKET is given", remedy)
        return Finding(what, place)

    def init(self) -> None:
        """Fetch the provider and open the state; silent, so that what follows can be read by a machine."""
        self.environment.folder.mkdir(parents=True, exist_ok=True)
        options = [f"-plugin-dir={self.plugin_dir}"] if self.plugin_dir else []
        if self.state_bucket is not None:
            self._name_backend()
            region = self.state_region or self.environment.region
            told = {"bucket": self.state_bucket, "key": self.state_key, "region": region}
            options += [f"-backend-config={key}={value}" for key, value in told.items()]
        self._told("init", "-input=false", *options)

    def _name_backend(self) -> None:
        backend = self.environment.infra / "backend.tf"
        if not backend.is_file():
            shutil.copyfile(self.environment.infra / "backend.tf.example", backend)

    def plan(self, variables: Mapping[str, str], *, destroy: bool = False, lock: bool = True) -> Path:
        """Show what would be done, and keep it as a plan."""
        given = [f"-var={key}={value}" for key, value in variables.items()]
        options = ["-destroy"] if destroy else []
        options += [] if lock else ["-lock=false"]
        file = f"-var-file=environments/{self.environment.label}.tfvars"
        self._say("plan", "-input=false", *options, file, *given, *self._state_option(), f"-out={self.plan_file}")
        return self.plan_file

    def apply(self, plan: Path) -> None:
        """Do what a plan says, and nothing else."""
        self._say("apply", "-input=false", *self._state_option(), str(plan))
        plan.unlink(missing_ok=True)

    def outputs(self) -> dict[str, Any]:
        """The environment's outputs; DeployError if there are none yet."""
        told = json.loads(self._told("output", *self._state_option(), "-json"))
        if not told:
            raise self._not_applied("`make apply` comes first")
        return {key: output["value"] for key, output in told.items()}

    def kept(self) -> list[str]:
        """Of what is there, what a destroy leaves alone; DeployError if nothing is there."""
        if self.state_bucket is None and not self.state_file.is_file():
            raise self._not_applied("there is nothing to destroy; or its state is in a bucket: STATE_BUCKET=…")
        listed = self._told("state", "list", *self._state_option()).split("\n")
        return [address for address in listed if _KEPT.match(address)]

    def forget(self, addresses: Sequence[str]) -> None:
        """Leave these in the account, and no longer as ours."""
        self._say("state", "rm", *self._state_option(), *addresses)

    def _not_applied(self, remedy: str) -> DeployError:
        return DeployError(f"{self.environment.name} is not applied from here: {remedy}")

    def _state_option(self) -> list[str]:
        return [] if self.state_bucket is not None else [f"-state={self.state_file}"]

    def _say(self, *arguments: str) -> None:
        run(self._command(arguments), self._environ(), _WORK_SECONDS)

    def _told(self, *arguments: str) -> str:
        return said(self._command(arguments), self._environ(), _QUESTION_SECONDS)

    def _command(self, arguments: Sequence[str]) -> list[str]:
        program = found("terraform")
        if program is None:
            raise DeployError(f"terraform is not on PATH. {_INSTALL}")
        return [program, f"-chdir={self.environment.infra}", *arguments]

    def _environ(self) -> dict[str, str]:
        environ = {**os.environ, "TF_DATA_DIR": str(self.environment.folder / "data"), "TF_IN_AUTOMATION": "1"}
        config = environ.get("TF_CLI_CONFIG_FILE")
        if config and not Path(config).is_file():
            del environ["TF_CLI_CONFIG_FILE"]  # Terraform would complain of it in every call
        return environ
