"""Every benchmark can be asked for by name; the command line hands on what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import __main__ as program
from benchmarks.suite import NAMES, load
from typer.testing import CliRunner

import lean_ops
from lean_ops.entrypoints.cli import app
from lean_ops.entrypoints.commands import bench
from lean_ops.model.errors import WrongUseError


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_has_sizes_for_a_short_and_a_full_run(name: str) -> None:
    benchmark = load(name)
    assert benchmark.short.keys() == benchmark.full.keys()
    assert all(benchmark.short[size] <= benchmark.full[size] for size in benchmark.short)
    first = next(iter(benchmark.short))
    assert benchmark.sizes(full=False, given={first: 7, "of another": 1}) == {**benchmark.short, first: 7}


def test_an_unknown_name_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as left:
        program.main(["nothing", "--out", str(tmp_path)])
    assert left.value.code == 2


def test_an_installed_package_says_where_the_benchmarks_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_ops, "__file__", str(tmp_path / "site-packages" / "lean_ops" / "__init__.py"))
    with pytest.raises(WrongUseError, match=r"clone it and run `make bench`"):
        bench.repository()


def test_the_command_line_hands_its_flags_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called: list[list[str]] = []

    class Done:
        returncode = 1

    def run(command: list[str], **_: object) -> Done:
        called.append(command)
        return Done()

    monkeypatch.setattr("subprocess.run", run)
    result = CliRunner().invoke(app, ["bench", "idle", "--full", "--set", "topics=5", "--out", str(tmp_path)])
    assert result.exit_code == 1
    expected = ["idle", "--full", "--set", "topics=5", "--repeats", "3", "--out", str(tmp_path)]
    assert called[0][1:] == ["-m", "benchmarks", *expected]
