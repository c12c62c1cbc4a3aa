"""The way of a batch of queue messages: into the stream, to the dead letters, or back to its queue.

Every message has exactly one of these fates, and a failed one is known by its own id. What becomes of a body is
decided in `body`; here it is only sent where that says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from lean_ops.aws.letters import Letter
from lean_ops.ingest.body import decide
from lean_ops.ingest.firehose_record import MAX_RECORD_BYTES, to_record
from lean_ops.model.envelope import DeadLetter, RawRow, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from lean_ops.aws.sending import Patience
    from lean_ops.state.port import Deliveries

# Dead letters go first: they are few and their fate is settled. Their queue's outage leaves this much to the others.
_LETTERS_SHARE: Final = 1 / 3


class Source(NamedTuple):
    """What a queue stands for: its topic, or a name that can't be one and the reason."""

    topic_name: str
    refusal: str | None = None


class Message(NamedTuple):
    """A message as its queue delivered it."""

    sqs_message_id: str
    source: Source
    body: str
    receive_count: int


class Stream(Protocol):
    """Where records land."""

    def put(self, records: Sequence[bytes], patience: Patience) -> Mapping[int, str]:
        """Bring records in; the positions of those that did not get there, with the reason."""


class Letters(Protocol):
    """Where dead letters go."""

    def send(self, letters: Sequence[Letter], patience: Patience) -> Mapping[int, str]:
        """Send letters; the positions of those that did not get there, with the reason."""


@dataclass(slots=True)
class Tally:
    """What became of a topic's messages in one call."""

    received: int = 0
    repeats: int = 0
    landed: int = 0
    failures: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)

    def counts(self) -> dict[str, int]:
        """All but the dead letters, which have their kinds."""
        return {
            "received": self.received,
            "repeats": self.repeats,
            "landed": self.landed,
            "failures": self.failures,
        }


@dataclass(frozen=True, slots=True)
class Delivery:
    """The ways that a message can go, and the memory of those that went."""

    stream: Stream
    letters: Letters
    deliveries: Deliveries
    clock: Callable[[], datetime]

    def begin(self, ids: Collection[str], patience: Patience) -> Batch:
        """A batch of messages with these ids; those whose fate is known already will be passed over."""
        now = self.clock()
        batch = Batch(self, patience, int(now.timestamp()))
        # All at once: powertools' own idempotency makes two calls for each message, which 10,000 a second can't pay.
        try:
            batch.known = self.deliveries.seen(ids, now)
        except Exception as error:  # whatever the store's fault is: RAW's copies are harmless, a stop is an outage
            batch.memory_works = False
            batch.store_faults.append(f"what was delivered before is not known: {error!r}")
        return batch


@dataclass(slots=True)
class Batch:
    """The messages of one call. Take each, then deliver them together."""

    delivery: Delivery
    patience: Patience
    arrived: int
    known: Collection[str] = ()
    memory_works: bool = True
    tallies: defaultdict[Source, Tally] = field(default_factory=lambda: defaultdict(Tally))
    letters: list[Letter] = field(default_factory=list)
    store_faults: list[str] = field(default_factory=list)
    _refused: list[Message] = field(default_factory=list)
    _records: list[bytes] = field(default_factory=list)
    _recorded: list[Message] = field(default_factory=list)

    def take(self, message: Message) -> None:
        """Decide what becomes of a message."""
        tally = self.tallies[message.source]
        tally.received += 1
        if message.sqs_message_id in self.known:
            tally.repeats += 1
            return
        outcome = judge(message, self.arrived)
        if isinstance(outcome, bytes):
            self._records.append(outcome)
            self._recorded.append(message)
        else:
            self.letters.append(_letter(message, outcome))
            self._refused.append(message)

    def deliver(self) -> dict[str, str]:
        """Bring every message where it belongs; the ids of those that must come again, with the reason."""
        refused = self.delivery.letters.send(self.letters, self.patience.part(_LETTERS_SHARE))
        failed = {self._refused[position].sqs_message_id: reason for position, reason in refused.items()}
        refused = self.delivery.stream.put(self._records, self.patience)
        failed.update((self._recorded[position].sqs_message_id, reason) for position, reason in refused.items())
        self._count(failed)
        taken = (message.sqs_message_id for message in (*self._refused, *self._recorded))
        self._remember([sqs_message_id for sqs_message_id in taken if sqs_message_id not in failed])
        return failed

    def _count(self, failed: Collection[str]) -> None:
        """Count what arrived; a failure is counted by who answers for all of them."""
        for message, letter in zip(self._refused, self.letters, strict=True):
            if message.sqs_message_id not in failed:
                self.tallies[message.source].dead_letters[str(letter.reason.error_type)] += 1
        for message in self._recorded:
            if message.sqs_message_id not in failed:
                self.tallies[message.source].landed += 1

    def _remember(self, ids: list[str]) -> None:
        """Note what has its fate. What can't be noted has it all the same, so this fails no message."""
        if not ids or not self.memory_works:
            return
        if not self.patience.has_time():
            self.store_faults.append(f"no time left to remember {len(ids)} messages")
            return
        try:
            self.delivery.deliveries.remember(ids, self.delivery.clock())
        except Exception as error:  # as above
            self.store_faults.append(f"{len(ids)} messages are not remembered: {error!r}")


def _letter(message: Message, reason: DeadLetter) -> Letter:
    return Letter(message.sqs_message_id, message.source.topic_name, reason, message.body, message.receive_count)


def judge(message: Message, arrived: int) -> bytes | DeadLetter:
    """The record that a message becomes, or why it becomes none."""
    body = message.body.encode("utf-8", "surrogatepass")
    outcome = decide(body, message.source.topic_name, arrived, MAX_RECORD_BYTES)
    if message.source.refusal is not None:
        return DeadLetter(Refusal.INVALID_CONTRACT, message.source.refusal, outcome.message_id)
    return _fitting(outcome) if isinstance(outcome, RawRow) else outcome


def _fitting(row: RawRow) -> bytes | DeadLetter:
    """The row's record; quotes are escaped in it, so that it may be larger than the body was."""
    record = to_record(row)
    if len(record) <= MAX_RECORD_BYTES:
        return record
    reason = f"the Firehose record has {len(record)} bytes, at most {MAX_RECORD_BYTES} are taken"
    return DeadLetter(Refusal.OVERSIZED, reason, row.message_id)
