"""Where a table's metadata file lies, and what is told of one that is missing or damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lean_ops.lake.local_path import local_path
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from pathlib import Path

_LINE_END: Final = "\n"
_OBJECT_STORES: Final = ("s3://", "s3a://", "s3n://")


def is_object(location: str) -> bool:
    """Whether a location is in an object store, not on this machine."""
    return location.startswith(_OBJECT_STORES)


def table_of(location: str) -> str:
    """Database and table of a metadata file, by its folders: …/database/table/metadata/file."""
    return ".".join(location.split("/")[-4:-2])


def metadata_path(table: str, location: str) -> Path:
    """The file at a location of the catalog, which may be spelt as an address; TerminalError if there is none."""
    path = local_path(location)
    if path.is_file():
        return path
    raise damaged_metadata(table, location, FileNotFoundError(location))


def damaged_metadata(table: str, location: str, error: Exception) -> TerminalError:
    """What is told of a metadata file that is missing or can't be understood."""
    if isinstance(error, FileNotFoundError):
        what, found = "its metadata file is missing", location
    else:
        what = "its metadata file can't be read" if isinstance(error, OSError) else "its metadata file is damaged"
        found = f"{type(error).__name__}: {str(error).strip().partition(_LINE_END)[0]} in {location}"
    remedy = "Restore the file from a backup; the metadata file before it lacks the table's last commit."
    return TerminalError(what, where=table, found=found, remedy=remedy)
