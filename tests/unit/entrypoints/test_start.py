"""Ctrl-C before there is a command that could answer it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lean_ops.entrypoints import cli
from lean_ops.entrypoints.start import INTERRUPTED, main

INTERRUPTED_WHILE_LOADING = """
import sys

class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "lean_ops.entrypoints.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from lean_ops.entrypoints.start import main
main()
"""


def test_interrupted_while_the_command_line_is_built_it_says_so_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


def test_interrupted_while_packages_load_it_says_so_without_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_LOADING], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (INTERRUPTED, "interrupted\n")
