"""What an event source mapping of Lambda does: a queue's messages to a function, in batches.

What the function succeeded with is deleted. What it returned, or all of a call that failed, becomes visible again when
its time is over, as with Lambda.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.aws_local.faults import Faults
from tests.aws_local.function import DIES_AFTER, DIES_BEFORE, KILLED, RAISES, Function, FunctionError

Message = dict[str, Any]

MOST_BYTES: Final = 4 * 1024 * 1024  # of an event; Lambda takes 6 MB, escaping included
# A message that failed so often is left alone: its queue gives up on it after five times, whoever is to blame.
_SPARED_AFTER: Final = 1
LATE: Final = "deletes too late"
POISONED: Final = "is poisoned"
KINDS: Final = (KILLED, DIES_AFTER, RAISES, LATE, DIES_BEFORE)
_find_id: Final = re.compile(r'\{"message_id":"([^"]+)"').match


@dataclass
class SeenMessages:
    """What pollers of a function's queues were given, by SQS message id: how often, and which message it is."""

    receives: Counter[str] = field(default_factory=Counter)
    message_ids: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, message: Message) -> None:
        with self._lock:
            self.receives[message["MessageId"]] += 1
            found = _find_id(message["Body"])
            self.message_ids[message["MessageId"]] = found[1] if found else ""

    def copies(self) -> Counter[str]:
        """How many queue messages there were of each message."""
        with self._lock:
            return Counter(self.message_ids.values())


@dataclass
class Poller:
    """One queue's way to a function. `is_poison` says of a body that no process survives it."""

    sqs: Any
    url: str
    arn: str
    function: Function
    faults: Faults
    seen: SeenMessages
    visibility_seconds: float
    batch_size: int = 200
    window_seconds: float = 0.5
    fault_share: float = 0.2
    is_poison: Callable[[str], bool] = lambda _: False
    pause_seconds: float = 0.2
    broken: list[BaseException] = field(default_factory=list, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more."""
        self._stop.set()

    def join(self) -> None:
        self._thread.join(60)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if not self._poll():
                    self._stop.wait(self.pause_seconds)
        except BaseException as error:  # the test looks at it
            if not self._stop.is_set():
                self.broken.append(error)

    def _poll(self) -> bool:
        """Bring what is there to the function; False if there was nothing.

        Lambda takes messages first and waits for an environment then. Where processes of two cores start slowly, that
        wait would make messages visible again before anybody has looked at them, and five times is the end of them.
        """
        with self.function.environment() as environment:
            messages = self._gathered()
            if not messages:
                return False
            fault = self._fault(messages)
            event = {"Records": [self._record(message) for message in messages]}
            in_call = DIES_BEFORE if fault == POISONED else None if fault == LATE else fault
            try:
                answer = self.function.invoke(environment, event, in_call)
            except FunctionError:
                return True
        if fault == LATE:
            self._stop.wait(self.visibility_seconds + 1)
        self._delete(messages, {failure["itemIdentifier"] for failure in answer["batchItemFailures"]})
        return True

    def _gathered(self) -> list[Message]:
        """What is there and, if that is something, what comes until the window closes, up to a batch."""
        deadline = time.monotonic() + self.window_seconds
        gathered: dict[str, Message] = {}
        while len(gathered) < self.batch_size and _bytes(gathered) < MOST_BYTES / 2:
            more = self._receive(min(10, self.batch_size - len(gathered)))
            gathered.update((message["MessageId"], message) for message in more)
            if not gathered or time.monotonic() > deadline:
                break
            if not more:
                self._stop.wait(self.pause_seconds)
        return list(gathered.values())

    def _receive(self, most: int) -> list[Message]:
        answer = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=most,
            WaitTimeSeconds=0,
            MessageAttributeNames=["All"],
            AttributeNames=["All"],
        )
        messages: list[Message] = answer.get("Messages", [])
        for message in messages:
            self.seen.note(message)
        return messages

    def _fault(self, messages: list[Message]) -> str | None:
        if any(self.is_poison(message["Body"]) for message in messages):
            self.faults.count(f"{self.function.name} {POISONED}")
            return POISONED
        if any(int(message["Attributes"]["ApproximateReceiveCount"]) > _SPARED_AFTER for message in messages):
            return None
        name = self.function.name
        kind = self.faults.one_of([f"{name} {kind}" for kind in KINDS], self.fault_share)
        return kind.removeprefix(f"{name} ") if kind else None

    def _record(self, message: Message) -> dict[str, Any]:
        """A message as Lambda spells it."""
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "messageAttributes": {
                name: {
                    "stringValue": value["StringValue"],
                    "stringListValues": [],
                    "binaryListValues": [],
                    "dataType": value["DataType"],
                }
                for name, value in message.get("MessageAttributes", {}).items()
            },
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": self.arn,
            "awsRegion": self.arn.split(":")[3],
        }

    def _delete(self, messages: list[Message], failed: set[str]) -> None:
        """Delete what succeeded; an id that nobody knows fails all of it, as Lambda does."""
        unknown = failed - {message["MessageId"] for message in messages}
        assert not unknown, f"the function returned ids that it was not given: {unknown}"
        self.faults.count(f"{self.function.name}: messages returned", len(failed))
        done = [message["ReceiptHandle"] for message in messages if message["MessageId"] not in failed]
        for start in range(0, len(done), 10):
            entries = [{"Id": str(at), "ReceiptHandle": one} for at, one in enumerate(done[start : start + 10])]
            self.sqs.delete_message_batch(QueueUrl=self.url, Entries=entries)


def _bytes(messages: dict[str, Message]) -> int:
    return sum(len(message["Body"]) for message in messages.values())
