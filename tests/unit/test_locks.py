"""Packages that are added to the environment later must not take the place of those that it was made with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

LOCKS = Path(__file__).parents[2] / "lock"


def pins(name: str) -> dict[str, str]:
    text = (LOCKS / f"{name}.txt").read_text(encoding="utf-8")
    found = re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", text, re.MULTILINE)
    assert found
    return dict(found)


@pytest.mark.parametrize("added", ["bench", "soak"])
def test_what_is_added_has_the_versions_that_are_there(added: str) -> None:
    there = pins("dev")
    others = {
        name: (version, there[name]) for name, version in pins(added).items() if there.get(name, version) != version
    }
    assert others == {}
