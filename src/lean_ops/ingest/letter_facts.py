"""What is known of a dead letter that a queue hands over, and where it is archived. All of it may be hostile."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from lean_ops.aws import letters
from lean_ops.ingest.body import decide
from lean_ops.model.envelope import Refusal
from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from lean_ops.model.letter import ReceivedLetter

ARCHIVE: Final = "dlq-archive"
# The topic of letters that can't be told to be anybody's. It can't be a topic's name, so that they mix with no other
# topic's, and nothing brings them into a table before a person has looked at them.
UNKNOWN_TOPIC: Final = "_unknown"
SOURCES: Final = ("sqs", "firehose")
_safe_id: Final = re.compile(r"[A-Za-z0-9_-]{1,128}").fullmatch
_MOST_RECEIVES: Final = 1_000_000
# Of a letter only its message id is wanted; whether it is too large was decided where it was sent.
_ANY_SIZE: Final = 1 << 40


def topic_of(letter: ReceivedLetter, topic_of_arn: Callable[[str], str]) -> str:
    """Whose letter it is: what its sender says, else the queue that moved it here."""
    try:
        return parse_topic(letter.attributes.get(letters.TOPIC_NAME, ""))
    except WrongUseError:
        pass
    try:
        return topic_of_arn(letter.source_arn or "")
    except WrongUseError:
        return UNKNOWN_TOPIC


def archive_ids(letter: ReceivedLetter) -> tuple[str, str]:
    """The letter's id in the archive, and another one if that is taken by a different letter.

    It is the id of the message that was refused: one that is refused again, because its function was cut off, makes
    a second letter of the same. A letter that does not say it goes by its own id.
    """
    said, own = letter.attributes.get(letters.SQS_MESSAGE_ID, ""), _file_name(letter.message_id)
    first = said if _safe_id(said) else own
    return first, f"{first}-{own}"


def _file_name(message_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", message_id)[:128]


def archive_key(letter: ReceivedLetter, topic: str, archive_id: str) -> str:
    """The letter's place in the archive: by the time when it was sent, which stays the same however often it comes."""
    return f"{ARCHIVE}/{topic}/{letter.sent_at.astimezone(UTC):%Y-%m-%d/%H}/{archive_id}.json"


def facts_of(letter: ReceivedLetter, topic: str, archived_at: datetime) -> dict[str, Any]:
    """The first line of its file."""
    said = {_text(name): _text(value) for name, value in letter.attributes.items()}
    error_type, error_message = _reason(letter, said)
    source = said.get(letters.SOURCE)
    return {
        "topic_name": topic,
        "message_id": said.get(letters.MESSAGE_ID) or _message_id(letter, topic),
        "error_type": error_type,
        "error_message": error_message,
        "attributes": said | ({"source_queue": _text(letter.source_arn)} if letter.source_arn else {}),
        "receive_count": _receives(letter),
        "source": source if source in SOURCES else SOURCES[0],
        "archived_at": archived_at.astimezone(UTC).isoformat(),
        "sqs_message_id": _text(letter.message_id),
        "sent_at": letter.sent_at.astimezone(UTC).isoformat(),
    }


def _reason(letter: ReceivedLetter, said: dict[str, str]) -> tuple[str, str]:
    found = said.get(letters.ERROR_TYPE)
    if found is not None and found in Refusal.__members__:
        return found, said.get(letters.ERROR_MESSAGE, "no reason was given")
    if found is not None:
        return Refusal.UNKNOWN, f"an error type that is none, {found[:80]!r}: {said.get(letters.ERROR_MESSAGE, '')}"
    moved_by = letter.source_arn.rpartition(":")[2] if letter.source_arn else "its queue"
    return Refusal.UNKNOWN, f"never taken: {_text(moved_by)} gave up on it and moved it here"


def _message_id(letter: ReceivedLetter, topic: str) -> str | None:
    return decide(bytes_of(letter.body), topic, 0, _ANY_SIZE).message_id


def _receives(letter: ReceivedLetter) -> int:
    said = letter.attributes.get(letters.RECEIVE_COUNT, "")
    counted = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else letter.receive_count
    return min(counted, _MOST_RECEIVES)


def bytes_of(text: str) -> bytes:
    """A body's bytes; halves of surrogate pairs, which are no text, stay in them as they are."""
    return text.encode("utf-8", "surrogatepass")


def _text(value: str) -> str:
    """A text that every store takes."""
    return value.encode("utf-8", "backslashreplace").decode()
