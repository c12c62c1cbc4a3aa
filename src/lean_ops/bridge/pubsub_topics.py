"""The topics of a Google Cloud project, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.api_core.retry import Retry, if_exception_type
from google.pubsub_v1.services.publisher import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

from lean_ops.bridge.discovery import FoundTopic
from lean_ops.bridge.pubsub_faults import FAULTS, WORTH_ANOTHER_CALL, error_of
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAGE: Final = 1000
_MOST_TOPICS: Final = 10_000
_CALL_SECONDS: Final = 20.0
_RETRY: Final = Retry(
    predicate=if_exception_type(*WORTH_ANOTHER_CALL),
    timeout=60.0,
)


@dataclass(frozen=True, slots=True)
class PubSubTopics:
    """Pub/Sub's topics; `emulator` is the address of a server that asks for no credentials."""

    emulator: str | None = None

    def list(self, gcp_project: str) -> list[FoundTopic]:
        """All topics of a project; TerminalError if there are more than anybody has."""
        project = f"projects/{gcp_project}"
        try:
            found = list(self._found(project))
        except FAULTS as error:
            raise error_of(project, error) from error
        if len(found) > _MOST_TOPICS:
            raise TerminalError("more topics than discovery takes", where=project, expected=f"at most {_MOST_TOPICS}")
        return found

    def _found(self, project: str) -> Iterator[FoundTopic]:
        request = {"project": project, "page_size": _PAGE}
        with self._client() as client:
            for count, topic in enumerate(client.list_topics(request, retry=_RETRY, timeout=_CALL_SECONDS)):
                yield FoundTopic(topic.name, dict(topic.labels))
                if count == _MOST_TOPICS:
                    return

    def _client(self) -> PublisherClient:
        if self.emulator is None:
            return PublisherClient()
        channel = grpc.insecure_channel(self.emulator)
        return PublisherClient(transport=PublisherGrpcTransport(channel=channel))
