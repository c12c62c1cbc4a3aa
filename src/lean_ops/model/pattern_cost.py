"""What a pattern may cost Java: time without end, or a stack that ends the whole process.

Java tries every way in which a pattern can match. Where an inner repeat can swallow a whole round of the repeat
around it, or meets another one of the same characters, the ways double with each round of a text that does not match.
And a repeated group with choices in it takes a piece of the thread's stack per round: no error that could be caught
in a batch, but the end of its process.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeGuard

from lean_ops.model.pattern_tree import Characters, Group, Part, Place, Repeat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lean_ops.model.pattern_tree import Pattern

STACK_BYTES: Final = 16 * 1024 * 1024  # what lake/spark.py gives each thread of Java
# Measured on Java 17 before its compiler shortens frames; half of the stack is left to what calls the pattern.
_ROUND_BYTES: Final = 500
_PART_BYTES: Final = 250
_FEW_ROUNDS: Final = 10


def endless_repeat(pattern: Pattern) -> bool:
    """Whether a repeat stands in another one, and a text can be shared out between their rounds in many ways."""
    fold = pattern.ignores_case
    loops = (part for part in _parts(pattern.root) if _gives_back(part) and _rounds(part) >= _FEW_ROUNDS)
    return any(isinstance(loop.part, Group) and _is_ambiguous(loop.part, fold) for loop in loops)


def longest_value(pattern: Pattern) -> int | None:
    """The most characters that Java's stack bears with this pattern; None if they don't matter."""
    round_bytes = _ROUND_BYTES + _PART_BYTES * _weight(pattern.root)
    if _rounds_on_the_stack(pattern.root) * round_bytes <= STACK_BYTES // 2:
        return None
    return STACK_BYTES // 2 // round_bytes


def _weight(part: Part) -> int:
    """How many parts Java makes of a part, at the most; letters in a row are one."""
    if isinstance(part, Repeat):
        return _weight(part.part)
    if not isinstance(part, Group):
        return 1
    letters = [[isinstance(each, Characters) and len(each.samples) == 1 for each in branch] for branch in part.branches]
    in_rows = sum(one and other for branch in letters for one, other in pairwise(branch))
    return 1 + sum(_weight(each) for branch in part.branches for each in branch) - in_rows


def _rounds_on_the_stack(part: Part) -> float:
    """How many rounds may be open at one time: what follows a round is matched inside of it."""
    if isinstance(part, Group):
        return max(sum(map(_rounds_on_the_stack, branch)) for branch in part.branches)
    if not isinstance(part, Repeat):
        return 0
    inner = _rounds_on_the_stack(part.part)
    if _gives_back(part) and isinstance(part.part, Group) and _has_choices(part.part):
        return _rounds(part) * (1 + inner)
    return inner


def _parts(part: Part) -> Iterator[Part]:
    """A part and all parts inside it."""
    yield part
    if isinstance(part, Repeat):
        yield from _parts(part.part)
    elif isinstance(part, Group):
        for branch in part.branches:
            for inner in branch:
                yield from _parts(inner)


def _gives_back(part: Part) -> TypeGuard[Repeat]:
    return isinstance(part, Repeat) and not part.is_possessive and not _is_atomic(part.part)


def _is_atomic(part: Part) -> bool:
    return isinstance(part, Group) and part.is_atomic


def _rounds(part: Repeat) -> float:
    return float("inf") if part.most is None else part.most


def _has_choices(group: Group) -> bool:
    """Whether a round can go more than one way; Java thinks so of whatever gives nothing back, too."""
    inner = (part for part in _parts(group) if part is not group)
    return len(group.branches) > 1 or any(
        part.least != part.most if isinstance(part, Repeat) else len(part.branches) > 1 or part.is_atomic
        for part in inner
        if isinstance(part, Repeat | Group)
    )


def _is_ambiguous(group: Group, fold: bool) -> bool:
    """Whether rounds after each other can share a text between them in more ways than one."""
    return any(_meets_another(place, branch, fold) for branch in group.branches for place in range(len(branch))) or (
        _can_be_swallowed(group, fold)
    )


def _meets_another(place: int, branch: tuple[Part, ...], fold: bool) -> bool:
    """Whether a repeat is followed, also by way of the next round, by one that can match the same characters."""
    part = branch[place]
    if not _varies(part):
        return False
    own = _samples(part, fold)
    for following in (*branch[place + 1 :], *branch[: place + 1]):
        if _varies(following) and not own.isdisjoint(_samples(following, fold)):
            return True
        if not _may_be_empty(following):
            return False
    return False


def _varies(part: Part) -> TypeGuard[Repeat]:
    return _gives_back(part) and part.least != part.most


def _can_be_swallowed(group: Group, fold: bool) -> bool:
    return any(_swallows(inner, branch, fold) for branch in group.branches for inner in _inner_repeats(branch))


def _inner_repeats(branch: tuple[Part, ...]) -> Iterator[Repeat]:
    """The repeats of a sequence that may take more or less, also those of groups in it."""
    for part in branch:
        if isinstance(part, Repeat):
            if _varies(part) and _rounds(part) > 1:
                yield part
            if not part.is_possessive:
                yield from _inner_repeats((part.part,))
        elif isinstance(part, Group) and not part.is_atomic and not part.is_look:
            for inner in part.branches:
                yield from _inner_repeats(inner)


def _swallows(inner: Repeat, branch: tuple[Part, ...], fold: bool) -> bool:
    """Whether everything that a sequence must match can be matched by one of its repeats alone."""
    swallowed = _samples(inner, fold)
    return bool(swallowed) and all(
        _may_be_empty(part) or _has_part(part, inner) or not swallowed.isdisjoint(_samples(part, fold))
        for part in branch
    )


def _has_part(part: Part, inner: Repeat) -> bool:
    return any(each is inner for each in _parts(part))


def _may_be_empty(part: Part) -> bool:
    if isinstance(part, Repeat):
        return part.least == 0 or _may_be_empty(part.part)
    if isinstance(part, Group):
        return part.is_look or any(all(map(_may_be_empty, branch)) for branch in part.branches)
    return isinstance(part, Place)


def _samples(part: Part, fold: bool) -> frozenset[str]:
    """Every character that a part can begin, go on or end with."""
    found = frozenset().union(*(each.samples for each in _parts(part) if isinstance(each, Characters)))
    return frozenset(c.lower() for c in found) if fold else found
