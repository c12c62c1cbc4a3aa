"""A dead letter as it is archived, on disk and in a bucket alike: a JSON object in two lines, its facts and its body.

Both are written and read piece by piece, so that a body of any size needs little memory, and the facts of a huge one
can be read without it.
"""

from __future__ import annotations

import base64
import codecs
import json
import re
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, Final

from lean_ops.ingest.lines import Spool
from lean_ops.model.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Body = bytes | Spool

HEAD_BYTES: Final = 64 * 1024
# Of a text's bytes, escaping makes six at the most.
_WRITTEN_HEAD_BYTES: Final = 6 * HEAD_BYTES + 64
_BASE64_STEP: Final = 3 * 256 * 1024
_READ_STEP: Final = 1024 * 1024
_whole_characters: Final = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+').match
_to_the_quote: Final = re.compile(rb'(?:[^"\\]++|\\.)*+(?=")', re.DOTALL).match
_LONGEST_CHARACTER: Final = len(rb"\u0000")


def write(file: IO[bytes], facts: dict[str, Any], body: Body) -> None:
    """Write a dead letter."""
    file.write(json.dumps(facts, ensure_ascii=False).encode()[:-1] + b",\n")
    _write_body(file, body)
    file.write(b'"}\n')


def head_of(body: Body) -> bytes:
    """As much of a body as its row shows, and a byte more if there is more."""
    return body.head(HEAD_BYTES + 1) if isinstance(body, Spool) else body[: HEAD_BYTES + 1]


def row_of(archive_path: str, facts: dict[str, Any], head: bytes) -> dict[str, Any]:
    """A dead letter's row for `dlq_errors`."""
    same = ("topic_name", "message_id", "error_type", "error_message", "receive_count", "source")
    return {
        **{name: facts[name] for name in same},
        "body": shown_head(head),
        "attributes": json.dumps(facts["attributes"]),
        "archive_path": archive_path,
        "archived_at": datetime.fromisoformat(facts["archived_at"]),
        "replay_status": "NEW",
        "replay_id": None,
    }


def shown_head(head: bytes) -> str:
    """The first 64 KB as text: cut between two characters, bytes that are no text shown as escapes."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    text = decoder.decode(head[:HEAD_BYTES], final=len(head) <= HEAD_BYTES)
    return text.encode()[:HEAD_BYTES].decode("utf-8", "ignore")


def read_head(file: IO[bytes], where: str) -> tuple[dict[str, Any], bytes]:
    """The facts of an archived dead letter, and its body's beginning."""
    try:
        facts = _facts(file)
        name, _, body = file.read(_WRITTEN_HEAD_BYTES).partition(b': "')
        return facts, _unescaped(body)[0] if name == b'"body"' else _from_base64(body.partition(b'"')[0])[0]
    except ValueError as error:
        raise _damaged(where, error) from error


def read_body(file: IO[bytes], where: str) -> tuple[dict[str, Any], Iterator[bytes]]:
    """The facts of an archived dead letter, and its whole body piece by piece."""
    try:
        facts = _facts(file)
    except ValueError as error:
        raise _damaged(where, error) from error
    return facts, _body_pieces(file, where)


def _facts(file: IO[bytes]) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(file.readline().rstrip(b",\n") + b"}")
    return facts


def _damaged(where: str, error: ValueError) -> TerminalError:
    return TerminalError(
        "a dead letter in the archive is damaged",
        where=where,
        found=str(error),
        remedy="Restore the file from a backup, or move it out of the archive.",
    )


def _write_body(file: IO[bytes], body: Body) -> None:
    if _is_utf8(_chunks(body)):
        file.write(b'"body": "')
        decoder = codecs.getincrementaldecoder("utf-8")()
        for chunk in _chunks(body):
            # Characters are escaped one by one, so a text may be escaped in pieces.
            file.write(json.dumps(decoder.decode(chunk), ensure_ascii=False)[1:-1].encode())
    else:
        file.write(b'"body_base64": "')
        for chunk in _in_steps(_chunks(body), _BASE64_STEP):
            file.write(base64.b64encode(chunk))


def _chunks(body: Body) -> Iterable[bytes]:
    return body.chunks() if isinstance(body, Spool) else (body,)


def _is_utf8(chunks: Iterable[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in chunks:
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _in_steps(chunks: Iterable[bytes], step: int) -> Iterator[bytes]:
    """The same bytes in pieces of one size, the last one shorter: base64 pads only at the end."""
    left = b""
    for chunk in chunks:
        left += chunk
        whole = len(left) // step * step
        for start in range(0, whole, step):
            yield left[start : start + step]
        left = left[whole:]
    yield left


def _body_pieces(file: IO[bytes], where: str) -> Iterator[bytes]:
    """The body that the rest of a file holds."""
    name, _, beginning = file.read(_READ_STEP).partition(b': "')
    read = _READERS.get(name)
    if read is None:
        raise _damaged(where, ValueError(f"{name[:40]!r} where the body should begin"))
    try:
        yield from _pieces(file, read, beginning)
    except ValueError as error:
        raise _damaged(where, error) from error


def _pieces(file: IO[bytes], read: Callable[[bytes], tuple[bytes, bytes]], left: bytes) -> Iterator[bytes]:
    """A body of which the first bytes are read already, up to the quote that ends it."""
    while not (whole := _to_the_quote(left)):
        piece, rest = read(left)
        yield piece
        more = file.read(_READ_STEP)
        if not more or len(rest) > _LONGEST_CHARACTER:
            raise ValueError("the body breaks off")
        left = rest + more
    piece, rest = read(whole[0])
    yield piece
    _expect_end(rest, left[whole.end() :] + file.read(_READ_STEP))


def _expect_end(rest: bytes, ending: bytes) -> None:
    if rest or ending != b'"}\n':
        raise ValueError(f"{(rest + ending)[:40]!r} where the body should end")


def _unescaped(written: bytes) -> tuple[bytes, bytes]:
    """The bytes of a JSON string that may break off anywhere, and what may be the beginning of one more character."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    text = decoder.decode(written)
    whole = _whole_characters(text)
    end = whole.end() if whole else 0
    unread, _ = decoder.getstate()
    return str(json.loads(f'"{text[:end]}"')).encode(), text[end:].encode() + unread


def _from_base64(written: bytes) -> tuple[bytes, bytes]:
    """The bytes of a base64 text that may break off anywhere, and what is left over."""
    whole = len(written) // 4 * 4
    return base64.b64decode(written[:whole], validate=True), written[whole:]


_READERS: Final = {b'"body"': _unescaped, b'"body_base64"': _from_base64}
