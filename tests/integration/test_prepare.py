"""`lean-ops prepare`, and that Spark starts with what it has made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
TOLD = {**os.environ, "LEAN_OPS_SPARK_MASTER": "local[1]"}


def lean_ops(home: Path, *arguments: str, **environ: str) -> str:
    command = [sys.executable, "-m", "lean_ops", "--home", str(home), "--json", *arguments]
    return subprocess.run(command, env={**TOLD, **environ}, check=True, capture_output=True, text=True).stdout


def test_spark_takes_its_classes_from_the_file_that_was_made(tmp_path: Path) -> None:
    home, loads = tmp_path / "home", tmp_path / "loads.log"
    said = json.loads(lean_ops(home, "prepare"))
    again = json.loads(lean_ops(home, "prepare"))

    lean_ops(home, "demo", LEAN_OPS_SPARK_JAVA_OPTIONS=f"-Xlog:class+load:file={loads}")

    assert Path(said["class_archive"]).is_file()
    assert again == {"class_archive": said["class_archive"], "made": False}
    loaded = loads.read_text(encoding="utf-8").splitlines()
    ready = [line for line in loaded if line.endswith("shared objects file (top)")]
    from_jars = [line for line in loaded if line.endswith(".jar")]
    assert len(ready) > 10_000
    assert len(from_jars) < 0.1 * len(ready)
    for name in ("org.apache.spark.SparkContext", "org.apache.iceberg.MergeAppend", "leanops.judge.Judge"):
        assert any(f" {name} " in line for line in ready), name
