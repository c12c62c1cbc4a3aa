"""What a schema asks of a row: what breaks each rule, and the reason that is then given. Both are SQL over the row."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from lean_ops.curate import sql
from lean_ops.curate.casts import not_blank
from lean_ops.model.data_type import Kind
from lean_ops.model.java_pattern import parse_pattern
from lean_ops.model.pattern_cost import longest_value
from lean_ops.model.tables import ENVELOPE, ColumnType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lean_ops.model.schema import PayloadColumn, Schema

_SHOWN_CHARACTERS: Final = 100
_SHOWN_CHOICES: Final = 10


class ErrorType(StrEnum):
    """Why a row is refused, the most severe first."""

    CDE_VIOLATION = "CDE_VIOLATION"
    TYPE_CAST = "TYPE_CAST"
    RULE_VIOLATION = "RULE_VIOLATION"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of one field: `broken` is true for a row that breaks it (NULL counts as kept), `message` says how."""

    error_type: ErrorType
    field: str
    broken: str
    message: str

    @property
    def reason(self) -> str:
        """The reason as data, NULL for a row that keeps the rule; `severity` sorts the types."""
        reason = sql.struct(
            severity=str(list(ErrorType).index(self.error_type)),
            error_type=sql.text(self.error_type),
            field=sql.text(self.field),
            message=f"concat({sql.text(f'{self.field}: ')}, {self.message})",
        )
        return sql.when(self.broken, reason)


def text_of(column: str) -> str:
    """The column that holds a payload column's text before its cast; the space keeps it apart from every name."""
    return f"text {column}"


def rules_of(schema: Schema) -> list[Rule]:
    """Every rule of a schema, over rows that have the envelope, the typed columns and their texts."""
    payload = schema.payload_columns.items()
    return [*_envelope_rules(schema), *(rule for name, column in payload for rule in _column_rules(name, column))]


def _envelope_rules(schema: Schema) -> Iterator[Rule]:
    for column in ENVELOPE:
        asked = schema.envelope_column(column.name)
        if asked.must_be_present:
            value = not_blank(column.name) if column.type is ColumnType.STRING else column.name
            yield _presence(column.name, value, is_cde=asked.cde)


def _presence(field: str, value: str, *, is_cde: bool) -> Rule:
    why = "a critical data element" if is_cde else "required"
    return Rule(ErrorType.CDE_VIOLATION, field, f"{value} IS NULL", sql.text(f"is missing and {why}"))


def _column_rules(field: str, column: PayloadColumn) -> Iterator[Rule]:
    """A missing value breaks nothing but its presence; one that can't be cast breaks nothing but its type."""
    text, value = sql.name(text_of(field)), sql.name(field)
    if column.must_be_present:
        yield _presence(field, text, is_cde=column.cde)
    found = _found(text, column)
    if column.type.kind is not Kind.STRING:
        broken, words = f"{text} IS NOT NULL AND {value} IS NULL", f" is no {column.type}{_format_words(column)}"
        yield Rule(ErrorType.TYPE_CAST, field, broken, f"concat({found}, {sql.text(words)})")
    for broken, words in _value_rules(value, column):
        yield Rule(ErrorType.RULE_VIOLATION, field, broken, f"concat({found}, {sql.text(f' {words}')})")


def _format_words(column: PayloadColumn) -> str:
    return f" ({column.time_format.value})" if column.type.kind is Kind.TIMESTAMP else ""


def _found(text: str, column: PayloadColumn) -> str:
    """The value in quotes, shortened; never that of a column that holds personal data."""
    if column.pii is not None:
        return sql.text("its value (not shown)")
    short = f"concat(left({text}, {_SHOWN_CHARACTERS}), {sql.text('…')})"
    quote = sql.text("'")
    return f"concat({quote}, {sql.when(f'length({text}) > {_SHOWN_CHARACTERS}', short, text)}, {quote})"


def _value_rules(value: str, column: PayloadColumn) -> Iterator[tuple[str, str]]:
    """Conditions that are true when a rule is broken, with the words for it; NULL, so not true, for no value."""

    def literal(words: str) -> str:
        return sql.value(column.type, column.value_of(words))

    if column.enum is not None:
        shown = ", ".join(column.enum[:_SHOWN_CHOICES]) + (", …" if len(column.enum) > _SHOWN_CHOICES else "")
        yield f"{value} NOT IN ({', '.join(map(literal, column.enum))})", f"is not one of {shown}"
    if column.pattern is not None:
        yield from _pattern_rules(value, column.pattern)
    if column.min is not None:
        yield f"{value} < {literal(column.min)}", f"is below {column.min}"
    if column.max is not None:
        yield f"{value} > {literal(column.max)}", f"is above {column.max}"


def _pattern_rules(value: str, pattern: str) -> Iterator[tuple[str, str]]:
    """A pattern holds for the whole value; one too long for Java's stack is refused before Java is asked."""
    whole = rf"\A(?:{pattern})\z"
    broken, longest = f"NOT {sql.matches(value, whole)}", longest_value(parse_pattern(pattern))
    if longest is None:
        yield broken, f"does not match {pattern}"
        return
    too_long = f"length({value}) > {longest}"
    yield too_long, f"is longer than the {longest} characters that {pattern} can be asked about"
    yield sql.when(f"NOT {too_long}", broken), f"does not match {pattern}"
