"""Event source mappings of queues: what moto only writes down is done by pollers, with partial failures.

A mapping that is turned off or deleted is polled no more. What differs: one poll at a time for each mapping, whatever
its concurrency is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.aws_local.cloud_place import Place
from tests.aws_local.faults import Faults
from tests.aws_local.function import FunctionError
from tests.aws_local.poller import Poller, SeenMessages

_LOOK_AGAIN_SECONDS: Final = 0.5
_USUAL_BATCH: Final = 10


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """A function as a poller calls it, by the cloud's own Lambda."""

    functions: Any
    arn: str

    @property
    def name(self) -> str:
        return self.arn.rpartition(":")[2]

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Lambda has its own."""
        yield None

    def invoke(self, _: object, event: Any, fault: str | None = None) -> Any:
        """What the function answers, or FunctionError."""
        assert fault is None
        answer = self.functions.invoke(FunctionName=self.arn, Payload=json.dumps(event).encode())
        told = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise FunctionError(f"{self.name}: {told}")
        return told


@dataclass
class Mappings:
    """A poller for each mapping that is on; none of them waits longer than `longest_wait` to fill a batch."""

    place: Place
    longest_wait: float
    _pollers: dict[str, Poller] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        """Look for mappings from now on."""
        self._functions, self._sqs = self.place.client("lambda"), self.place.client("sqs")
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nothing is polled any more when this returns."""
        self._over.set()
        self._thread.join(30)
        for poller in self._pollers.values():
            poller.stop()
        for poller in self._pollers.values():
            poller.join()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_AGAIN_SECONDS):
            try:
                self._follow(self._functions.list_event_source_mappings()["EventSourceMappings"])
            except Exception as error:  # the next look may be luckier, and the log has it
                self.place.say(f"mappings: {type(error).__name__}: {error}")

    def _follow(self, mappings: list[dict[str, Any]]) -> None:
        on = {one["UUID"]: one for one in mappings if one["State"] == "Enabled" and ":sqs:" in one["EventSourceArn"]}
        for gone in self._pollers.keys() - on.keys():
            self._pollers.pop(gone).stop()
        for uuid, mapping in on.items():
            poller = self._pollers.get(uuid)
            if poller is not None and poller.broken:
                self.place.say(f"mappings: polling {poller.url} begins again after {poller.broken[0]!r}")
                poller = None
            if poller is None:
                self._pollers[uuid] = self._polling(mapping)

    def _polling(self, mapping: dict[str, Any]) -> Poller:
        arn = mapping["EventSourceArn"]
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"], f"{arn}: partial failures are off"
        url = self._sqs.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]
        attributes = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
        poller = Poller(
            self._sqs,
            url,
            arn,
            CalledFunction(self._functions, mapping["FunctionArn"]),
            Faults(0),
            SeenMessages(),
            visibility_seconds=float(attributes["VisibilityTimeout"]),
            batch_size=int(mapping.get("BatchSize") or _USUAL_BATCH),
            window_seconds=min(float(mapping.get("MaximumBatchingWindowInSeconds") or 0), self.longest_wait),
            fault_share=0.0,
            pause_seconds=_LOOK_AGAIN_SECONDS,
        )
        poller.start()
        return poller
