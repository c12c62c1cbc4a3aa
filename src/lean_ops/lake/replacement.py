"""A snapshot that takes files out of a table and puts others in, made from one read of each manifest.

pyiceberg's own overwrite reads them twice, and asks one evaluator, which keeps what it is asked about, from several
threads at a time: now and then it was told that a manifest has none of the files, and refused to go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyiceberg.manifest import DataFileContent, ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestWriterV2

from lean_ops.lake.file_plan import manifests_with_files

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestFile, ManifestWriter

_DELETED: Final = ManifestEntryStatus.DELETED
_EXISTING: Final = ManifestEntryStatus.EXISTING


def reading_manifests_once(overwrite: Any) -> Any:
    """An overwrite of pyiceberg's that tells kept lines from removed ones in this way."""
    lines = _Lines(overwrite)
    overwrite._build_delete_files_partition_predicate = lambda: None  # noqa: SLF001  it takes no argument
    overwrite._deleted_entries = lines.removed  # noqa: SLF001
    overwrite._existing_manifests = lines.kept  # noqa: SLF001
    return overwrite


class _Lines:
    """The lines of a table's manifests, told apart by whether their file is removed; pyiceberg asks for those first."""

    def __init__(self, overwrite: Any) -> None:
        self._overwrite = overwrite
        self._whole: list[ManifestFile] = []
        self._rewritten: list[tuple[ManifestFile, list[ManifestEntry]]] = []

    def removed(self) -> list[ManifestEntry]:
        """The lines of removed data files, as such; ValidationException if the table has one of the files no more."""
        overwrite, found = self._overwrite, []
        metadata, files = overwrite._transaction.table_metadata, overwrite._deleted_data_files  # noqa: SLF001
        self._whole, self._rewritten = [], []
        head = metadata.snapshot_by_name(overwrite._target_branch)  # noqa: SLF001
        for manifest in manifests_with_files(head, overwrite._io):  # noqa: SLF001
            lines = manifest.fetch_manifest_entry(overwrite._io, discard_deleted=True)  # noqa: SLF001
            gone = [_as(_DELETED, line, overwrite.snapshot_id) for line in lines if line.data_file in files]
            rest = [_as(_EXISTING, line, line.snapshot_id) for line in lines if line.data_file not in files]
            found += gone
            if not gone:
                self._whole.append(manifest)
            elif manifest.content == ManifestContent.DELETES:  # pyiceberg takes all that is removed for data
                self._rewritten.append((manifest, gone + rest))
            elif rest:
                self._rewritten.append((manifest, rest))
        overwrite._validate_required_deletes(found)  # noqa: SLF001
        return [line for line in found if line.data_file.content == DataFileContent.DATA]

    def kept(self) -> list[ManifestFile]:
        """Manifests that lose nothing, and new ones with the other lines of those that do."""
        return self._whole + [self._written(manifest, lines) for manifest, lines in self._rewritten]

    def _written(self, manifest: ManifestFile, lines: list[ManifestEntry]) -> ManifestFile:
        with self._writer(manifest) as writer:
            for line in lines:
                writer.add_entry(line)
        return writer.to_manifest_file()

    def _writer(self, manifest: ManifestFile) -> ManifestWriter:
        overwrite = self._overwrite
        writer = ManifestWriterV2 if manifest.content == ManifestContent.DATA else _DeletesWriter
        spec, output = overwrite.spec(manifest.partition_spec_id), overwrite.new_manifest_output()
        return writer(spec, overwrite.schema(), output, overwrite.snapshot_id, overwrite._compression)  # noqa: SLF001


class _DeletesWriter(ManifestWriterV2):
    """Writes manifests of delete files, of which pyiceberg writes none."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def _as(status: Any, line: ManifestEntry, snapshot_id: int | None) -> ManifestEntry:
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=line.sequence_number,
        file_sequence_number=line.file_sequence_number,
        data_file=line.data_file,
    )
