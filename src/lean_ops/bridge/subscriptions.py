"""Which subscription fills which topic's queue; what can't be brought to one is refused with its reason."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lean_ops.bridge.ports import FoundSubscription


@dataclass(frozen=True, slots=True)
class Route:
    """A topic and the subscription, by its full path, that its messages come from."""

    topic: str
    subscription: str


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes by topic, and the subscriptions that have none, with the reason."""

    routes: Mapping[str, Route]
    refused: Mapping[str, str]


def routes_of(found: Sequence[FoundSubscription], running: Mapping[str, Route]) -> Routes:
    """The routes of all subscriptions found. Of several for one topic only the one that runs already goes on."""
    refused: dict[str, str] = {}
    by_topic: defaultdict[str, list[str]] = defaultdict(list)
    for subscription in found:
        try:
            by_topic[_topic_of(subscription)].append(subscription.path)
        except WrongUseError as error:
            refused[subscription.path] = str(error)
    routes: dict[str, Route] = {}
    for topic, paths in by_topic.items():
        chosen = _chosen(paths, running.get(topic))
        if chosen is not None:
            routes[topic] = Route(topic, chosen)
        others = ", ".join(sorted(paths))
        reason = f"several subscriptions stand for the topic {topic}: {others}"
        refused.update((path, reason) for path in paths if path != chosen)
    return Routes(routes, refused)


def _chosen(paths: Sequence[str], running: Route | None) -> str | None:
    if len(paths) == 1:
        return paths[0]
    return running.subscription if running is not None and running.subscription in paths else None


def _topic_of(found: FoundSubscription) -> str:
    if found.pushes:
        raise WrongUseError(
            "it pushes its messages elsewhere", where=found.path, expected="a subscription to pull from"
        )
    return parse_topic(found.topic_path.rpartition("/")[2])
