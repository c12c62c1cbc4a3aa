"""Files of a lake that lies in an object store, as its readers need them: metadata at once, data as local copies."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.model.errors import TerminalError, TransientError, WrongUseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyiceberg.io import FileIO

_AT_A_TIME: Final = 8
_LEFT_FREE: Final = 64 * 1024 * 1024
_CHUNK: Final = 4 * 1024 * 1024
_CONNECT_SECONDS: Final = "3"
_REQUEST_SECONDS: Final = "20"


def region_of(environ: Mapping[str, str]) -> str:
    """The region as AWS' own libraries take it from the environment.

    Without one pyiceberg would ask the network for it, bucket by bucket.
    """
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise WrongUseError("no region is known", where="AWS_REGION", remedy="Set it, or the setting `region`.")
    return region


def store_address(environ: Mapping[str, str]) -> str | None:
    """Where the store is, if it is not AWS' own."""
    return environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")


def io_properties(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """How pyiceberg reaches the store: by the region and the address that AWS' own libraries use."""
    environ = os.environ if environ is None else environ
    address = store_address(environ)
    return {
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        "s3.region": region_of(environ),
        "s3.connect-timeout": _CONNECT_SECONDS,
        "s3.request-timeout": _REQUEST_SECONDS,
        **({"s3.endpoint": address} if address else {}),
    }


def read_object(location: str) -> bytes:
    """A whole object; FileNotFoundError if there is none, TransientError if the store does not answer."""
    try:
        with _io().new_input(location).open() as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(location, error) from error


def _io() -> FileIO:
    from pyiceberg.io import load_file_io

    return load_file_io(io_properties())


def _unreadable(location: str, error: OSError) -> TransientError:
    found = " ".join(str(error).split())[:300]
    return TransientError("an object can't be read", where=location, found=found, remedy="Do the same again.")


class Copies:
    """Local copies of data files, for readers that open files only. A data file never changes, so a copy stays true."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locations: dict[str, str] = {}

    @cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        """Goes with the process."""
        return tempfile.TemporaryDirectory(prefix="lean-ops-")

    def path_of(self, location: str) -> Path:
        """Where the copy of an object is, or will be once it is fetched."""
        name = hashlib.sha256(location.encode()).hexdigest()
        with self._guard:
            path = Path(self._folder.name) / f"{name}.parquet"
            self._locations[str(path)] = location
        return path

    def fetch(self, paths: Iterable[str]) -> None:
        """Make the copies that are not there yet; paths of other files are left alone."""
        missing = [path for path in dict.fromkeys(paths) if path in self._locations and not Path(path).exists()]
        if not missing:
            return
        io = _io()
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            self._refuse_too_much(sum(pool.map(lambda path: self._size(io, path), missing)))
            for _ in pool.map(lambda path: self._copy(io, path), missing):
                pass

    def _refuse_too_much(self, size: int) -> None:
        free = shutil.disk_usage(self._folder.name).free
        if size + _LEFT_FREE > free:
            raise TerminalError(
                "the files to be read don't fit on this machine's disk",
                where=self._folder.name,
                found=f"{size} bytes to fetch, {free} bytes free",
                remedy="Ask for fewer topics, or read the tables where they are (Athena, Spark).",
            )

    def _size(self, io: FileIO, path: str) -> int:
        location = self._locations[path]
        try:
            return len(io.new_input(location))
        except FileNotFoundError as error:
            raise _gone(location) from error
        except OSError as error:
            raise _unreadable(location, error) from error

    def _copy(self, io: FileIO, path: str) -> None:
        """The whole object or none of it: another thread may look for it at any time."""
        location, part = self._locations[path], Path(f"{path}.{uuid.uuid4().hex}")
        try:
            with io.new_input(location).open() as source, part.open("wb") as target:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)
            part.replace(path)
        except FileNotFoundError as error:
            raise _gone(location) from error
        except OSError as error:
            raise _unreadable(location, error) from error
        finally:
            part.unlink(missing_ok=True)


def _gone(location: str) -> TransientError:
    remedy = "Try again: maintenance may just have replaced it. If it stays, restore the object."
    return TransientError("a data file is missing", where=location, remedy=remedy)


COPIES: Final = Copies()
