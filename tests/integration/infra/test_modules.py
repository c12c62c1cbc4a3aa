"""Every Terraform module is formatted, valid, and passes its own tests, which need no account and no server."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.integration.infra.terraform import INFRA, clean_environ, plugin_options, terraform_binary

MODULES = sorted(str(tests.parent.relative_to(INFRA)) for tests in INFRA.rglob("tests") if tests.is_dir())
SECONDS = 600


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, because Terraform writes beside what it reads."""
    folder = tmp_path_factory.mktemp("modules") / "infra"
    shutil.copytree(INFRA, folder, ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*", "*.auto.tfvars*"))
    return folder


def terraform(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [terraform_binary(), *arguments],
        cwd=folder,
        env=clean_environ(),
        text=True,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def test_every_module_has_tests() -> None:
    modules = {str(file.parent.relative_to(INFRA)) for file in INFRA.rglob("versions.tf")}
    assert modules == set(MODULES)
    assert len(modules) >= 9


def test_everything_is_formatted() -> None:
    assert terraform(INFRA, "fmt", "-check", "-recursive", "-diff") == ""


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_valid_and_passes_its_tests(copied: Path, module: str) -> None:
    folder = copied / module
    terraform(folder, "init", "-backend=false", "-no-color", *plugin_options())
    terraform(folder, "validate", "-no-color")
    said = terraform(folder, "test", "-no-color")
    assert "Success!" in said
    assert " 0 failed" in said
