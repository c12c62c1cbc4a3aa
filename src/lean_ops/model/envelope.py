"""A message at the door: the RAW row it becomes, or the reason why it is refused."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

# Where the envelope's fields come from when the queue body does not give them: JSON pointers, first choice first.
ENVELOPE_SOURCES: Final = {
    "idempotency_key": (
        "/_metadata/idempotencyKeyResource",
        "/_metadata/idempotency_key",
        "/idempotencyKeyResource",
        "/idempotency_key",
    ),
    "period_reference": (
        "/_metadata/periodReference",
        "/_metadata/period_reference",
        "/periodReference",
        "/period_reference",
    ),
    "correlation_id": ("/_metadata/correlationId", "/_metadata/correlation_id", "/correlationId", "/correlation_id"),
}
# The body's spellings of what every message must have, first choice first.
MESSAGE_ID_NAMES: Final = ("message_id", "messageId")
PUBLISH_TIME_NAMES: Final = ("publish_time", "publishTime")
PAYLOAD_NAME: Final = "payload"


class Refusal(StrEnum):
    """Why a message became a dead letter."""

    MALFORMED_JSON = "MALFORMED_JSON"
    INVALID_CONTRACT = "INVALID_CONTRACT"
    OVERSIZED = "OVERSIZED"
    UNKNOWN = "UNKNOWN"


class RawRow(NamedTuple):
    """One row of a RAW table, its columns in the table's order; a tuple because millions of them are made."""

    topic_name: str
    message_id: str
    idempotency_key: str | None
    period_reference: str | None
    correlation_id: str | None
    publish_time: int  # microseconds since 1970, UTC
    ingestion_ts: int  # seconds since 1970, UTC
    json_payload: str | None


class DeadLetter(NamedTuple):
    """A refused message: the kind of refusal, the reason in words, and its id if one could be read."""

    error_type: Refusal
    error_message: str
    message_id: str | None = None
