"""Which files of a table may hold rows, for those who look at the rows themselves afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.expressions.visitors import UnpartitionedResidualEvaluator
from pyiceberg.table import ManifestGroupPlanner

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.expressions.visitors import ResidualEvaluator
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table.snapshots import Snapshot


def manifests_with_files(snapshot: Snapshot | None, io: FileIO) -> list[ManifestFile]:
    """The manifests of a snapshot but those that only tell which files it took away; none without a snapshot."""
    manifests = snapshot.manifests(io) if snapshot is not None else []
    return [manifest for manifest in manifests if manifest.has_added_files() or manifest.has_existing_files()]


class FilePlanner(ManifestGroupPlanner):
    """Plans files by a filter that its caller says again.

    What is left of the filter for each file is not worked out: that was most of the time of a plan in a profile of a
    hundred topics.
    """

    def _build_residual_evaluator(self, _: int) -> Callable[[DataFile], ResidualEvaluator]:
        whole = UnpartitionedResidualEvaluator(schema=self.table_metadata.schema(), expr=self.row_filter)
        return lambda _: whole
