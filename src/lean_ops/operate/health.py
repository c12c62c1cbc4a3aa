"""How the parts of an environment in the cloud are, and whether its books balance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.errors import LeanOpsError
from lean_ops.operate.doctor import Check
from lean_ops.operate.group import SomeTables, tables_of_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lean_ops.govern.store import SchemaStore
    from lean_ops.lake.reader import CatalogReader
    from lean_ops.ledger.account import TopicAccount, ZoneAccount
    from lean_ops.ledger.reconcile import Reconciler
    from lean_ops.model.tables import Names
    from lean_ops.state.port import Registry

_AT_A_TIME: Final = 25
_SHOWN_FINDINGS: Final = 5
_SHOWN_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class CloudParts:
    """What an environment in the cloud consists of, as far as it can be looked at from a function."""

    registry: Registry
    catalog: CatalogReader
    names: Names
    schemas: SchemaStore

    def examine(self) -> tuple[Check, ...]:
        """Every part; one that does not answer does not hide the others."""
        looks = {"state": self._state, "catalog": self._catalog, "schemas": self._schemas}
        return tuple(_looked_at(name, look) for name, look in looks.items())

    def _state(self) -> Check:
        items = self.registry.items()
        enabled = sum(item.processing_enabled for item in items.values())
        return Check("state", True, f"{len(items)} topics, {enabled} with an open gate")

    def _catalog(self) -> Check:
        missing = [str(name) for name in self.names.shared if self.catalog.location(name) is None]
        if missing:
            remedy = "Terraform makes the databases; the function ensure_table (or `lean-ops init`) makes the tables."
            return Check("catalog", False, f"without {_some(missing)}", remedy)
        return Check("catalog", True, f"all {len(self.names.shared)} shared tables are there")

    def _schemas(self) -> Check:
        waiting, begun = self.schemas.pending_topics(), self.schemas.open_activations()
        if waiting or begun:
            remedy = "If it stays, look at the log of the function schema_validator."
            detail = f"not judged yet: {_some(waiting) or 'none'}; begun and not finished: {_some(begun) or 'none'}"
            return Check("schemas", False, detail, remedy)
        return Check("schemas", True, "nothing waits")


def _looked_at(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except LeanOpsError as error:
        return Check(name, False, str(error), error.remedy or "")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    return ", ".join(names[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


# the books


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The accounts of the topics that there was time for, and the topics that there was none for."""

    accounts: tuple[TopicAccount, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def variances(self) -> list[ZoneAccount]:
        """The zones whose books don't balance."""
        return [zone for account in self.accounts for zone in account.zones if not zone.balanced]


def reconcile_in_time(reconciler: Reconciler, topics: Sequence[str], has_time: Callable[[], bool]) -> Reconciled:
    """Reconcile some topics at a time while there is time; only their own tables are looked up."""
    accounts: list[TopicAccount] = []
    for start in range(0, len(topics), _AT_A_TIME):
        if not has_time():
            return Reconciled(tuple(accounts), tuple(topics[start:]))
        some = topics[start : start + _AT_A_TIME]
        tables = tables_of_topics(reconciler.names, some) | frozenset(reconciler.names.shared)
        accounts += replace(reconciler, catalog=SomeTables(reconciler.catalog, tables)).reconcile(some)
    return Reconciled(tuple(accounts))


def variance_document(zone: ZoneAccount) -> dict[str, Any]:
    """A zone that does not balance, for a machine."""
    return {
        "topic": zone.topic,
        "zone": str(zone.zone),
        "difference": zone.difference,
        "variance": zone.variance,
        "accountability": zone.accountability,
        "findings": [f"{finding.kind}: {finding.message}"[:500] for finding in zone.faults[:_SHOWN_FINDINGS]],
    }
