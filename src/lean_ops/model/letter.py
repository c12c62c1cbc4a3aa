"""A dead letter as the dead-letter queue hands it over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class ReceivedLetter:
    """A message of the dead-letter queue: `attributes` is what its sender says of it, nothing if a queue moved it here.

    `message_id` is its own in this queue, `source_arn` the queue that moved it.
    """

    message_id: str
    body: str
    sent_at: datetime
    receive_count: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    source_arn: str | None = None
