"""Makes docs/types.md of the table in tests/spellings.py, so that the page says what the tests hold."""

from __future__ import annotations

import re
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.spellings import Spellings

    from lean_ops.model.data_type import Value

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "types.md"
SHOWN_CHARACTERS = 48

OPENING = (
    "# Types",
    "Made by `make docs` from `tests/spellings.py`; change that table, not this page.",
    "In Standardized every payload value is the text that was sent. Curated gives the columns that a schema declares"
    " their types. For each column, in this order:",
)
STEPS = (
    "**Blank.** A text of nothing but spaces, tabs, line breaks (`\\n`, `\\r`), form feeds (`\\f`) and vertical tabs"
    " (`\\v`) is NULL, like JSON null and a missing value.",
    "**Default.** NULL becomes the column's `default`, if the schema gives one. The schema file writes it as a payload"
    " would.",
    "**Cast.** The text becomes a value of the column's type; the tables below say which texts do. Any other text, and"
    " any that would lose digits, makes the row an error of type `TYPE_CAST` in `iceberg_curated_db.errors`: never a"
    " NULL, never a rounded number. Only digits of a time past the microseconds are cut.",
    "**Rules.** `required` and `cde` ask for a value; `enum`, `pattern`, `min` and `max` look at the one there is.",
    "**pii.** `hash`, `mask` and `drop` come last, before anything is written.",
)
NOTES = (
    "For every type but STRING the blanks of step 1 are ignored around a value. `default`, `enum`, `min` and `max` of a"
    " schema file follow the same spellings.",
    "A number is an optional sign, ASCII digits with at most one point, and an optional exponent of up to four digits:"
    " `12`, `-1.50`, `.5`, `5.`, `1e5`. Zeros that carry no value (`007`, `1.500`) are not counted as digits.",
    "In the tables `␣` is a space that would not be seen, `\\t` a tab, `\\n` a line break, `\\u00a0` an invisible"
    " character by its number, `\\\\` a backslash, and `…` stands for the middle of a long text.",
)

# By the title of the type's spellings.
RULES = {
    "STRING": "Any text, unchanged.",
    "INT": "A number without a fraction, from -2147483648 to 2147483647. `12.0` and `1e3` are whole numbers too.",
    "BIGINT": "A number without a fraction, from -9223372036854775808 to 9223372036854775807. Always exact.",
    "DOUBLE": (
        "A number of at most 17 digits, held as the nearest double. Refused are numbers too large for a double, numbers"
        " so small that only zero would be left, and whole numbers of 16 or 17 digits below 2^63, written without an"
        " exponent, that a double does not hold exactly: those are identifiers as often as measures. For more digits"
        " declare DECIMAL or BIGINT."
    ),
    "DECIMAL(10,2)": (
        "DECIMAL(p,s) takes a number with at most p - s digits before the point and s after it, once it is written out."
        " Always exact; what has more digits is refused, not rounded. The tables are those of DECIMAL(10,2)."
    ),
    "BOOLEAN": "`true`, `t`, `yes`, `y`, `1` or `false`, `f`, `no`, `n`, `0`, in any case.",
    "DATE": (
        "A day of the calendar as `YYYY-MM-DD`, in the years 0001 to 9999. A text with a time is refused, because the"
        " time would be lost; declare TIMESTAMP."
    ),
    "TIMESTAMP, format iso": (
        "The default format: `YYYY-MM-DD`, then `T` or a space, then `HH:MM`, `HH:MM:SS` or `HH:MM:SS.f` with one to"
        " nine digits for the f, then perhaps a zone: `Z`, `+HH:MM`, `+HHMM` or `+HH`, at most 18 hours from UTC."
        " Without a zone it is UTC. Curated holds UTC with microseconds; further digits are cut. The year is 0001 to"
        " 9999, as written and in UTC."
    ),
    "TIMESTAMP, format epoch_s": (
        "Seconds since 1970-01-01T00:00:00Z: one to 18 digits with an optional sign and up to nine fraction digits, of"
        " which six are kept. No exponent."
    ),
    "TIMESTAMP, format epoch_ms": (
        "Milliseconds since 1970-01-01T00:00:00Z: one to 18 digits with an optional sign and up to nine fraction"
        " digits, of which three are kept. No exponent."
    ),
}
_ESCAPES = {"\t": r"\t", "\n": r"\n", "\r": r"\r", "\f": r"\f", "\v": r"\v", "\\": r"\\"}


def main() -> int:
    """Write the page."""
    sys.path.insert(0, str(ROOT))  # a script sees its own folder only
    from tests.spellings import SPELLINGS

    PAGE.write_text(page(SPELLINGS), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is up to date")
    return 0


def page(every: Iterable[Spellings]) -> str:
    """The whole page."""
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(STEPS, start=1))
    return "\n\n".join([*OPENING, steps, *NOTES, *(_section(spellings) for spellings in every)]) + "\n"


def _section(spellings: Spellings) -> str:
    accepted = [(shown(line.text), held(line.value), line.remark) for line in spellings.accepted]
    refused = [(shown(line.text), line.reason) for line in spellings.refused]
    return "\n\n".join(
        [
            f"## {spellings.title}",
            RULES[spellings.title],
            _table(("what is written", "what Curated holds", "remark"), accepted),
            _table(("what is refused", "why"), refused) if refused else "Nothing is refused.",
        ]
    )


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join([_row(titles), "|---" * len(titles) + "|", *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def held(value: Value) -> str:
    """A value as a reader of Curated sees it."""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, date):
        return code(value.isoformat().replace("+00:00", "Z"))
    return shown(value) if isinstance(value, str) else code(str(value))


def shown(text: str) -> str:
    """A text with every character of it to be seen, and its length where it is cut."""
    if len(text) <= SHOWN_CHARACTERS:
        return code(visible(text))
    return f"{code(f'{visible(text[:12])}…{visible(text[-12:])}')} ({len(text)} characters)"


def visible(text: str) -> str:
    """A text with its invisible characters written out."""
    marked = re.sub("^ +| +$| {2,}", lambda spaces: "␣" * len(spaces[0]), text)
    return "".join(map(_visible_character, marked))


def _visible_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\u{ord(character):04x}"


def code(text: str) -> str:
    """A text as Markdown shows it letter by letter."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


if __name__ == "__main__":
    sys.exit(main())
