"""A file as it was seen in a folder or a bucket, and what is said when it is another one by now."""

from __future__ import annotations

from dataclasses import dataclass

from lean_ops.model.errors import TransientError


class MovedError(TransientError):
    """A file is not as it was when it was looked at: somebody else has written it meanwhile."""

    def __init__(self, place: object) -> None:
        remedy = "Nothing was written over it; do the same again."
        super().__init__("somebody else has changed it meanwhile", where=str(place), remedy=remedy)


@dataclass(frozen=True, slots=True)
class Stored:
    """A file as it was seen; `tag` tells it from the same file with other content."""

    content: bytes
    tag: str = ""
