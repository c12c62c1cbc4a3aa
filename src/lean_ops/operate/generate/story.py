"""A topic's whole story: what it is sent, segment by segment, and what must become of all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from lean_ops.operate.generate.oracle import foretell
from lean_ops.operate.generate.plan import extended, no_rows
from lean_ops.operate.generate.render import Renderer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from lean_ops.operate.generate.family import Family
    from lean_ops.operate.generate.oracle import Foretold
    from lean_ops.operate.generate.plan import Rows, Segment
    from lean_ops.operate.generate.render import Chunk


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that go into one file: from `first` to below `last`."""

    file: str
    first: int
    last: int

    def split(self, count: int) -> list[Part]:
        """The same rows in several files, numbered."""
        if count == 1:
            return [self]
        stem, _, ending = self.file.rpartition(".")
        edges = [self.first + (self.last - self.first) * number // count for number in range(count + 1)]
        return [
            Part(f"{stem}-{number:0{len(str(count))}d}.{ending}", first, last)
            for number, (first, last) in enumerate(pairwise(edges), start=1)
        ]


@dataclass(frozen=True, slots=True)
class Story:
    """One topic; a story grows by segments and is never changed."""

    topic: str
    family: Family
    seed: int
    rows: Rows
    enhanced_from: int | None = None

    @classmethod
    def of(cls, topic: str, family: Family, seed: int) -> Story:
        """A story that has not begun."""
        return cls(topic, family, seed, no_rows())

    def with_segment(self, segment: Segment) -> Story:
        """The story up to the end of a further segment."""
        return replace(self, rows=extended(self.rows, segment, f"{self.seed}/{self.topic}"))

    def enhanced(self) -> Story:
        """The story from here on under the family's enhanced schema."""
        return replace(self, enhanced_from=len(self.rows))

    @property
    def renderer(self) -> Renderer:
        """What writes the rows."""
        return Renderer(self.topic, self.family, self.rows, self.seed, self.enhanced_from)

    def foretold(self, processed: int | None = None) -> Foretold:
        """What must become of all rows, once so many of them (all when None) are processed."""
        return foretell(self.rows, self.family, processed)

    def chunks(self, part: Part, foretold: Foretold) -> Iterator[Chunk]:
        """A part's bodies and fates, piece by piece."""
        return self.renderer.chunks(part.first, part.last, foretold, part.file)

    def part(self, before: int, file: str | None = None) -> Part:
        """All rows from a number on."""
        return Part(file or f"{self.topic}.jsonl", before, len(self.rows))


def write_part(story: Story, part: Part, foretold: Foretold, folder: Path, fates: BinaryIO) -> None:
    """A part's bodies into its file, and their fates to the end of another."""
    with (folder / part.file).open("wb") as bodies:
        for chunk in story.chunks(part, foretold):
            bodies.write(chunk.bodies)
            fates.write(chunk.fates)
