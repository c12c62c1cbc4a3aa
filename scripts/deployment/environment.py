"""An environment as its files describe it: `infra/environments/NAME.tfvars`, and what `make` adds to that."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .finding import DeployError
from .tfvars import read_values

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# As infra/variables.tf has them.
_DEFAULTS: Final = {"project_name": "lean-ops", "create_buckets": False, "lambda_zip_dir": "../build/lambdas"}
_NEEDED: Final = ("environment", "region", "iceberg_bucket", "schema_bucket")
# Ignored by git as everything is that begins so; kept apart from build/, which may be deleted at any time.
_WORK: Final = ".lean-ops-terraform"


@dataclass(frozen=True, slots=True)
class Environment:
    """What is known of an environment before AWS is asked."""

    root: Path
    label: str
    version: str
    values: Mapping[str, Any]

    @property
    def infra(self) -> Path:
        """Terraform's root module."""
        return self.root / "infra"

    @property
    def name(self) -> str:
        """What every resource's name begins with."""
        return f"{self.values['project_name']}-{self.values['environment']}"

    @property
    def region(self) -> str:
        """The AWS region."""
        return str(self.values["region"])

    @property
    def topics(self) -> list[str]:
        """The topics that Terraform knows."""
        return list(self.values.get("topics") or [])

    @property
    def buckets(self) -> dict[str, str]:
        """The two buckets, by their variables."""
        return {key: str(self.values[key]) for key in ("iceberg_bucket", "schema_bucket")}

    @property
    def artifacts(self) -> Path:
        """What the jobs need, as `make glue` builds it."""
        return self.root / "build" / "glue" / self.version

    @property
    def zips(self) -> Path:
        """The functions' zips, as `make lambdas` builds them; Terraform reads the path from its own folder."""
        return (self.infra / str(self.values["lambda_zip_dir"])).resolve()

    @property
    def folder(self) -> Path:
        """What this machine keeps of the environment: Terraform's files, its plan, and which images were pushed."""
        return self.root / _WORK / self.label

    @property
    def pushed_file(self) -> Path:
        """The images that `make images` pushed, by their variables."""
        return self.folder / "images.json"

    def pushed(self) -> dict[str, str]:
        """The same, read; nothing if none were pushed from here."""
        if not self.pushed_file.is_file():
            return {}
        images: dict[str, str] = json.loads(self.pushed_file.read_text(encoding="utf-8"))
        return images


def load(root: Path, label: str, version: str | None = None) -> Environment:
    """The environment whose file is called so; DeployError if there is none or it lacks something."""
    file = root / "infra" / "environments" / f"{label}.tfvars"
    if not file.is_file():
        there = ", ".join(sorted(each.stem for each in file.parent.glob("*.tfvars"))) or "none"
        raise DeployError(f"there is no {file.relative_to(root)}; environments: {there}. Name one: ENV=dev")
    values = {**_DEFAULTS, **_discovered(root), **read_values(file)}
    missing = [key for key in _NEEDED if not values.get(key)]
    if missing:
        raise DeployError(f"{file.relative_to(root)} does not say {', '.join(missing)}")
    return Environment(root, label, version or _own_version(root), values)


def _discovered(root: Path) -> dict[str, Any]:
    """What lies beside main.tf for Terraform to find, such as the topics that discovery has written down."""
    values: dict[str, Any] = {}
    for file in sorted([*(root / "infra").glob("*.auto.tfvars"), *(root / "infra").glob("*.auto.tfvars.json")]):
        values |= read_values(file)
    return values


def _own_version(root: Path) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
