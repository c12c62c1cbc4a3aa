"""Which file of a table is at fault: asked once reading has failed, because a reader's own words seldom tell."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.model.errors import LeanOpsError, TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import Table

_PARQUET: Final = b"PAR1"  # the first and the last bytes of every Parquet file
_REMEDY: Final = "Restore the file from a backup and do the same again."
_GONE: Final = "Try again: maintenance may just have replaced it. If it stays, restore the file from a backup."


@contextmanager
def naming_damage(tables: Callable[[], Iterable[Table]]) -> Iterator[None]:
    """A block that reads tables; if it fails and one of their files is missing or damaged, the error names that file.

    Whatever else fails in the block is none of this module's business and passes as it is.
    """
    try:
        yield
    except LeanOpsError:
        raise
    except Exception as error:
        damage = next((found for table in tables() if (found := find_damage(table))), None)
        if damage is None:
            raise
        raise damage from error


def find_damage(table: Table) -> TerminalError | None:
    """The first file behind main that is missing or damaged."""
    snapshot, name = table.current_snapshot(), name_of(table)
    if snapshot is None:
        return None
    try:
        manifests = snapshot.manifests(table.io)
    except Exception as error:  # a broken file breaks its parser in any way
        return _damaged(name, snapshot.manifest_list, error)
    return next((found for manifest in manifests if (found := _of_manifest(name, table.io, manifest))), None)


def name_of(table: Table) -> str:
    """Database and table, also of one that was opened without the catalog: its folder has both names."""
    return ".".join(table.location().rstrip("/").split("/")[-2:])


def _of_manifest(name: str, io: FileIO, manifest: ManifestFile) -> TerminalError | None:
    try:
        files = [entry.data_file for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)]
    except Exception as error:  # as above
        return _damaged(name, manifest.manifest_path, error)
    return next((found for file in files if (found := _of_data_file(name, io, file))), None)


def _of_data_file(name: str, io: FileIO, file: DataFile) -> TerminalError | None:
    source = io.new_input(file.file_path)
    if not source.exists():
        return _damaged(name, file.file_path, FileNotFoundError())
    size = len(source)
    if size == file.file_size_in_bytes:
        return None
    found = f"{size} bytes in {file.file_path}"
    expected = f"{file.file_size_in_bytes} bytes"
    return TerminalError("a data file is damaged", where=name, found=found, expected=expected, remedy=_REMEDY)


def _damaged(name: str, location: str, error: Exception) -> TerminalError:
    if isinstance(error, FileNotFoundError):
        return TerminalError("a file of the table is missing", where=name, found=f"no {location}", remedy=_REMEDY)
    found = f"{type(error).__name__} in {location}"
    return TerminalError("a metadata file of the table is damaged", where=name, found=found, remedy=_REMEDY)


def damaged_parquet(paths: Iterable[str]) -> TerminalError | None:
    """The first of these local files that is missing, or is no whole Parquet file."""
    for path in map(Path, paths):
        if not path.is_file():
            return TerminalError("a data file can't be read", where=str(path), found="no such file", remedy=_GONE)
        if not _is_whole(path):
            found = "no end of a Parquet file"
            return TerminalError("a data file is damaged", where=str(path), found=found, remedy=_REMEDY)
    return None


def _is_whole(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - len(_PARQUET)))
        return file.read() == _PARQUET
