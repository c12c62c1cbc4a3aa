"""The functions' zips: the same bytes from the same input, whole in themselves, and with nothing too much in them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "build_lambdas.py"
SMALL = "get_all_checkpoints"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The script, over a copy of our code that nobody edits meanwhile."""
    spec = importlib.util.spec_from_file_location("build_lambdas", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src" / "lean_ops", source / "lean_ops", ignore=shutil.ignore_patterns("__pycache__"))
    vars(module)["SOURCE"] = source
    return module


@pytest.fixture(scope="module")
def built(script: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small function's zip; it has no compiled package, so any Python can try it."""
    out = tmp_path_factory.mktemp("first")
    assert script.main([SMALL, "--out", str(out)]) == 0
    return out / f"{SMALL}.zip"


def test_a_zip_is_the_same_when_it_is_built_again_elsewhere(
    script: ModuleType, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a folder of another name"
    for file in script.SOURCE.rglob("*.py"):
        file.touch()
    assert script.main([SMALL, "--out", str(out), "--architecture", "arm64"]) == 0
    assert f"| `{SMALL}` |" in capsys.readouterr().out
    first, again = (json.loads((folder / "manifest.json").read_text())[0] for folder in (built.parent, out))
    assert again["sha256"] == first["sha256"] == hashlib.sha256(built.read_bytes()).hexdigest()
    assert (out / f"{SMALL}.zip").read_bytes() == built.read_bytes()


def test_nothing_of_the_machine_or_the_moment_is_in_a_zip(built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        entries = archive.infolist()
    names = [entry.filename for entry in entries]
    assert names == sorted(names)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {entry.external_attr for entry in entries} == {0o100644 << 16}
    assert not [name for name in names if name.endswith((".pyc", "/RECORD", "/INSTALLER"))]
    assert not [name for name in names if name.startswith(("/", "bin/")) or ".." in name]


def test_a_zip_has_what_it_needs_and_nothing_heavy(built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        tops = {entry.filename.partition("/")[0] for entry in archive.infolist()}
    assert {"lean_ops", "boto3", "botocore", "aws_lambda_powertools"} <= tops
    heavy = {"pyspark", "py4j", "pandas", "duckdb", "pyarrow", "pyiceberg", "numpy", "pydantic"}
    assert not heavy & tops
    assert built.stat().st_size < 10_000_000


HANDLER_OF_THE_ZIP = """
import sys
sys.path[:] = [sys.argv[1], *[place for place in sys.path if "site-packages" not in place]]
from lean_ops.entrypoints.lambdas.get_all_checkpoints import handler
assert sys.argv[1] in handler.__code__.co_filename, handler.__code__.co_filename
try:
    handler({"topics": 7}, None)
except Exception as error:
    print(type(error).__name__, error)
"""

STORE_OF_THE_ZIP = """
import sys
sys.path[:] = [sys.argv[1], *[place for place in sys.path if "site-packages" not in place]]
from lean_ops.entrypoints.lambdas import asked
from lean_ops.aws import clients
asked.state()
for name in ("firehose_client", "sqs_client", "s3_client", "glue_client"):
    print(getattr(clients, name)().meta.service_model.service_name)
"""


def in_a_clean_interpreter(text: str, path: Path) -> str:
    environ = {"AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-central-1"}
    environ |= {"LEAN_OPS_PROJECT": "p", "LEAN_OPS_ENVIRONMENT": "test"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_handler_comes_from_the_zip_alone(built: Path) -> None:
    assert "WrongUseError event key 'topics'" in in_a_clean_interpreter(HANDLER_OF_THE_ZIP, built)


def test_the_functions_parts_come_from_what_is_unpacked(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path)
    assert in_a_clean_interpreter(STORE_OF_THE_ZIP, tmp_path).split() == ["firehose", "sqs", "s3", "glue"]


# what is written down of them


def test_every_function_is_in_the_list_and_in_the_docs(script: ModuleType) -> None:
    folder = ROOT / "src" / "lean_ops" / "entrypoints" / "lambdas"
    entries = {file.stem for file in folder.glob("*.py") if "\ndef handler(" in file.read_text()}
    assert set(script.functions()) == entries
    docs = (ROOT / "docs" / "lambdas.md").read_text()
    for name, function in script.functions().items():
        assert f"`{name}`" in docs
        assert function.form in {"zip", "image"}
        assert function.packages in script.package_sets()


def test_zips_carry_what_boto3_needs_for_every_service_that_we_talk_to(script: ModuleType) -> None:
    aws = ROOT / "src" / "lean_ops" / "aws"
    used = {
        name for file in aws.rglob("*.py") for name in re.findall(r'boto3\.client\("([a-z0-9-]+)"', file.read_text())
    }
    assert used
    assert used <= set(script.aws_services())


def pins(file: Path) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9.-]+)==([^ ]+)", file.read_text(), re.MULTILINE))


def test_functions_carry_the_versions_that_everything_is_tested_with(script: ModuleType) -> None:
    tested = pins(ROOT / "lock" / "dev.txt")
    for packages, names in script.package_sets().items():
        locked = pins(script.lock_file(packages))
        assert {name.partition("[")[0] for name in names} <= set(locked)
        assert {name: version for name, version in locked.items() if tested.get(name) != version} == {}
        assert "pyspark" not in locked
        assert "pandas" not in locked


def test_the_image_installs_by_hashes_what_the_list_names(script: ModuleType) -> None:
    text = (ROOT / "deploy" / "lambdas" / "Dockerfile").read_text()
    assert "--require-hashes" in text
    assert "lock/lambda-${PACKAGES}.txt" in text
    images = {function.packages for function in script.functions().values() if function.form == "image"}
    for packages in images:
        assert f"PACKAGES={packages}" in text
        assert script.lock_file(packages).is_file()
    assert re.search(r"^ARG BASE=\S+/python:3\.13$", text, re.MULTILINE)
    assert script.PYTHON_VERSION == "3.13"


def test_a_function_that_is_no_zip_is_refused(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left:
        script.main(["ensure_table", "--out", str(tmp_path)])
    assert left.value.code == 2


def test_packages_that_must_not_be_in_a_zip_fail_the_build(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def install(_: object, folder: Path, __: str) -> None:
        (folder / "pandas").mkdir()
        (folder / "pandas" / "__init__.py").touch()

    monkeypatch.setattr(script, "_install", install)
    assert script.main([SMALL, "--out", str(tmp_path)]) == 1
    assert "pandas must not be in a zip" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.zip"))
