"""The state machines' templates, filled as Terraform's `templatefile` fills them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[2] / "infra" / "modules" / "orchestration" / "state_machines"
MACHINES: Final = ("master", "rebuilder", "maintenance")
FUNCTIONS: Final = ("fetch_active_topics", "check_schema", "ensure_table", "get_all_checkpoints", "health")
JOBS: Final = ("standardized", "curated", "rebuild", "maintenance")
VARIABLES: Final = frozenset(
    {
        *(f"{function}_arn" for function in FUNCTIONS),
        *(f"{job}_job" for job in JOBS),
        "alert_topic_arn",
        "state_machine_arn",
        "map_concurrency",
    }
)
# `$${` and `%%{` stand for themselves; `%{` would begin a directive, which no template has.
_MARKS: Final = re.compile(r"\$\$\{|%%\{|\$\{([^}]*)\}|%\{")


def template(machine: str) -> str:
    """The text of a template."""
    return (FOLDER / f"{machine}.asl.json").read_text(encoding="utf-8")


def render(machine: str, values: Mapping[str, str | int]) -> str:
    """A machine's definition; ValueError for a variable that Terraform does not give, or that is not given here."""
    return _MARKS.sub(lambda found: _filled(found, values), template(machine))


def _filled(found: re.Match[str], values: Mapping[str, str | int]) -> str:
    mark, name = found[0], found[1]
    if name is None and mark != "%{":
        return mark[1:]
    if name not in VARIABLES or name not in values:
        raise ValueError(f"{mark} is nothing that a template may ask for")
    return str(values[name])


def hastened(definition: str) -> str:
    """The same definition with the shortest pauses between attempts, for tests."""
    return json.dumps(_hastened(json.loads(definition)))


def _hastened(value: Any) -> Any:
    if isinstance(value, list):
        return [_hastened(one) for one in value]
    if isinstance(value, dict):
        quick = ("IntervalSeconds", "MaxDelaySeconds")
        return {name: 1 if name in quick else _hastened(one) for name, one in value.items()}
    return value
