"""What the Spark jobs need on AWS is built the same every time, and is all there."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_glue", ROOT / "scripts" / "build_glue.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_sources_make_the_same_files(script: ModuleType, tmp_path: Path) -> None:
    folders = [script.build(tmp_path / name) for name in ("one", "other")]
    manifests = [json.loads((folder / "manifest.json").read_text(encoding="utf-8")) for folder in folders]
    assert manifests[0] == manifests[1]
    wheel = f"lean_ops-{folders[0].name}-py3-none-any.whl"
    jobs = {"standardized.py", "curated.py", "rebuild.py"}
    assert {wheel, "lean-ops-kernel.jar", "modules.txt", *jobs} <= manifests[0].keys()
    with zipfile.ZipFile(folders[0] / "lean-ops-kernel.jar") as jar:
        assert "leanops/Functions.class" in jar.namelist()
    with zipfile.ZipFile(folders[0] / wheel) as packed:
        inside = packed.namelist()
        described = packed.read(next(name for name in inside if name.endswith("METADATA"))).decode()
    assert "lean_ops/entrypoints/jobs/standardized.py" in inside
    # Otherwise pip would put a second Spark beside Glue's own.
    spark = [line for line in described.splitlines() if line.startswith("Requires-Dist: pyspark")]
    assert spark
    assert all("extra ==" in line for line in spark)


def test_every_package_of_the_jobs_is_pinned_once_and_spark_is_none_of_them(script: ModuleType) -> None:
    names = [pin.partition("==")[0] for pin in script.pins()]
    assert len(names) == len(set(names))
    assert {"boto3", "duckdb", "pyarrow", "pydantic", "pyiceberg", "structlog"} <= set(names)
    assert not {"pyspark", "py4j"} & set(names)
    tested = (ROOT / "lock" / "dev.txt").read_text(encoding="utf-8")
    assert all(f"{pin} " in tested or f"{pin}\n" in tested or f"{pin} ;" in tested for pin in script.pins())
