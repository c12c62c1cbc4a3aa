"""The page about costs says what the script computes, and the script counts what the state machine does."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
MASTER = ROOT / "infra" / "modules" / "orchestration" / "state_machines" / "master.asl.json"


@pytest.fixture(scope="module")
def costs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("costs", ROOT / "scripts" / "costs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_page_has_what_the_script_computes(costs: ModuleType) -> None:
    page = (ROOT / "docs" / "costs.md").read_text(encoding="utf-8")
    assert costs.in_document(page) == page, "python scripts/costs.py --write"


def test_a_page_without_a_tables_place_is_refused(costs: ModuleType) -> None:
    with pytest.raises(ValueError, match="prices"):
        costs.in_document("no place for tables")


def test_a_job_is_billed_for_a_minute_at_least_and_for_its_topics(costs: ModuleType) -> None:
    load, settings = costs.Load(topics=700), costs.Settings()
    assert costs.job_seconds(1, replace(load, messages_a_day=0), settings) >= 60
    assert costs.job_seconds(25, load, settings) < 2 * costs.job_seconds(1, load, settings)


def test_groups_save_most_of_what_jobs_cost(costs: ModuleType) -> None:
    load, settings = costs.Load(topics=700), costs.Settings()
    alone = costs.monthly(load, replace(settings, group_size=1))
    grouped = costs.monthly(load, settings)
    assert alone["Glue, runs"] > 15 * grouped["Glue, runs"]
    assert alone["Firehose"] == grouped["Firehose"]


def test_the_last_group_is_as_large_as_it_is(costs: ModuleType) -> None:
    settings = costs.Settings(group_size=25)
    one, more = (costs.monthly(costs.Load(topics=topics), settings)["Glue, runs"] for topics in (25, 26))
    assert one < more < 2 * one


def ways(states: dict[str, Any], name: str) -> set[str]:
    """Where a state may lead to when nothing fails."""
    state = states[name]
    choices = {choice["Next"] for choice in state.get("Choices", [])}
    return choices | {state[key] for key in ("Next", "Default") if key in state}


@pytest.mark.parametrize("part", ["RUN_STATES", "GROUP_STATES"])
def test_transitions_are_those_of_the_state_machine(costs: ModuleType, part: str) -> None:
    machine = json.loads(re.sub(r":\s*\$\{map_concurrency\}", ": 30", MASTER.read_text(encoding="utf-8")))
    if part == "GROUP_STATES":
        machine = machine["States"]["ProcessGroups"]["ItemProcessor"]
    states, way = machine["States"], getattr(costs, part)
    assert way[0] == machine["StartAt"]
    assert states[way[-1]]["Type"] == "Succeed"
    for state, following in pairwise(way):
        assert following in ways(states, state)
