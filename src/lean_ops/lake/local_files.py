"""Local files for pyiceberg, read-only: its own file layer imports pandas, which costs a read command a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final, cast

from pyiceberg.io import FileIO, InputFile, OutputFile

from lean_ops.lake.local_path import local_path
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from typing import NoReturn

    from pyiceberg.io import InputStream

IMPLEMENTATION: Final = "lean_ops.lake.local_files.LocalFileIO"


class _LocalInput(InputFile):
    """One local file."""

    def __len__(self) -> int:
        return local_path(self.location).stat().st_size

    def exists(self) -> bool:
        """Whether the file is there."""
        return local_path(self.location).is_file()

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002  pyiceberg's signature
        """The file's bytes."""
        stream: BinaryIO = local_path(self.location).open("rb")
        return cast("InputStream", stream)


class LocalFileIO(FileIO):
    """What pyiceberg needs to read metadata and manifests of a local warehouse."""

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return _LocalInput(location)

    def new_output(self, location: str) -> OutputFile:
        """Never: this side only reads."""
        self._refuse(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Never: this side only reads."""
        self._refuse(location if isinstance(location, str) else location.location)

    def _refuse(self, location: str) -> NoReturn:
        raise TerminalError("the reading side never writes", where=location)
