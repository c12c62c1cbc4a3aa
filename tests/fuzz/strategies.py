"""Inputs for properties: seeds of the fuzzer with pieces put in, cut out or replaced, and any bytes."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.fuzz.seeds import SEEDS, WORDS


@st.composite
def changed_seeds(draw: st.DrawFn, target: str) -> bytes:
    """A seed of a target after a few changes, each likely to matter."""
    data = draw(st.sampled_from(SEEDS[target]))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = at + draw(st.integers(0, 12))
        data = data[:at] + draw(st.sampled_from(WORDS[target]) | st.binary(max_size=2)) + data[end:]
    return data


def inputs_of(target: str) -> st.SearchStrategy[bytes]:
    """Inputs of a target: near its seeds, made of its words, or anything."""
    words = st.lists(st.sampled_from(WORDS[target]) | st.binary(max_size=1), max_size=20).map(b"".join)
    return changed_seeds(target) | words | st.binary(max_size=60)
