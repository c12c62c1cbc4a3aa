"""An Iceberg REST catalog through pyiceberg, with timeouts, and with errors that say whether they pass."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitStateUnknownException,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
)
from pyiceberg.table import CommitTableResponse
from requests.exceptions import RequestException

from lean_ops.lake.landed import has_snapshots
from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier
    from requests import Session

_SECONDS: Final = (3, 20)  # to connect, to be answered
_PASSING: Final = (CommitStateUnknownException, ServerError, ServiceUnavailableError, TooManyRequestsError)


class LakeRestCatalog(RestCatalog):
    """Every way to the tables leads through these few calls, so their errors are translated here and nowhere else."""

    def __init__(self, name: str, **properties: str) -> None:
        with _told(properties["uri"]):
            super().__init__(name, **properties)

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.request = functools.partial(session.request, timeout=_SECONDS)  # type: ignore[method-assign]
        return session

    def load_table(self, identifier: str | Identifier) -> Table:
        """The table."""
        with _told(self.uri):
            found: Table = super().load_table(identifier)
        return found

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Whether there is such a table."""
        with _told(self.uri):
            found: bool = super().table_exists(identifier)
        return found

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        """Whether there is such a database."""
        with _told(self.uri):
            found: bool = super().namespace_exists(namespace)
        return found

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """The tables of a database."""
        with _told(self.uri):
            found: list[Identifier] = super().list_tables(namespace)
        return found

    def create_table(self, identifier: str | Identifier, *shape: Any, **more: Any) -> Table:
        """A new table."""
        with _told(self.uri):
            found: Table = super().create_table(identifier, *shape, **more)
        return found

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """A change of a table: all of it, or none. After a TransientError nobody knows which."""
        try:
            with _told(self.uri):
                found: CommitTableResponse = super().commit_table(table, requirements, updates)
        except TransientError:
            now = self.load_table(table.name())
            if not has_snapshots(now.metadata, updates):
                raise
            values = {"metadata": now.metadata, "metadata-location": now.metadata_location}
            return CommitTableResponse.model_validate(values)
        return found


@contextmanager
def _told(uri: str) -> Iterator[None]:
    """What the catalog's own errors mean; that somebody else was faster is none of them."""
    try:
        yield
    except (RESTError, RequestException) as error:
        raise _meaning(uri, error) from error


def _meaning(uri: str, error: Exception) -> LeanOpsError:
    found = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    if isinstance(error, (RequestException, *_PASSING)):
        remedy = "Do the same again; if it stays, look after the catalog."
        return TransientError("the catalog did not answer as it should", where=uri, found=found, remedy=remedy)
    remedy = "Check the catalog's address, its credentials and what they are allowed to do."
    return TerminalError("the catalog refused", where=uri, found=found, remedy=remedy)
