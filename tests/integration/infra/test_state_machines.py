"""asl-validator's word on the state machines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.aws_local.state_machines import MACHINES, VARIABLES, render
from tests.servers.asl import complaints
from tests.servers.supply import WITHOUT_SERVERS, cache_dir

from lean_ops.model.errors import TerminalError

VALUES: dict[str, str | int] = {
    **{name: f"arn:aws:lambda:eu-central-1:123456789012:function:{name}" for name in VARIABLES},
    "map_concurrency": 30,
}


def _complaints(definition: str, folder: Path) -> str:
    file = folder / "definition.json"
    file.write_text(definition, encoding="utf-8")
    try:
        return complaints(file, cache_dir())
    except TerminalError as error:
        if os.environ.get(WITHOUT_SERVERS) == "1":
            pytest.skip(f"{WITHOUT_SERVERS}=1 and {error}")
        pytest.fail(str(error), pytrace=False)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_definition_is_valid(machine: str, tmp_path: Path) -> None:
    assert _complaints(render(machine, VALUES), tmp_path) == ""


def test_a_definition_that_leads_nowhere_is_not(tmp_path: Path) -> None:
    definition = json.loads(render("master", VALUES))
    definition["States"]["AnyGroups"]["Default"] = "Nowhere"

    assert "Nowhere" in _complaints(json.dumps(definition), tmp_path)
