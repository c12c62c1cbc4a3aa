"""Every Terraform module is formatted, valid, and passes its own tests, which need no account and no server."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.integration.infra.terraform import INFRA, clean_environ, init, run

MODULES = sorted(str(tests.parent.relative_to(INFRA)) for tests in INFRA.rglob("tests") if tests.is_dir())
# Terraform validates with a module all that it calls: these two reach every other.
ROOTS = (".", "bootstrap")
SOURCE = re.compile(r'(?m)^\s*source\s*=\s*"\./(modules/[^"]+)"')


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, because Terraform writes beside what it reads."""
    folder = tmp_path_factory.mktemp("modules") / "infra"
    shutil.copytree(INFRA, folder, ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*", "*.auto.tfvars*"))
    return folder


def test_every_module_has_tests() -> None:
    modules = {str(file.parent.relative_to(INFRA)) for file in INFRA.rglob("versions.tf")}
    assert modules == set(MODULES)
    assert len(modules) >= 9


def test_the_root_calls_every_module() -> None:
    called = SOURCE.findall((INFRA / "main.tf").read_text(encoding="utf-8"))
    assert {*called, *ROOTS} == set(MODULES)


def test_everything_is_formatted() -> None:
    assert run(INFRA, clean_environ(), "fmt", "-check", "-recursive", "-diff") == ""


@pytest.mark.parametrize("module", ROOTS)
def test_a_root_is_valid_with_all_that_it_calls(copied: Path, module: str) -> None:
    init(copied / module, clean_environ())
    run(copied / module, clean_environ(), "validate", "-no-color")


@pytest.mark.parametrize("module", MODULES)
def test_a_module_passes_its_tests(copied: Path, module: str) -> None:
    init(copied / module, clean_environ())
    said = run(copied / module, clean_environ(), "test", "-no-color")
    assert "Success!" in said
    assert " 0 failed" in said
