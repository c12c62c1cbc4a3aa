"""Merging manifests by tiers: those of few files with each other, and what comes of that with its like.

pyiceberg packs manifests into bins by their bytes. The one that is not full yet was written again, line by line in
Python, with every dozenth commit, so that a file of a shared table was told of fifteen times. In tiers it is told of
two or three times, however many commits there are.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.manifest import ManifestFile

# A manifest with fewer files than the first is as commits write them, with fewer than the second it was merged once or
# twice; the others are left to maintenance.
_TIERS: Final = (64, 4096)
TOGETHER: Final = 24


def merging_by_tiers(append: Any) -> Any:
    """An append of pyiceberg's that merges manifests in this way, if its table wants them merged."""
    if append._merge_enabled:  # noqa: SLF001  it takes no argument
        append._process_manifests = partial(_merged, append)  # noqa: SLF001
    return append


def _merged(append: Any, manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    from pyiceberg.table.update.snapshot import _ManifestMergeManager

    manager: Any = _ManifestMergeManager(0, 0, merge_enabled=True, snapshot_producer=append)
    merged: list[ManifestFile] = []
    for (spec_id, tier), group in _groups(manifests).items():
        is_full = tier is not None and len(group) >= TOGETHER
        merged += [manager._create_manifest(spec_id, group)] if is_full else group  # noqa: SLF001
    return merged


def _groups(manifests: Iterable[ManifestFile]) -> dict[tuple[int, int | None], list[ManifestFile]]:
    """Manifests that may be merged with each other; a tier of None is not merged at all."""
    groups: defaultdict[tuple[int, int | None], list[ManifestFile]] = defaultdict(list)
    for manifest in manifests:
        groups[manifest.partition_spec_id, _tier(manifest)].append(manifest)
    return groups


def _tier(manifest: ManifestFile) -> int | None:
    from pyiceberg.manifest import ManifestContent

    if manifest.content is not ManifestContent.DATA:
        return None
    files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
    return next((tier for tier, most in enumerate(_TIERS) if files < most), None)
