"""Which Pub/Sub topics there are, and what that changes in the registry of topics and in Terraform's variables.

The registry keeps history: a topic has a row when it is first seen, when it is gone, when it is back, and when another
Pub/Sub topic takes its place; the row with the latest `last_seen_at` is how it is now.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from lean_ops.aws.environment import Deployment
    from lean_ops.bridge.variables import Variables
    from lean_ops.lake.catalog import Lake
    from lean_ops.lake.shared import SharedTables
    from lean_ops.model.tables import TableName

SOURCE: Final = "pubsub"


class Status(StrEnum):
    """Whether Pub/Sub has a topic."""

    ACTIVE = "ACTIVE"
    GONE = "GONE"


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic as Pub/Sub lists it, by its full path."""

    path: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which topics of a Google Cloud project are for the lake: all whose names begin so and that bear the label."""

    gcp_project: str
    prefix: str = ""
    label: tuple[str, str] | None = None

    @classmethod
    def of(cls, gcp_project: str, prefix: str, label: str) -> Choice:
        """A choice in a person's words; the label is KEY=VALUE or nothing."""
        if not label:
            return cls(gcp_project, prefix)
        key, separator, value = label.partition("=")
        if not (key and separator):
            raise WrongUseError("not a label", where="label", found=repr(label), expected="KEY=VALUE")
        return cls(gcp_project, prefix, (key, value))

    @property
    def begins(self) -> str:
        """How the full paths of chosen topics begin."""
        return f"projects/{self.gcp_project}/topics/{self.prefix}"

    def takes(self, topic: FoundTopic) -> bool:
        """Whether a topic is chosen."""
        labelled = self.label is None or topic.labels.get(self.label[0]) == self.label[1]
        return labelled and topic.path.startswith(self.begins)


@dataclass(frozen=True, slots=True)
class Registered:
    """How the registry knows a topic."""

    pubsub_topic: str
    first_seen_at: datetime
    last_seen_at: datetime
    status: Status


@dataclass(frozen=True, slots=True)
class Findings:
    """What a look at Pub/Sub brought: all topics there are, what changed, and which names were refused for what reason.

    `added` are the topics that Terraform's variables did not have.
    """

    active: tuple[str, ...]
    new: tuple[str, ...]
    back: tuple[str, ...]
    replaced: tuple[str, ...]
    gone: tuple[str, ...]
    refused: Mapping[str, str]
    added: tuple[str, ...]


class Topics(Protocol):
    """Pub/Sub, as far as discovery asks it."""

    def list(self, gcp_project: str) -> Iterable[FoundTopic]:
        """All topics of a project."""


class Discovery:
    """Looks at Pub/Sub and keeps the registry and the variables in step with it."""

    def __init__(
        self, topics: Topics, lake: Lake, shared: SharedTables, deployment: Deployment, clock: Callable[[], datetime]
    ) -> None:
        self._topics = topics
        self._lake = lake
        self._shared = shared
        self._deployment = deployment
        self._clock = clock

    def look(self, choice: Choice, variables: Variables, announce: Callable[[Findings], None]) -> Findings:
        """Look once; looking again changes nothing.

        Rows are written first and the variables last, and these only if they change. In between `announce` is called
        if topics are added, so that whatever goes wrong it is called again by the next look.
        """
        found = [topic.path for topic in self._topics.list(choice.gcp_project) if choice.takes(topic)]
        table = self._table()
        known = newest(self._lake.load(table).scan(selected_fields=_READ).to_arrow().to_pylist())
        now = self._clock()
        routes, refused = sorted_out(found, known)
        rows = changes(routes, known, choice.begins, now)
        self._shared.append_rows(table, [_row(topic, row, self._deployment) for topic, row in rows.items()])
        change = variables.change(routes, {*known, *routes})
        findings = _findings(routes, refused, rows, known, change.added if change else ())
        if findings.added:
            announce(findings)
        if change:
            variables.place.write(change.content)
        return findings

    def _table(self) -> TableName:
        table = self._lake.names.ops("topic_registry")
        if not self._lake.exists(table):
            self._lake.ensure_shared()
        return table


_READ: Final = ("topic_name", "pubsub_topic", "first_seen_at", "last_seen_at", "status")


def newest(rows: Iterable[Mapping[str, Any]]) -> dict[str, Registered]:
    """How each topic is, by its history."""
    found: dict[str, Registered] = {}
    for row in rows:
        times = (row["first_seen_at"], row["last_seen_at"])
        registered = Registered(row["pubsub_topic"], *times, Status(row["status"]))
        topic = row["topic_name"]
        if topic not in found or found[topic].last_seen_at < registered.last_seen_at:
            found[topic] = registered
    return found


def sorted_out(paths: Iterable[str], known: Mapping[str, Registered]) -> tuple[dict[str, str], dict[str, str]]:
    """The Pub/Sub topic of each topic, and those that can't be one, with the reason.

    Of several that would be one topic, the one that the registry knows stays it; without one all are refused.
    """
    refused: dict[str, str] = {}
    by_topic: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        try:
            by_topic[parse_topic(path.rpartition("/")[2])].append(path)
        except WrongUseError as error:
            refused[path] = str(error)
    routes: dict[str, str] = {}
    for topic, several in by_topic.items():
        chosen = several[0] if len(several) == 1 else _known_one(several, known.get(topic))
        if chosen is not None:
            routes[topic] = chosen
        others = ", ".join(sorted(several))
        refused.update(
            (path, f"several names become the topic {topic}: {others}") for path in several if path != chosen
        )
    return dict(sorted(routes.items())), dict(sorted(refused.items()))


def _known_one(several: Sequence[str], known: Registered | None) -> str | None:
    return known.pubsub_topic if known is not None and known.pubsub_topic in several else None


def changes(
    routes: Mapping[str, str], known: Mapping[str, Registered], begins: str, now: datetime
) -> dict[str, Registered]:
    """The new rows by topic; what is known of other projects, or was not chosen this time, is not looked for."""
    rows: dict[str, Registered] = {}
    for topic, path in routes.items():
        before = known.get(topic)
        if before is None or (before.pubsub_topic, before.status) != (path, Status.ACTIVE):
            rows[topic] = Registered(path, before.first_seen_at if before else now, now, Status.ACTIVE)
    for topic, before in known.items():
        if topic not in routes and before.status is Status.ACTIVE and before.pubsub_topic.startswith(begins):
            rows[topic] = Registered(before.pubsub_topic, before.first_seen_at, now, Status.GONE)
    return rows


def _row(topic: str, registered: Registered, deployment: Deployment) -> dict[str, Any]:
    return {
        "topic_name": topic,
        "source": SOURCE,
        "pubsub_topic": registered.pubsub_topic,
        "queue": deployment.queue(topic),
        "first_seen_at": registered.first_seen_at,
        "last_seen_at": registered.last_seen_at,
        "status": str(registered.status),
    }


def _findings(
    routes: Mapping[str, str],
    refused: Mapping[str, str],
    rows: Mapping[str, Registered],
    known: Mapping[str, Registered],
    added: tuple[str, ...],
) -> Findings:
    came = [topic for topic, row in rows.items() if row.status is Status.ACTIVE and topic in known]
    return Findings(
        active=tuple(routes),
        new=tuple(topic for topic in rows if topic not in known),
        back=tuple(topic for topic in came if known[topic].status is Status.GONE),
        replaced=tuple(topic for topic in came if known[topic].status is Status.ACTIVE),
        gone=tuple(sorted(topic for topic, row in rows.items() if row.status is Status.GONE)),
        refused=refused,
        added=added,
    )
