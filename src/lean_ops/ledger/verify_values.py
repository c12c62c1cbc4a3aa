"""The values of Curated's rows against what an oracle says of them, each compared as the type of its column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lean_ops.lake.duck import rows, run
from lean_ops.lake.table_files import literal, quoted, text_list
from lean_ops.ledger.verify_result import WrongValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from lean_ops.lake.table_files import DuckColumn

    Connection = duckdb.DuckDBPyConnection

# What DuckDB would round or guess is no such value: "3.7" is no INTEGER, "yes" no BOOLEAN.
_WHOLE: Final = "[+-]?[0-9]+"
_PATTERNS: Final = {
    "INTEGER": _WHOLE,
    "BIGINT": _WHOLE,
    "BOOLEAN": "true|false",
    "DATE": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
# What an oracle says of a column: nothing, that it is NULL, a value, or a text that is none of the column's type.
_UNTOLD, _NULL, _VALUE, _UNFIT = range(4)
_ARE_ONE_MESSAGE: Final = "v.message_id = c.message_id AND v.publish_time = c.publish_time"


@dataclass(frozen=True, slots=True)
class Unfit:
    """A text that is no value of its column's type: the oracle is wrong."""

    place: int
    column: DuckColumn
    text: str


@dataclass(frozen=True, slots=True)
class ToldColumns:
    """The columns of Curated that a topic's oracle speaks of, in an order of their own."""

    columns: tuple[DuckColumn, ...]

    def make_wrong_values(self, connection: Connection, part: str) -> Unfit | None:
        """Make the table `wrong_values` of a part's lines: `place` and `columns`. The first unfit text, if any.

        `told_values` has the expected values in their columns' types: `v0` and so on, and in `s0` what is told.
        """
        run(connection, f"CREATE OR REPLACE TABLE told_values AS {self._told_values(part)}")
        unfit = self._unfit(connection)
        named = ", ".join(
            f"CASE WHEN {self._is_wrong(number)} THEN {literal(column.name)} END"
            for number, column in enumerate(self.columns)
        )
        of_columns = f"list_filter([{named}]::VARCHAR[], lambda name: name IS NOT NULL)"
        run(
            connection,
            "CREATE OR REPLACE TABLE wrong_values AS SELECT * FROM ("  # noqa: S608  names and values are quoted
            f" SELECT v.place, {of_columns} || v.not_there AS columns FROM told_values v JOIN curated c"
            f" ON {_ARE_ONE_MESSAGE}) WHERE len(columns) > 0",
        )
        return unfit

    def _told_values(self, part: str) -> str:
        pointers = text_list(_pointer(column.name) for column in self.columns)
        known = text_list(column.name for column in self.columns)
        texts = (
            f"SELECT place, message_id, publish_time, json_type(curated, {pointers}::VARCHAR[]) AS types,"  # noqa: S608
            f" json_extract_string(curated, {pointers}::VARCHAR[]) AS texts,"
            f" list_filter(json_keys(curated), lambda name: NOT list_contains({known}::VARCHAR[], name)) AS not_there"
            f" FROM told WHERE fate = 'curated' AND curated IS NOT NULL AND {part}"
        )
        values = "".join(f", {_value(number, column)}" for number, column in enumerate(self.columns))
        return f"SELECT place, message_id, publish_time, not_there{values} FROM ({texts})"  # noqa: S608

    def _is_wrong(self, number: int) -> str:
        return f"(v.s{number} > {_UNTOLD} AND c.{quoted(self.columns[number].name)} IS DISTINCT FROM v.v{number})"

    def _unfit(self, connection: Connection) -> Unfit | None:
        if not self.columns:
            return None
        asked = [f"min(place) FILTER (s{number} = {_UNFIT}) AS p{number}" for number in range(len(self.columns))]
        [row] = rows(connection, f"SELECT {', '.join(asked)} FROM told_values")  # noqa: S608
        found = [(place, number) for number in range(len(self.columns)) if (place := row[f"p{number}"]) is not None]
        if not found:
            return None
        place, number = min(found)
        column = self.columns[number]
        text = f"json_extract_string(curated, {literal(_pointer(column.name))})"
        [told] = rows(connection, f"SELECT {text} AS text FROM told WHERE place = {place}")  # noqa: S608
        return Unfit(place, column, told["text"])

    def wrong_values(self, connection: Connection, places: Sequence[int]) -> dict[int, tuple[WrongValue, ...]]:
        """What is wrong at these places, in full."""
        if not places:
            return {}
        parts = [self._detail(number) for number in range(len(self.columns))]
        not_there = (
            "list_transform(v.not_there, lambda name: {'name': name, 'told': json_extract_string(t.curated,"
            " '/' || replace(replace(name, '~', '~0'), '/', '~1')), 'found': NULL::VARCHAR, 'there': false})"
        )
        asked = (
            f"SELECT v.place, list_filter([{', '.join(parts)}], lambda one: one IS NOT NULL) || {not_there} AS wrong"  # noqa: S608
            f" FROM told_values v JOIN told t ON t.place = v.place JOIN curated c ON {_ARE_ONE_MESSAGE}"
            f" WHERE v.place IN ({', '.join(map(str, places))}) ORDER BY v.place"
        )
        return {row["place"]: tuple(map(_wrong_value, row["wrong"])) for row in rows(connection, asked)}

    def _detail(self, number: int) -> str:
        column = self.columns[number]
        told = f"json_extract_string(t.curated, {literal(_pointer(column.name))})"
        detail = f"'told': {told}, 'found': c.{quoted(column.name)}::VARCHAR, 'there': true"
        return f"CASE WHEN {self._is_wrong(number)} THEN {{'name': {literal(column.name)}, {detail}}} END"


def told_columns(connection: Connection, columns: Sequence[DuckColumn]) -> ToldColumns:
    """Which of Curated's columns the lines of `told` speak of."""
    known = ", ".join(literal(column.name) for column in columns)
    asked = (
        "SELECT DISTINCT name FROM (SELECT unnest(json_keys(curated)) AS name FROM told"  # noqa: S608
        f" WHERE fate = 'curated' AND curated IS NOT NULL) WHERE name IN ({known})"
    )
    named = {row["name"] for row in rows(connection, asked)}
    return ToldColumns(tuple(column for column in columns if column.name in named))


def _value(number: int, column: DuckColumn) -> str:
    """A column's expected value in its type, and what is told of it."""
    text, kind = f"texts[{number + 1}]", f"types[{number + 1}]"
    value = f"try_cast({text} AS {column.type})"
    pattern = _pattern(column.type)
    if pattern is not None:
        value = f"CASE WHEN regexp_full_match({text}, {literal(pattern)}) THEN {value} END"
    state = (
        f"CASE WHEN {kind} IS NULL THEN {_UNTOLD} WHEN {text} IS NULL THEN {_NULL}"
        f" WHEN v{number} IS NULL THEN {_UNFIT} ELSE {_VALUE} END::UTINYINT"
    )
    return f"{value} AS v{number}, {state} AS s{number}"


def _pattern(kind: str) -> str | None:
    """What a text must look like so that its cast changes nothing; None if the cast itself is strict enough."""
    if kind.startswith("DECIMAL"):
        scale = kind.partition(",")[2].strip(" )")
        return rf"[+-]?[0-9]+(?:\.[0-9]{{0,{scale}}}0*)?"
    return _PATTERNS.get(kind)


def _pointer(name: str) -> str:
    """A member of the expected values as a JSON pointer."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _wrong_value(row: Mapping[str, Any]) -> WrongValue:
    return WrongValue(row["name"], row["told"], row["found"], row["there"])
