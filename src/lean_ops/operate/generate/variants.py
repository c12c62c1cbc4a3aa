"""How a body differs from a right one, and what must become of it because of that."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from lean_ops.ledger.oracle import ExpectedFate
from lean_ops.operate.generate.changes import with_values, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode  # so that 19.90 stays 19.90


class Parts(NamedTuple):
    """A right body in parts: `envelope` is the text of further members, each with its comma behind it."""

    message_id: str
    publish_time: str
    envelope: str
    payload: str

    @property
    def body(self) -> str:
        """The body's text."""
        return body_text(self.message_id, self.publish_time, self.envelope, self.payload)


def body_text(message_id: str, publish_time: str, envelope: str, payload: str) -> str:
    """A queue body."""
    return f'{{"message_id":"{message_id}","publish_time":"{publish_time}",{envelope}"payload":{payload}}}'


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a body's way ends before Curated, with the type of error and the columns at fault."""

    fate: ExpectedFate
    reason: str
    fields: tuple[str, ...] = ()


Make: TypeAlias = "Callable[[Parts], str | bytes]"


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to change a right body; without an `ending` it is as good as before, but for some values in Curated.

    `has_id` says whether the message's id can still be read; only a dead letter may be without.
    """

    make: Make
    ending: Ending | None = None
    curated: Mapping[str, Any] = field(default_factory=dict)
    has_id: bool = True


# endings


def dead(reason: str) -> Ending:
    """Refused by ingestion."""
    return Ending(ExpectedFate.DEAD_LETTER, reason)


def unreadable(reason: str) -> Ending:
    """In RAW, but no row can be made of it."""
    return Ending(ExpectedFate.PARSE_ERROR, reason)


def wrong(reason: str, *fields: str) -> Ending:
    """In Standardized, but the schema refuses it."""
    return Ending(ExpectedFate.ERROR, reason, fields)


# ways to change


def text_of(value: Any) -> str:
    """A value as JSON, numbers with the text that they had."""
    return _encode(value).decode()


def read(payload: str) -> dict[str, Any]:
    """A payload's members, numbers with the text that they have."""
    found: dict[str, Any] = json.loads(payload, parse_float=Decimal)
    return found


def payload_as(change: Callable[[dict[str, Any]], Any]) -> Make:
    """The same body with a payload made of the right one's members."""
    return lambda parts: parts._replace(payload=text_of(change(read(parts.payload)))).body


def payload_text(change: Callable[[str], str]) -> Make:
    """The same body with another JSON text where the payload stands."""
    return lambda parts: parts._replace(payload=change(parts.payload)).body


def payload_string(change: Callable[[str], str]) -> Make:
    """The same body whose payload is a JSON string: its own text is what counts."""
    return payload_text(lambda payload: json.dumps(change(payload), ensure_ascii=False))


def body_as(change: Callable[[str], str | bytes]) -> Make:
    """Another text in the place of the body's."""
    return lambda parts: change(parts.body)


def setting(values: Mapping[str, Any]) -> Make:
    """Other values at some pointers of the payload."""
    return payload_as(lambda payload: with_values(payload, values))


def removing(*pointers: str) -> Make:
    """Nothing at some pointers of the payload."""
    return payload_as(lambda payload: without(payload, pointers))


# variants of one value


def critical(pointer: str, column: str) -> Iterable[Variant]:
    """A critical element that is null, gone, empty or blank."""
    ending = wrong("CDE_VIOLATION", column)
    yield Variant(setting({pointer: None}), ending)
    yield Variant(removing(pointer), ending)
    yield Variant(setting({pointer: ""}), ending)
    yield Variant(setting({pointer: " \t"}), ending)


def ill_typed(pointer: str, column: str, *values: Any) -> Iterable[Variant]:
    """Values that the column's type can't hold."""
    return (Variant(setting({pointer: value}), wrong("TYPE_CAST", column)) for value in values)


def forbidden(pointer: str, column: str, *values: Any) -> Iterable[Variant]:
    """Values that a rule of the column forbids."""
    return (Variant(setting({pointer: value}), wrong("RULE_VIOLATION", column)) for value in values)


def same_value(pointer: str, column: str, sent: Any, held: Any) -> Variant:
    """Another spelling of a value: what is sent, and what Curated holds because of it."""
    return Variant(setting({pointer: sent}), curated={column: held})
