"""What a schema asks of a row, as data: the checks, their order and the words for a row that breaks them.

The Java judge (`leanops.judge`) applies them. Here is said what is checked and what is told; there, how.
"""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.data_type import Kind
from lean_ops.model.java_pattern import parse_pattern
from lean_ops.model.pattern_cost import longest_value
from lean_ops.model.tables import ENVELOPE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lean_ops.model.schema import PayloadColumn, Schema

_SHOWN_CHOICES: Final = 10
_NOT_SHOWN: Final = "its value (not shown)"


class ErrorType(StrEnum):
    """Why a row is refused, the most severe first."""

    CDE_VIOLATION = "CDE_VIOLATION"
    TYPE_CAST = "TYPE_CAST"
    RULE_VIOLATION = "RULE_VIOLATION"


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A rule of one field: the check that it is, with its arguments, and the words for a row that breaks it."""

    error_type: ErrorType
    field: str
    check: str
    words: str
    shows_value: bool = False
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """The rule as the judge takes it; `severity` sorts the types."""
        return {
            "check": self.check,
            "severity": list(ErrorType).index(self.error_type),
            "error_type": self.error_type,
            "field": self.field,
            "words": self.words,
            "shows_value": self.shows_value,
            **self.arguments,
        }


def envelope_rules(schema: Schema) -> Iterator[Rule]:
    """The rules of the columns that every message has."""
    for name in ENVELOPE_NAMES:
        asked = schema.envelope_column(name)
        if asked.must_be_present:
            yield _presence(name, is_cde=asked.cde)


def column_rules(name: str, column: PayloadColumn) -> Iterator[Rule]:
    """The rules of a payload column.

    A missing value breaks nothing but its presence; one that can't be cast breaks nothing but its type.
    """
    if column.must_be_present:
        yield _presence(name, is_cde=column.cde)
    if column.type.kind is not Kind.STRING:
        words = f"is no {column.type}{_format_words(column)}"
        yield _about_value(ErrorType.TYPE_CAST, name, column, "type", words)
    for check, words, arguments in _value_checks(column):
        yield _about_value(ErrorType.RULE_VIOLATION, name, column, check, words, **arguments)


def _presence(name: str, *, is_cde: bool) -> Rule:
    why = "a critical data element" if is_cde else "required"
    return Rule(ErrorType.CDE_VIOLATION, name, "presence", f"is missing and {why}")


def _format_words(column: PayloadColumn) -> str:
    return f" ({column.time_format.value})" if column.type.kind is Kind.TIMESTAMP else ""


def _about_value(
    error_type: ErrorType, name: str, column: PayloadColumn, check: str, words: str, **arguments: Any
) -> Rule:
    """A rule whose words tell the value, unless it is personal data."""
    if column.pii is not None:
        return Rule(error_type, name, check, f"{_NOT_SHOWN} {words}", arguments=arguments)
    return Rule(error_type, name, check, words, shows_value=True, arguments=arguments)


def _value_checks(column: PayloadColumn) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Checks of the value that there is, with the words for a value that fails and the checks' arguments."""
    if column.enum is not None:
        shown = ", ".join(column.enum[:_SHOWN_CHOICES]) + (", …" if len(column.enum) > _SHOWN_CHOICES else "")
        yield "enum", f"is not one of {shown}", {"literals": column.enum}
    if column.pattern is not None:
        yield from _pattern_checks(column.pattern)
    if column.min is not None:
        yield "min", f"is below {column.min}", {"literal": column.min}
    if column.max is not None:
        yield "max", f"is above {column.max}", {"literal": column.max}


def _pattern_checks(pattern: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A pattern holds for the whole value; one too long for Java's stack is refused before Java is asked."""
    matches: dict[str, Any] = {"pattern": rf"\A(?:{pattern})\z"}
    longest = longest_value(parse_pattern(pattern))
    if longest is not None:
        words = f"is longer than the {longest} characters that {pattern} can be asked about"
        yield "length", words, {"longest": longest}
        matches["longest"] = longest
    yield "pattern", f"does not match {pattern}", matches
