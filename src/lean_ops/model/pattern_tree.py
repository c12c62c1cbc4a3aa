"""A regular expression as a tree of what it repeats.

Characters are stood for by samples: all of ASCII and a few from beyond, enough to tell which parts of a pattern can
match the same text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

SAMPLES: Final = frozenset({*map(chr, range(128)), "é", "ß", "日", "\u00a0", "\u0085", "\u2028", "😀"})


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of some."""

    samples: frozenset[str]


@dataclass(frozen=True, slots=True)
class Place:
    """Nothing but a place in the text, or an earlier group's text again."""


@dataclass(frozen=True, slots=True)
class Group:
    """Branches, each a sequence; an atomic one never gives back what it took, a look only looks."""

    branches: tuple[tuple[Part, ...], ...]
    is_atomic: bool = False
    is_look: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part again and again; `most` of None is without end. A possessive one never gives back what it took."""

    part: Part
    least: int
    most: int | None
    is_possessive: bool


Part: TypeAlias = Characters | Place | Group | Repeat


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as a tree."""

    root: Group
    ignores_case: bool
