"""A Glue catalog that keeps its word: an update of another version than the newest is refused, as AWS does it.

moto itself takes every update, so that a lost race would go unnoticed.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse

_ONE_AT_A_TIME: Final = threading.Lock()
_update_table: Final = GlueResponse.update_table


def make_strict() -> None:
    """From now on, in this process."""
    GlueResponse.update_table = _strict_update_table


def _strict_update_table(self: GlueResponse) -> Any:
    """Update a table if it still is of the version that the caller has read."""
    with _ONE_AT_A_TIME:
        table = self.glue_backend.get_table(self.parameters["DatabaseName"], self.parameters["TableInput"]["Name"])
        wanted, newest = self.parameters.get("VersionId"), table.as_dict()["VersionId"]
        if wanted is not None and wanted != newest:
            raise GlueClientError("ConcurrentModificationException", f"version {wanted} is not {newest}")
        return _update_table(self)
