"""moto with a Glue that keeps its word: an update of another version than the newest is refused, as AWS does it.

`python strict_glue_main.py`; moto itself takes every update, so that a lost race would go unnoticed.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse
from moto.server import ThreadedMotoServer

_ONE_AT_A_TIME = threading.Lock()
_update_table = GlueResponse.update_table


def strict_update_table(self: GlueResponse) -> Any:
    """Update a table if it still is of the version that the caller has read."""
    with _ONE_AT_A_TIME:
        table = self.glue_backend.get_table(self.parameters["DatabaseName"], self.parameters["TableInput"]["Name"])
        wanted, newest = self.parameters.get("VersionId"), table.as_dict()["VersionId"]
        if wanted is not None and wanted != newest:
            raise GlueClientError("ConcurrentModificationException", f"version {wanted} is not {newest}")
        return _update_table(self)


if __name__ == "__main__":
    GlueResponse.update_table = strict_update_table
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    print("listening on {}:{}".format(*server.get_host_and_port()), flush=True)
    threading.Event().wait()
