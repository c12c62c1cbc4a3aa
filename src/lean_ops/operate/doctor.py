"""Is everything here that a run needs? Looks, and changes nothing: not even the home is made."""

from __future__ import annotations

import platform
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from lean_ops.lake.catalog import CATALOG_NAME
from lean_ops.lake.catalog_file import CatalogFile, read_history
from lean_ops.lake.jars import jars_dir
from lean_ops.lake.java import find_java
from lean_ops.lake.kernel_jar import jars_to_fetch
from lean_ops.model.errors import LeanOpsError
from lean_ops.sqlite_file import open_to_read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lean_ops.lake.snapshots import History
    from lean_ops.settings import Settings

_GB: Final = 1024**3
_DISK_NEEDED: Final = _GB
_OLDEST_PYTHON: Final = (3, 11)
_SANE_YEARS: Final = range(2025, 2100)
_CLOCK_SLACK: Final = timedelta(minutes=1)
_FAULTS_SHOWN: Final = 3
_INIT: Final = "`lean-ops init` makes it."


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at; `remedy` says what to do when it is not well."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class _Tables:
    """What the catalog led to: histories of tables that can be read, and what is wrong with the others."""

    histories: tuple[History, ...] = ()
    faults: tuple[str, ...] = ()


def examine(settings: Settings, environ: Mapping[str, str], now: datetime) -> tuple[Check, ...]:
    """Every check, in the order in which a run would stumble."""
    tables = _read_tables(settings)
    return (
        _python(),
        _java(settings, environ),
        _jars(settings),
        _disk("disk of the home", settings.home),
        _disk("disk of the cache", settings.cache_dir),
        _home(settings.home),
        _catalog(settings, tables),
        _state(settings),
        _clock(tables, now),
        Check("credentials", True, f"not needed: the {settings.profile} profile uses no account"),
    )


def _python() -> Check:
    ok = sys.version_info >= _OLDEST_PYTHON
    return Check("python", ok, f"{platform.python_version()} ({sys.executable})", "" if ok else "Install Python 3.11.")


def _java(settings: Settings, environ: Mapping[str, str]) -> Check:
    try:
        java = find_java(settings.cache_dir, environ)
    except LeanOpsError as error:
        return Check("java", False, error.found or error.what, error.remedy or "")
    return Check("java", True, f"{java.version} from {java.source}")


def _jars(settings: Settings) -> Check:
    folder = jars_dir(settings.cache_dir)
    missing = jars_to_fetch(settings.cache_dir)
    if not missing:
        return Check("jars", True, f"in {folder}")
    size = sum(jar.size for jar in missing) // 1_000_000
    return Check(
        "jars", True, f"the next run fetches {len(missing)} from Maven Central into {folder} ({size} MB, once)"
    )


def _disk(name: str, folder: Path) -> Check:
    place = _existing(folder)
    free = shutil.disk_usage(place).free
    ok = free >= _DISK_NEEDED
    remedy = "" if ok else f"Free at least {_DISK_NEEDED // _GB} GB, or choose a folder on another disk."
    return Check(name, ok, f"{free / _GB:.1f} GB free at {place}", remedy)


def _home(home: Path) -> Check:
    place = _existing(home)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        remedy = f"Make {place} a folder that you can write to, or choose another home with --home."
        return Check("home", False, f"{place} can't be written: {error.strerror or error}", remedy)
    if home.is_dir():
        return Check("home", True, f"{home} can be written")
    return Check("home", True, f"{home} is not made yet; it can be: {_INIT}")


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    return next(place for place in (folder, *folder.parents) if place.exists())


# The catalog and its tables


def _read_tables(settings: Settings) -> _Tables:
    histories: list[History] = []
    faults: list[str] = []
    catalog = CatalogFile(settings.catalog_file, CATALOG_NAME)
    try:
        for database in settings.names.databases:
            for table, location in catalog.locations(database).items():
                _read_table(f"{database}.{table}", location, histories, faults)
    except LeanOpsError as error:
        faults.append(f"{error.where}: {error.found}")
    return _Tables(tuple(histories), tuple(faults))


def _read_table(name: str, location: str, histories: list[History], faults: list[str]) -> None:
    try:
        history = read_history(name, location)
    except LeanOpsError as error:
        faults.append(f"{name}: {error.what} ({error.found})")
        return
    except (OSError, KeyError, TypeError, AttributeError) as error:
        faults.append(f"{name}: its metadata file can't be used ({location}: {error!r})")
        return
    if history.head is not None and history.head not in history.snapshots:
        faults.append(f"{name}: its current snapshot {history.head} is not in {location}")
    histories.append(history)


def _catalog(settings: Settings, tables: _Tables) -> Check:
    file = settings.catalog_file
    if not file.is_file():
        orphans = settings.warehouse_dir.is_dir() and any(settings.warehouse_dir.iterdir())
        detail = f"there is no {file}" + (", but the warehouse holds tables" if orphans else " yet")
        return Check("catalog", not orphans, detail, "Restore the file from a backup." if orphans else _INIT)
    faults = (*_integrity_faults(file), *tables.faults)
    if faults:
        remedy = "Restore the home from a backup; a home that was moved must go back to where it was made."
        return Check("catalog", False, _some(faults), remedy)
    missing = {str(name) for name in settings.names.shared} - {history.table for history in tables.histories}
    if missing:
        return Check(
            "catalog", False, f"without {_some(tuple(sorted(missing)))}", "`lean-ops init` makes what is missing."
        )
    return Check("catalog", True, f"{len(tables.histories)} tables, the metadata of each can be read")


def _state(settings: Settings) -> Check:
    file = settings.state_file
    if not file.is_file():
        lost = settings.catalog_file.is_file()
        detail = f"there is no {file}" + (" beside the catalog" if lost else " yet")
        remedy = "Restore it from a backup; `lean-ops init` makes an empty one, and schemas must then be sent again."
        return Check("state", not lost, detail, remedy if lost else _INIT)
    faults = _integrity_faults(file)
    if faults:
        return Check("state", False, _some(faults), "Restore the file from a backup.")
    return Check("state", True, f"{file} is sound")


def _integrity_faults(file: Path) -> tuple[str, ...]:
    """What SQLite finds wrong with one of its files."""
    try:
        with closing(open_to_read(file)) as db:
            answers = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
    except sqlite3.Error as error:
        return (f"{file}: {error}",)
    return () if answers == ["ok"] else tuple(f"{file}: {answer}" for answer in answers)


def _some(faults: tuple[str, ...]) -> str:
    more = len(faults) - _FAULTS_SHOWN
    return "; ".join(faults[:_FAULTS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _clock(tables: _Tables, now: datetime) -> Check:
    if now.year not in _SANE_YEARS:
        return Check("clock", False, f"it says {now:%Y-%m-%d %H:%M} UTC", "Set the machine's clock.")
    times = [snapshot.timestamp_ms for history in tables.histories for snapshot in history.snapshots.values()]
    newest = datetime.fromtimestamp(max(times) / 1000, UTC) if times else now
    if newest > now + _CLOCK_SLACK:
        detail = f"it says {now:%Y-%m-%d %H:%M:%S} UTC, but a snapshot was written at {newest:%Y-%m-%d %H:%M:%S} UTC"
        return Check("clock", False, detail, "Set the machine's clock: leases and expiry rely on it.")
    return Check("clock", True, f"{now:%Y-%m-%d %H:%M:%S} UTC")
