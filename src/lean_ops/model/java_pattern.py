"""Java's regular expressions, read without a Java: what is no pattern there is found before anything runs.

What only Java's own tables know is left to it: the names of characters, scripts and blocks, and how far a look-behind
may reach.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NoReturn

from lean_ops.model.pattern_tree import SAMPLES, Characters, Group, Part, Pattern, Place, Repeat

MAX_LEVELS: Final = 50
_GREATEST_COUNT: Final = 2**31 - 1
_GREATEST_CHARACTER: Final = 0x10FFFF
_DIGITS: Final = frozenset("0123456789")
_WORD: Final = frozenset(c for c in SAMPLES if c.isascii() and (c.isalnum() or c == "_"))
_CLASSES: Final = {
    "d": _DIGITS,
    "h": frozenset(" \t\u00a0"),
    "s": frozenset(" \t\n\x0b\f\r"),
    "v": frozenset("\n\x0b\f\r\u0085\u2028"),
    "w": _WORD,
}
_DOT: Final = SAMPLES - frozenset("\n\r\u0085\u2028")
_CONTROLS: Final = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PLACES: Final = frozenset("AbBGZz")
_FLAGS: Final = re.compile(r"([idmsuxU]*)(?:-[idmsuxU]*)?([:)])")
_NAME: Final = re.compile(r"([A-Za-z][A-Za-z0-9]*)>")
_COUNT: Final = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_CODES: Final = {
    "0": re.compile(r"([0-3]?[0-7]{1,2})"),
    "x": re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}"),
    "u": re.compile(r"([0-9a-fA-F]{4})"),
    "N": re.compile(r"\{[^}]+\}"),
}
_FAMILY: Final = re.compile(r"([A-Za-z])|\{(\^?[A-Za-z0-9_ =-]+)\}")
_CATEGORIES: Final = frozenset(
    {*"LMNZCPS", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"}
    | {"Cs", "Cn", "Pd", "Ps", "Pe", "Pc", "Po", "Pi", "Pf", "Sm", "Sc", "Sk", "So"}
)
_POSIX: Final = frozenset(
    {"Lower", "Upper", "ASCII", "Alpha", "Digit", "Alnum", "Punct", "Graph", "Print", "Blank", "Cntrl", "XDigit"}
    | {"Space", "LC", "LD", "L1", "all"}
)
_QUOTED: Final = re.compile(r"\\(?:Q(?P<quoted>.*?)(?P<end>\\E|\Z)|.)", re.DOTALL)


class PatternError(ValueError):
    """A text that is no Java pattern, and why."""


def parse_pattern(text: str) -> Pattern:
    """The pattern that a text is; PatternError if Java would refuse it or it would not end where it should."""
    return _Reader(_QUOTED.sub(_unquoted, text)).whole()


def _unquoted(found: re.Match[str]) -> str:
    """A quotation by its characters, each escaped; whatever else is escaped stays."""
    quoted: str | None = found["quoted"]
    if quoted is None:
        return found[0]
    if not found["end"]:
        raise PatternError("a quotation \\Q without its \\E")
    return "".join(c if c.isalnum() or not c.isascii() else f"\\{c}" for c in quoted)


class _Reader:
    """One pass over a pattern, by Java's own rules."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._names: set[str] = set()
        self._ignores_case = False
        self._has_comments = False
        self._depth = 0

    def whole(self) -> Pattern:
        branches = self._branches()
        if self._peek():
            self._fail("unbalanced parenthesis")
        if self._has_comments and "#" in self._text:
            self._fail("a comment (flag x) would swallow what follows the pattern")
        return Pattern(Group(branches), self._ignores_case)

    # characters

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            self._fail("bad escape (end of pattern)")
        self._at += 1
        return character

    def _eat(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _fail(self, reason: str) -> NoReturn:
        raise PatternError(reason)

    def _go_down(self) -> None:
        self._depth += 1
        if self._depth > MAX_LEVELS:
            self._fail(f"nested deeper than {MAX_LEVELS} groups and sets")

    # groups and what they hold

    def _branches(self) -> tuple[tuple[Part, ...], ...]:
        self._go_down()
        branches = [self._sequence()]
        while self._eat("|"):
            branches.append(self._sequence())
        self._depth -= 1
        return tuple(branches)

    def _sequence(self) -> tuple[Part, ...]:
        parts: list[Part] = []
        while (character := self._peek()) and character not in "|)":
            if character in "*+?":
                self._fail(f"nothing for {character} to repeat")
            part = self._part()
            if part is not None:
                parts.append(self._repeated(part))
        return tuple(parts)

    def _part(self) -> Part | None:
        """The next part; None for flags, which can't be repeated."""
        if self._peek() == "{":
            return Place()  # Java lets a count stand alone
        character = self._take()
        if character == "(":
            return self._group()
        if character == "\\":
            return self._escaped()
        if character in "^$":
            return Place()
        return Characters(self._class() if character == "[" else _DOT if character == "." else frozenset(character))

    def _repeated(self, part: Part) -> Part:
        character = self._peek()
        if character == "{":
            least, most = self._count()
        elif character and character in "*+?":
            self._at += 1
            least, most = int(character == "+"), 1 if character == "?" else None
        else:
            return part
        is_possessive = self._eat("+")
        if not is_possessive:
            self._eat("?")
        return Repeat(part, least, most, is_possessive)

    def _count(self) -> tuple[int, int | None]:
        found = self._match(_COUNT)
        if found is None:
            self._fail("a { that is no count such as {2} or {2,5}; a literal one is written \\{")
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if max(least, most or 0) > _GREATEST_COUNT or (most is not None and most < least):
            self._fail(f"the count {found[0]} can't be")
        return least, most

    def _group(self) -> Part | None:
        is_atomic = is_look = False
        if self._eat("?"):
            if self._eat("<"):
                is_look = self._eat("=") or self._eat("!")
                if not is_look:
                    self._named()
            elif self._eat("=") or self._eat("!"):
                is_look = True
            elif self._eat(">"):
                is_atomic = True
            elif not self._eat(":") and self._flags():
                return None
        group = Group(self._branches(), is_atomic, is_look)
        if not self._eat(")"):
            self._fail("missing ), unterminated subpattern")
        return group

    def _named(self) -> None:
        name = self._match(_NAME)
        if name is None:
            self._fail("a group's name has letters and digits only and begins with a letter")
        if name[1] in self._names:
            self._fail(f"two groups have the name {name[1]}")
        self._names.add(name[1])

    def _flags(self) -> bool:
        """Flags for the rest of the pattern, or (False) for a group that begins behind them."""
        if not self._peek():
            self._fail("missing ), unterminated subpattern")
        flags = self._match(_FLAGS)
        if flags is None:
            self._fail(f"Java knows no group that begins with (?{self._peek()}")
        self._ignores_case |= "i" in flags[1]
        self._has_comments |= "x" in flags[1]
        return flags[2] == ")"

    # classes

    def _class(self) -> frozenset[str]:
        """What stands between the brackets, of which the first is read."""
        is_negated = self._eat("^")
        samples = self._class_items()
        self._eat("]")
        return SAMPLES - samples if is_negated else samples

    def _class_items(self) -> frozenset[str]:
        """The items up to the closing bracket; one that comes first is an item itself."""
        self._go_down()
        found: frozenset[str] | None = None
        while self._peek() != "]" or found is None:
            if not self._peek():
                self._fail("unterminated character set")
            if self._eat("&&"):
                found = self._intersection(found)
            else:
                found = (found or frozenset()) | (self._class() if self._eat("[") else self._range())
        self._depth -= 1
        return found

    def _intersection(self, left: frozenset[str] | None) -> frozenset[str]:
        right: frozenset[str] | None = None
        while self._peek() and self._peek() not in "]&":
            right = (right or frozenset()) | (self._class() if self._eat("[") else self._class_items())
        if left is None and right is None:
            self._fail("a && with nothing beside it")
        return right or frozenset() if left is None else left if right is None else left & right

    def _range(self) -> frozenset[str]:
        low = self._class_character()
        after = self._text[self._at + 1 : self._at + 2]
        if isinstance(low, frozenset) or self._peek() != "-" or after in {"", "[", "]"}:
            return low if isinstance(low, frozenset) else frozenset(low)
        self._at += 1
        high = self._class_character()
        if isinstance(high, frozenset) or high < low:
            self._fail("a range in a set that runs backwards or ends in a set")
        return frozenset(c for c in SAMPLES if low <= c <= high) | {low, high}

    def _class_character(self) -> str | frozenset[str]:
        character = self._take()
        found = self._escape() if character == "\\" else character
        if found is None:
            self._fail("an escape that means a place, a group or a line end can't stand in a set")
        return found

    # escapes

    def _escaped(self) -> Part:
        character = self._peek()
        if character and character in "123456789":
            self._at += 1
            return Place()
        if character == "k":
            self._at += 1
            self._reference()
            return Place()
        if character and character in "RX":
            self._at += 1
            return Group(((Characters(SAMPLES),), (Characters(SAMPLES),)))  # one character or several, as it fits
        found = self._escape()
        if found is None:
            if character == "b":
                self._eat("{g}")
            return Place()
        return Characters(found if isinstance(found, frozenset) else frozenset(found))

    def _reference(self) -> None:
        name = self._match(_NAME) if self._eat("<") else None
        if name is None or name[1] not in self._names:
            self._fail("\\k needs the name of a group before it, as \\k<name>")

    def _escape(self) -> str | frozenset[str] | None:
        """The character or the set that an escape stands for; None for a place. Its backslash is read."""
        character = self._take()
        if character in _PLACES or character in "123456789kRX":
            return None
        if character.lower() in _CLASSES:
            samples = _CLASSES[character.lower()]
            return samples if character.islower() else SAMPLES - samples
        if not (character.isascii() and character.isalnum()):
            return character
        return _CONTROLS.get(character) or self._spelt(character)

    def _spelt(self, character: str) -> str | frozenset[str]:
        """An escape that goes on: a code, a property or a name."""
        if character == "c":
            return chr(ord(self._take()) ^ 64)
        if character in "pP":
            samples = self._family()
            return samples if character == "p" else SAMPLES - samples
        found = self._match(_CODES[character]) if character in _CODES else None
        if found is None:
            self._fail(f"Java knows no escape \\{character} like this")
        if character == "N":
            return SAMPLES
        code = int(found[1] or found[2], 8 if character == "0" else 16)
        if code > _GREATEST_CHARACTER:
            self._fail(f"there is no character {found[0]}")
        return chr(code)

    def _family(self) -> frozenset[str]:
        """The samples of a Unicode property; where it can't be told, all."""
        found = self._match(_FAMILY)
        name = (found[1] or found[2]) if found else ""
        if name in _CATEGORIES:
            return frozenset(c for c in SAMPLES if unicodedata.category(c).startswith(name))
        if not (name in _POSIX or name.startswith(("Is", "In", "java")) or "=" in name):
            self._fail(f"Java knows no property {{{name}}}")
        return SAMPLES
