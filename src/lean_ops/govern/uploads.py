"""Schemas that were uploaded as pending: each is judged as a submission is; a bad one is an answer, not an error."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from lean_ops.govern.submit import SchemaRefusedError
from lean_ops.model.errors import WrongUseError
from lean_ops.model.topic import parse_topic

if TYPE_CHECKING:
    from datetime import datetime

    from lean_ops.govern.submit import Activation, Submissions

_SHOWN_PROBLEMS: Final = 20
_PROBLEM_LENGTH: Final = 500


class Outcome(StrEnum):
    """What became of an upload."""

    ACTIVE = "ACTIVE"
    ACTIVE_ALREADY = "ACTIVE_ALREADY"
    REFUSED = "REFUSED"
    NOTHING_PENDING = "NOTHING_PENDING"


@dataclass(frozen=True, slots=True)
class Judgement:
    """An upload's folder, its outcome, and what there is to say of it."""

    folder: str
    outcome: Outcome
    schema_version: str | None = None
    change_class: str | None = None
    problems: tuple[str, ...] = ()
    error_file: str | None = None

    def document(self) -> dict[str, Any]:
        """The judgement for a machine."""
        return {
            "folder": self.folder,
            "outcome": self.outcome.value,
            "schema_version": self.schema_version,
            "change_class": self.change_class,
            "problems": list(self.problems),
            "error_file": self.error_file,
        }


def judge(submissions: Submissions, folder: str, *, submitted_by: str, now: datetime) -> Judgement:
    """Judge what is pending in a topic's folder, whose name may be anybody's invention. Safe to repeat at any time."""
    refusal = _why_no_topic(folder)
    if refusal is not None:
        return _put_aside(submissions, folder, refusal, now)
    try:
        activation = submissions.submit_pending(folder, submitted_by=submitted_by, now=now)
    except SchemaRefusedError as error:
        problems = tuple(str(problem)[:_PROBLEM_LENGTH] for problem in error.problems[:_SHOWN_PROBLEMS])
        return Judgement(folder, Outcome.REFUSED, problems=problems, error_file=str(error.error_file))
    return _activated(folder, activation)


def _activated(folder: str, activation: Activation | None) -> Judgement:
    if activation is None:
        return Judgement(folder, Outcome.NOTHING_PENDING)
    outcome = Outcome.ACTIVE if activation.changed else Outcome.ACTIVE_ALREADY
    return Judgement(folder, outcome, activation.schema.schema_version, activation.change_class.value)


def _why_no_topic(folder: str) -> str | None:
    try:
        topic = parse_topic(folder)
    except WrongUseError as error:
        return str(error)
    return None if topic == folder else f"folder {folder!r} is not the topic's own name; expected {topic!r}"


def _put_aside(submissions: Submissions, folder: str, refusal: str, now: datetime) -> Judgement:
    """To whoever uploaded it the folder is where to look; nothing else hears of a topic that can't be one."""
    store = submissions.folder
    pending = store.pending(folder)
    if pending is None:
        return Judgement(folder, Outcome.NOTHING_PENDING)
    problem = {"path": "$", "found": folder, "expected": "a topic's name", "message": refusal}
    error_file = store.fail(folder, pending.schema.content, {"errors": [problem], "submitted_at": now.isoformat()})
    store.discard(folder, pending)
    return Judgement(folder, Outcome.REFUSED, problems=(refusal,), error_file=str(error_file))
