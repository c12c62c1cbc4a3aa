"""The events are what the docs say they are, and their leaves are what their payloads hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.data import LEAVES, Events, schema_text, write_bodies

from lean_ops.model.schema import parse_schema

EVENTS = list(Events(2000, seed=5))


def leaves_of(members: dict[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in members.items():
        if isinstance(value, dict):
            found |= leaves_of(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return found


def no_constant(text: str) -> None:
    raise ValueError(text)


def test_the_leaves_are_those_of_the_payload_or_it_is_no_json() -> None:
    for event in EVENTS:
        try:
            members = json.loads(event.payload, parse_float=str, parse_int=str, parse_constant=no_constant)
        except ValueError:
            assert event.leaves is None, event.payload
        else:
            assert event.leaves == leaves_of(members)


def test_sizes_and_rates_are_as_promised() -> None:
    right = [event for event in EVENTS if event.leaves is not None]
    assert 0.02 < 1 - len(right) / len(EVENTS) < 0.04
    assert 0.08 < sum(any(leaf.startswith("ext.") for leaf in event.leaves) for event in right) / len(right) < 0.12
    assert 740 < sum(len(event.payload.encode()) for event in EVENTS) / len(EVENTS) < 800
    assert len(LEAVES) == 31


def test_the_same_seed_makes_the_same_bytes_and_another_does_not(tmp_path: Path) -> None:
    files = [
        write_bodies(Events(50, seed), tmp_path / f"{number}.jsonl").read_bytes()
        for number, seed in enumerate((1, 1, 2))
    ]
    assert files[0] == files[1] != files[2]
    assert all(json.loads(line).keys() >= {"message_id", "publish_time", "payload"} for line in files[0].splitlines())


def test_the_schema_declares_28_columns_and_is_a_schema() -> None:
    assert len(parse_schema(schema_text("shop"), "shop").payload_columns) == 28
