"""The commands in this process: what they print and with which code they leave. History and tables are kept aside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lean_ops.entrypoints.cli import main
from lean_ops.wiring import Services

EXAMPLES = Path(__file__).parents[3] / "schemas"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    written: list[Any] = []
    monkeypatch.setattr(Services, "_record_schema_version", lambda _, row: written.append(row))
    return written


@pytest.fixture
def run(
    tmp_path: Path, rows: list[Any], tables: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    assert rows == []
    monkeypatch.setattr(Services, "schema_tables", tables)

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(["--home", str(tmp_path / "home"), *map(str, arguments)])
        out = capsys.readouterr()
        return int(caught.value.code or 0), out.out, out.err

    return call


def edited(tmp_path: Path, **keys: Any) -> Path:
    file = tmp_path / "edited.json"
    file.write_text(json.dumps({**json.loads((EXAMPLES / "events.json").read_text()), **keys}))
    return file


def test_lint_of_the_examples(run: Run) -> None:
    assert run("schema", "lint", EXAMPLES) == (0, "4 schema files, 0 with problems\n", "")


def test_lint_tells_file_path_and_what_is_allowed(run: Run, tmp_path: Path) -> None:
    file = edited(tmp_path, schema_version="1")
    code, out, err = run("schema", "lint", file, EXAMPLES)
    assert (code, out) == (1, "5 schema files, 1 with problems\n")
    assert err == (f'{file}: 1 problem\n  $.schema_version: wrong value; found "1"; expected a version as 1.0.0\n')
    code, out, _ = run("schema", "lint", file, "--json")
    assert code == 1
    assert json.loads(out) == {
        "files": [str(file)],
        "problems": [
            {
                "file": str(file),
                "path": "$.schema_version",
                "found": '"1"',
                "expected": "a version as 1.0.0",
                "message": "wrong value",
            }
        ],
    }


def test_submit_then_list_and_show(run: Run, rows: list[Any], tables: Any) -> None:
    assert run("schema", "submit", "events", EXAMPLES / "events.json") == (
        0,
        "schema 1.0.0 of events is active (NEW)\n",
        "",
    )
    assert [(row["topic_name"], row["schema_version"]) for row in rows] == [("events", "1.0.0")]
    assert tables.made_for == ["1.0.0"]
    code, out, _ = run("schema", "list", "--json")
    assert code == 0
    assert json.loads(out) == [
        {
            "topic": "events",
            "status": "READY",
            "flow": "ENABLED",
            "flow_reason": None,
            "version": "1.0.0",
            "columns": 8,
            "zones": ["standardized", "curated"],
            "last_error": None,
        }
    ]
    code, out, _ = run("schema", "show", "events", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["schema"] == json.loads((EXAMPLES / "events.json").read_text())
    assert (document["status"], document["processing_enabled"]) == ("READY", True)
    code, out, _ = run("schema", "show", "events")
    assert code == 0
    assert out.startswith("events: READY, flow ENABLED\nschema 1.0.0, zones standardized and curated, newest by event_")


def test_submit_shows_what_changed(run: Run, tmp_path: Path) -> None:
    run("schema", "submit", "events", EXAMPLES / "events.json")
    file = edited(tmp_path, schema_version="1.1.0", description="other")
    code, out, _ = run("schema", "submit", "events", file)
    assert code == 0
    assert out.splitlines()[0] == "schema 1.1.0 of events is active (COMPATIBLE)"
    assert out.splitlines()[1].startswith("  $.description: description changed (What users do")
    assert run("schema", "submit", "events", file)[1] == "schema 1.1.0 of events is active already; nothing changed\n"


def test_a_refused_submission_leaves_with_1(run: Run, tmp_path: Path) -> None:
    run("schema", "submit", "events", EXAMPLES / "events.json")
    file = edited(tmp_path, schema_version="1.1.0", payload_columns={}, version_column=None)
    code, out, err = run("schema", "submit", "events", file)
    assert (code, out) == (1, "")
    assert "$.payload_columns.user_id: breaks the active schema: column removed; found none; expected STRING\n" in err
    assert "The active schema stays in force." in err
    code, out, _ = run("schema", "submit", "events", file, "--json")
    document = json.loads(out)
    assert code == 1
    assert (document["topic"], document["activated"], len(document["problems"])) == ("events", False, 9)
    assert "last refused schema: $.version_column: breaks" in run("schema", "show", "events")[1]


def test_wrong_use_leaves_with_2(run: Run, tmp_path: Path) -> None:
    assert run("schema", "submit", "events", tmp_path / "missing.json")[0] == 2
    assert run("schema", "submit", "dlq", EXAMPLES / "events.json")[0] == 2
    assert run("schema", "lint", tmp_path / "missing")[0] == 2
    assert run("schema", "show", "events")[0] == 2
    assert run("schema", "enable", "events")[0] == 2
    assert run("pause", "events")[0] == 2


def test_pause_resume_disable_enable(run: Run) -> None:
    run("schema", "submit", "events", EXAMPLES / "events.json")
    assert run("pause", "events", "--reason", "[night]")[:2] == (0, "events: READY, flow PAUSED: [night]\n")
    assert run("resume", "events")[:2] == (0, "events: READY, flow ENABLED\n")
    assert run("schema", "disable", "events")[:2] == (0, "events: DISABLED, flow ENABLED\n")
    code, out, _ = run("schema", "enable", "events", "--json")
    assert (code, json.loads(out)["status"]) == (0, "READY")
