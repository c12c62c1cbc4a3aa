"""Checking schema files before anybody submits them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.govern.store import NOT_SCHEMAS
from lean_ops.model.errors import WrongUseError
from lean_ops.model.problem import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# What was refused or replaced is history: nobody will submit it again.
_PAST: Final = frozenset({"failed", "archive"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One file and, if it is not in order, why."""

    file: Path
    error: SchemaError | None


def lint(paths: Iterable[Path]) -> tuple[Finding, ...]:
    """A finding for each schema file in the given files and folders."""
    files = dict.fromkeys(file for path in paths for file in schema_files(path))
    return tuple(Finding(file, _error_of(file)) for file in files)


def schema_files(path: Path) -> tuple[Path, ...]:
    """A file itself, or the schema files anywhere under a folder; WrongUseError if there are none."""
    if path.is_file():
        return (path,)
    files = tuple(sorted(_files_under(path))) if path.is_dir() else ()
    if not files:
        raise WrongUseError(
            "there is no schema file", where=str(path), expected="a JSON file, or a folder with JSON files"
        )
    return files


def _files_under(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*.json"):
        parts = file.relative_to(folder).parts
        hidden = any(part.startswith(".") for part in parts)
        if file.is_file() and not hidden and file.name not in NOT_SCHEMAS and _PAST.isdisjoint(parts[:-1]):
            yield file


def read_schema_file(file: Path) -> bytes:
    """A file's content, or WrongUseError if there is none to read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise WrongUseError("can't be read", where=str(file), found=error.strerror) from error


def _error_of(file: Path) -> SchemaError | None:
    from lean_ops.model.schema import parse_schema

    try:
        parse_schema(read_schema_file(file), str(file))
    except SchemaError as error:
        return error
    return None
