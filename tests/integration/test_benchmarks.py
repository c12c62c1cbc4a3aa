"""A benchmark in a process of its own leaves its results; a crash is told, not hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import __main__ as program


def test_a_benchmark_that_crashes_is_told_and_is_exit_code_1(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert program.main(["ingest", "--set", "bodies=0", "--out", str(tmp_path)]) == 1
    found = json.loads((tmp_path / "ingest.json").read_text(encoding="utf-8"))
    assert "Error" in found["crashed"]
    assert "CRASHED" in capfd.readouterr().out
    assert not (tmp_path / "work").exists()


def test_a_small_benchmark_leaves_its_document_and_its_plot(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["ingest", "--set", "bodies=200", "--repeats", "1", "--out", str(tmp_path)]
    assert program.main(words) == 0
    found = json.loads((tmp_path / "ingest.json").read_text(encoding="utf-8"))
    assert found["run"]["command"] == "lean-ops bench ingest --repeats 1 --set bodies=200"
    assert {each["facts"].get("raw") for each in found["measurements"]} == {None, 200}
    assert (tmp_path / "ingest.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "bodies into RAW" in capfd.readouterr().out
    assert program.main([*words, "--strict"]) == (0 if all(bar["met"] for bar in found["bars"]) else 1)
