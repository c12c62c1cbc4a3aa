"""The log of a home takes what libraries say, too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LIBRARY = """
import logging, sys
from pathlib import Path
from lean_ops.entrypoints.logs import log_into

log_into(Path(sys.argv[1]))
try:
    raise ConnectionResetError("Java is gone")
except ConnectionResetError:
    logging.exception("while sending %s", "a command")
logging.getLogger("some.library").info("chatter")
"""


def test_a_librarys_traceback_goes_to_the_log_and_not_to_the_screen(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIBRARY, tmp_path], check=True, capture_output=True, timeout=60)

    assert (done.stdout, done.stderr) == (b"", b"")
    (line,) = (tmp_path / "lean-ops.log").read_text().splitlines()
    said = json.loads(line)
    assert (said["event"], said["level"]) == ("while sending a command", "error")
    assert "ConnectionResetError: Java is gone" in said["exception"]
