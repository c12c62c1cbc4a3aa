"""A snapshot that takes files out of a table and puts others in, made from one read of each manifest.

pyiceberg's own overwrite reads them twice, and asks one evaluator, which keeps what it is asked about, from several
threads at a time: now and then it was told that a manifest has none of the files, and refused to go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lean_ops.lake.file_plan import manifests_with_files

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestEntry, ManifestFile


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
        self._rest: list[tuple[int, list[ManifestEntry]]] = []

    def removed(self) -> list[ManifestEntry]:
        """The lines of removed files, as such; ValidationException if the table has one of the files no more."""
        from pyiceberg.manifest import ManifestEntryStatus

        overwrite, found = self._overwrite, []
        metadata, files = overwrite._transaction.table_metadata, overwrite._deleted_data_files  # noqa: SLF001
        self._whole, self._rest = [], []
        head = metadata.snapshot_by_name(overwrite._target_branch)  # noqa: SLF001
        for manifest in manifests_with_files(head, overwrite._io):  # noqa: SLF001
            lines = manifest.fetch_manifest_entry(overwrite._io, discard_deleted=True)  # noqa: SLF001
            gone = [line for line in lines if line.data_file in files]
            if not gone:
                self._whole.append(manifest)
            elif len(gone) < len(lines):
                rest = [line for line in lines if line.data_file not in files]
                self._rest.append((manifest.partition_spec_id, rest))
            found += gone
        removed = [_as(ManifestEntryStatus.DELETED, line, overwrite.snapshot_id) for line in found]
        overwrite._validate_required_deletes(removed)  # noqa: SLF001
        return removed

    def kept(self) -> list[ManifestFile]:
        """Manifests that lose nothing, and new ones with the lines that stay of those that do."""
        from pyiceberg.manifest import ManifestEntryStatus

        written = []
        for spec_id, lines in self._rest:
            with self._overwrite.new_manifest_writer(self._overwrite.spec(spec_id)) as writer:
                for line in lines:
                    writer.add_entry(_as(ManifestEntryStatus.EXISTING, line, line.snapshot_id))
            written.append(writer.to_manifest_file())
        return self._whole + written


def _as(status: Any, line: ManifestEntry, snapshot_id: int | None) -> ManifestEntry:
    from pyiceberg.manifest import ManifestEntry

    return ManifestEntry.from_args(
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=line.sequence_number,
        file_sequence_number=line.file_sequence_number,
        data_file=line.data_file,
    )
