"""The file behind a location of an embedded warehouse."""

from __future__ import annotations

from os.path import exists
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from lean_ops.model.errors import TerminalError

_FILE: Final = "file:"


def local_path(location: str) -> Path:
    """The file behind a table's location; TerminalError if it is not on this machine."""
    return Path(local_name(location))


def local_name(location: str) -> str:
    """The same as text: thousands of paths, one for each file of a table, take their time."""
    if location.startswith(_FILE):
        name = f"/{location.removeprefix(_FILE).lstrip('/')}"
    elif "://" not in location:
        name = location
    else:
        raise TerminalError("not a local file", where=location, expected="a file of the embedded warehouse")
    return name if exists(name) else _decoded(name)  # noqa: PTH110  see above


def _decoded(name: str) -> str:
    """Some writers store a location percent-encoded."""
    decoded = unquote(name)
    return decoded if exists(decoded) else name  # noqa: PTH110
