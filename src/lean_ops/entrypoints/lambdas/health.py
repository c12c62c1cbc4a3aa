"""How the environment is: its parts, schemas that were left half done, and whether the books balance.

`{"topics": [...]}` limits the books to these topics; without it they are those of all topics, as far as the
function's time allows. What an interrupted function left of a schema is finished first. `{"books": false}` leaves the
books alone and is quick. What a person should know is alerted once: data that wait behind an open gate, books that
don't balance, new drift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, Final, Protocol

from lean_ops.entrypoints.lambdas.asked import answered, flag_asked, topics_or_all
from lean_ops.govern.uploads import judge
from lean_ops.ledger.status import topics_of
from lean_ops.model.errors import LeanOpsError
from lean_ops.operate.health import Reconciled, reconcile_in_time, variance_document
from lean_ops.settings import load_settings
from lean_ops.wiring import Services

SERVICE: Final = "health"
_MOST_TOPICS: Final = 10_000
_SHOWN: Final = 100
_REPAIRED_AT_ONCE: Final = 20
_KEPT_FOR_THE_ANSWER_MS: Final = 60_000


class Context(Protocol):
    """What Lambda tells of a call."""

    def get_remaining_time_in_millis(self) -> int:
        """Until the call is ended, whatever it does."""


def handler(event: Any, context: Context) -> dict[str, Any]:
    """The function's entry."""

    def has_time() -> bool:
        return context.get_remaining_time_in_millis() > _KEPT_FOR_THE_ANSWER_MS

    def work() -> tuple[dict[str, Any], dict[str, Any]]:
        topics, services = topics_or_all(event, _MOST_TOPICS), _services()
        with_books = flag_asked(event, "books", default=True)
        repaired = _repaired(services, has_time)
        parts = services.cloud_parts().examine()
        alerts = _watched(services, topics, has_time)
        books, told = _books(services, topics, has_time) if with_books else (None, None)
        alerts |= {"books": told} if told else {}
        ok = (
            all(part.ok for part in parts)
            and _is_right(books)
            and not any("problem" in told for told in alerts.values())
        )
        answer = {"ok": ok, "parts": [asdict(part) for part in parts], "repaired": repaired, "alerts": alerts}
        answer |= {"books": books} if books else {}
        return answer, answer

    return answered(SERVICE, work)


@cache
def _services() -> Services:
    return Services(load_settings({"profile": "aws"}, aws_needs=("environment", "warehouse", "schema_bucket")))


def _repaired(services: Services, has_time: Callable[[], bool]) -> list[str]:
    """The topics whose half done schemas were finished; what can't be finished shows among the parts."""
    try:
        begun = {*services.schemas.open_activations(), *services.schemas.pending_topics()}
    except LeanOpsError:
        return []
    return [topic for topic in sorted(begun)[:_REPAIRED_AT_ONCE] if has_time() and _finished(services, topic)]


def _finished(services: Services, topic: str) -> bool:
    try:
        judge(services.submissions, topic, submitted_by=SERVICE, now=services.clock())
    except LeanOpsError:
        return False
    return True


def _is_right(books: dict[str, Any] | None) -> bool:
    return books is None or (books["balanced"] and not books["unchecked"])


def _watched(services: Services, topics: Sequence[str], has_time: Callable[[], bool]) -> dict[str, Any]:
    """What waits and what drifts: alerts that were opened and closed, or why nobody could look."""
    watch = services.watch()

    def waiting() -> dict[str, Any]:
        return asdict(watch.waiting(topics or sorted(services.state.items()), has_time))

    return {"waiting": _looked(waiting), "drift": _looked(lambda: {"opened": watch.tell_drift()})}


def _looked(look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return look()
    except LeanOpsError as error:
        return {"problem": str(error)[:1000]}


def _books(
    services: Services, topics: Sequence[str], has_time: Callable[[], bool]
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The books, and what was alerted of them."""
    try:
        state, catalog = services.state, services.lake.file
        wanted = topics or topics_of(catalog, services.settings.names, state)
        done = reconcile_in_time(services.reconciler(state), wanted, has_time)
    except LeanOpsError as error:
        return {"balanced": False, "unchecked": len(topics), "problem": str(error)[:1000]}, None
    return _document(done), _looked(lambda: asdict(services.watch().unbalanced(done)))


def _document(done: Reconciled) -> dict[str, Any]:
    variances = done.variances
    return {
        "balanced": not variances,
        "topics": len(done.accounts),
        "unchecked": len(done.unchecked),
        "variances": [variance_document(zone) for zone in variances[:_SHOWN]],
        "more_variances": max(0, len(variances) - _SHOWN),
    }
