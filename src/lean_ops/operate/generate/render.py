"""A plan's rows as queue bodies, and beside each the line that says what must become of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from lean_ops.ledger.oracle import ExpectedFate
from lean_ops.operate.generate.kinds import COPIES, PLAIN, Kind
from lean_ops.operate.generate.oracle import FATES
from lean_ops.operate.generate.variants import Parts, body_text, read, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from lean_ops.operate.generate.family import Family
    from lean_ops.operate.generate.oracle import Foretold
    from lean_ops.operate.generate.plan import Rows
    from lean_ops.operate.generate.variants import Variant

_KINDS: Final = tuple(Kind)
_CHUNK: Final = 5_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# A dead letter's row holds this much of its body.
_SHOWN_BYTES: Final = 64 * 1024


class Chunk(NamedTuple):
    """Bodies and their fates, both as lines of a file."""

    bodies: bytes
    fates: bytes


class _Message(NamedTuple):
    """A row as text: `curated` is what Curated must hold of it, a JSON object without its braces."""

    message_id: str
    published: str
    envelope: str
    payload: str
    key: str
    curated: str

    @property
    def body(self) -> str:
        """The queue body of a right message."""
        return body_text(self.message_id, self.published, self.envelope, self.payload)


@dataclass(frozen=True)
class Renderer:
    """Writes one topic's rows; `seed` keeps the ids and keys of two seeds apart.

    `enhanced_from` is the first row that is curated under a schema with the family's enhancement; whether rows before
    it get that column filled later is not foretold.
    """

    topic: str
    family: Family
    rows: Rows
    seed: int
    enhanced_from: int | None = None

    def chunks(self, first: int, last: int, foretold: Foretold, file: str) -> Iterator[Chunk]:
        """The rows from `first` to below `last`, piece by piece, as lines of a file of this name."""
        for start in range(first, last, _CHUNK):
            bodies, fates = self._lines(start, min(start + _CHUNK, last), foretold, f'"file":"{file}"', start - first)
            yield Chunk(b"\n".join(bodies) + b"\n", "".join(fates).encode())

    def message_id(self, row: int) -> str:
        """The id of a row's message; ids of later rows are greater as texts too, which decides between ties."""
        return f"{self.topic}-{self.seed}-{row:09d}"

    def key(self, row: int) -> str:
        """The key that a row brought."""
        return f"{self.family.prefix}-{self.seed}-{row:08d}"

    # one row after the other

    def _lines(
        self, start: int, stop: int, foretold: Foretold, file: str, before: int
    ) -> tuple[list[bytes], list[str]]:
        """Each row's body, and its line of the fates. Right messages are most of them: they take the shortest way."""
        bodies: list[bytes] = []
        fates: list[str] = []
        columns = zip(
            self.rows.kind[start:stop].tolist(),
            foretold.fate[start:stop].tolist(),
            foretold.winner[start:stop].tolist(),
            self._messages(start, stop),
            strict=True,
        )
        head = f'{{"topic":"{self.topic}",{file},"line":'
        for row, (code, fate, winner, message) in enumerate(columns, start=start):
            kind = _KINDS[code]
            if kind in PLAIN:
                body = message.body.encode()
                told = self._told(row, message, FATES[fate], winner, message.curated)
            else:
                body, told = self._unusual(row, kind, message, FATES[fate], winner)
            bodies.append(body)
            fates.append(f'{head}{row - start + before + 1},"kind":"{kind}",{told}')
        return bodies, fates

    def _messages(self, start: int, stop: int) -> Iterator[_Message]:
        rows, family, prefix, seed = self.rows, self.family, f"{self.topic}-{self.seed}-", self.seed
        at = rows.at[start:stop]
        columns = zip(
            rows.key[start:stop].tolist(),
            _texts(at),
            at.tolist(),
            _texts(rows.published[start:stop]),
            rows.draws[start:stop].tolist(),
            strict=True,
        )
        write, envelope, keys = family.write, family.envelope, f"{family.prefix}-{seed}-"
        for row, (number, at_text, milliseconds, published, draws) in enumerate(columns, start=start):
            key = f"{keys}{number:08d}"
            payload, curated = write(key, number, at_text, milliseconds, draws)
            yield _Message(f"{prefix}{row:09d}", published, envelope(key, at_text), payload, key, curated)

    def _unusual(self, row: int, kind: Kind, message: _Message, fate: ExpectedFate, winner: int) -> tuple[bytes, str]:
        if kind in COPIES:
            return self._copied(row, kind, fate)
        return self._changed(row, message, self._variant(kind, int(self.rows.variant[row])), fate, winner)

    def _one(self, row: int) -> _Message:
        return next(self._messages(row, row + 1))

    def _variant(self, kind: Kind, turn: int) -> Variant:
        variants = self.family.variants_of(kind)
        return variants[turn % len(variants)]

    # what is told of a row

    def _told(self, row: int, message: _Message, fate: ExpectedFate, winner: int, curated: str) -> str:
        """The end of a right message's line."""
        known = (
            f'"message_id":"{message.message_id}","publish_time":"{message.published}",'
            f'"idempotency_key":"{message.key}","fate":"{fate}"'
        )
        if fate is ExpectedFate.CURATED:
            values = curated if self.enhanced_from is None else self._with_enhancement(row, curated)
            return f'{known},"version":"{message.message_id}","curated":{{{values}}}}}\n'
        if fate is ExpectedFate.SUPERSEDED:
            return f'{known},"version":"{self.message_id(winner)}"}}\n'
        return f"{known}}}\n"

    def _with_enhancement(self, row: int, curated: str) -> str:
        """The values with that of the column which the later schema declares."""
        assert self.enhanced_from is not None  # noqa: S101  the caller has looked
        if row < self.enhanced_from:
            return curated
        drifted = self.rows.kind[row] == _KINDS.index(Kind.DRIFT)
        has_value = drifted and self.rows.variant[row] % len(self.family.variants_of(Kind.DRIFT)) == 0
        enhancement = self.family.enhancement
        return f'{curated},"{enhancement.column}":{json.dumps(enhancement.value if has_value else None)}'

    def _changed(
        self, row: int, message: _Message, variant: Variant, fate: ExpectedFate, winner: int
    ) -> tuple[bytes, str]:
        """A body that is not as usual."""
        body = _changed_body(message, variant)
        ending = variant.ending
        if ending is None:
            values = _overridden(message.curated, variant.curated) if variant.curated else message.curated
            return body, self._told(row, message, fate, winner, values)
        told: dict[str, Any] = {"fate": str(fate)}
        if variant.has_id:
            told["message_id"] = message.message_id
        if ending.fate is ExpectedFate.DEAD_LETTER:
            told["body_sha256"] = hashlib.sha256(_shown(body)).hexdigest()
        else:
            told["publish_time"] = message.published
        if fate is not ExpectedFate.PENDING:
            told["reason"] = ending.reason
            if ending.fields:
                told["fields"] = ending.fields
        return body, json.dumps(told)[1:] + "\n"

    def _copied(self, row: int, kind: Kind, fate: ExpectedFate) -> tuple[bytes, str]:
        """A message once more. An altered one is greater as a text, so that its own text never makes it the first."""
        origin = int(self.rows.origin[row])
        message, origin_kind = self._one(origin), _KINDS[self.rows.kind[origin]]
        variant = None if origin_kind in PLAIN else self._variant(origin_kind, int(self.rows.variant[origin]))
        if variant is not None and variant.ending and variant.ending.fate is ExpectedFate.DEAD_LETTER:
            return self._changed(row, message, variant, fate, -1)
        if variant is not None:
            body = _changed_body(message, variant)
        else:
            payload = f'{{"~retry":{row},{message.payload[1:]}' if kind is Kind.ALTERED_RETRY else message.payload
            body = message._replace(payload=payload).body.encode()
        told = {"message_id": message.message_id, "publish_time": message.published, "fate": str(fate)}
        return body, json.dumps(told)[1:] + "\n"


def _changed_body(message: _Message, variant: Variant) -> bytes:
    body = variant.make(Parts(*message[:4]))
    return body.encode() if isinstance(body, str) else body


def _overridden(curated: str, values: Mapping[str, Any]) -> str:
    """The values of Curated with some of them replaced."""
    return text_of({**read(f"{{{curated}}}"), **values})[1:-1]


def _shown(body: bytes) -> bytes:
    """What a dead letter's row holds of a body: its beginning, with bytes that are no text as escapes."""
    return body[:_SHOWN_BYTES].decode("utf-8", "backslashreplace").encode()[:_SHOWN_BYTES]


def _texts(milliseconds: Any) -> Sequence[str]:
    """Times as RFC 3339 texts of the same length, in UTC."""
    if len(milliseconds) == 1:
        moment = _EPOCH + timedelta(milliseconds=int(milliseconds[0]))
        return [moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")]
    texts: list[str] = np.datetime_as_string(milliseconds.astype("datetime64[ms]"), timezone="UTC").tolist()
    return texts
