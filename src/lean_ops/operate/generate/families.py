"""The families there are, and which of them a topic belongs to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.errors import TerminalError, WrongUseError
from lean_ops.operate.generate.events import EVENTS
from lean_ops.operate.generate.orders import ORDERS
from lean_ops.operate.generate.payments import PAYMENTS
from lean_ops.operate.generate.readings import READINGS

if TYPE_CHECKING:
    from lean_ops.operate.generate.family import Family

FAMILIES: Final = {family.name: family for family in (EVENTS, ORDERS, PAYMENTS, READINGS)}


def family_of(topic: str, number: int = 0, name: str | None = None) -> Family:
    """The family that is named, else that whose name the topic has in its own, else they take turns."""
    if name is not None:
        return _named(name)
    own = next((family for family in FAMILIES.values() if family.name in topic), None)
    return own or list(FAMILIES.values())[number % len(FAMILIES)]


def _named(name: str) -> Family:
    if name not in FAMILIES:
        raise WrongUseError("no such family", found=repr(name), expected=f"one of {', '.join(FAMILIES)}")
    return FAMILIES[name]


def example_schemas(package: Path = Path(__file__).parents[2]) -> Path:
    """The folder of the families' schema files: inside an installed package, else the repository's."""
    folders = (package / "examples", package.parents[1] / "schemas")
    for folder in folders:
        if all((folder / f"{name}.json").is_file() for name in FAMILIES):
            return folder
    raise TerminalError(
        "the example schemas are missing",
        expected=f"{', '.join(f'{name}.json' for name in FAMILIES)} in {folders[0]}",
        remedy="Install lean-ops again.",
    )


def schema_of(topic: str, family: Family, enhanced: bool = False) -> bytes:
    """The family's schema for a topic; the enhanced one declares a further column."""
    schema: dict[str, Any] = json.loads((example_schemas() / f"{family.name}.json").read_bytes())
    schema["table_name"] = topic
    if enhanced:
        schema["schema_version"] = "1.1.0"
        schema["payload_columns"][family.enhancement.column] = dict(family.enhancement.declaration)
    return json.dumps(schema, indent=2).encode() + b"\n"
