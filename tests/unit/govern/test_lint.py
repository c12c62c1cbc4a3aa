from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lean_ops.govern.lint import lint, read_schema_file
from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = b'{"schema_version": "1.0.0", "table_name": "t", "envelope_columns": {}, "payload_columns": {}}'


def put(file: Path, content: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def test_every_file_of_a_folder_is_checked_but_what_is_past_or_no_schema(tmp_path: Path) -> None:
    good, bad = put(tmp_path / "a.json", GOOD), put(tmp_path / "t" / "pending" / "schema.json", b"{}")
    active = put(tmp_path / "t" / "active" / "schema.json", GOOD)
    for past in ("t/failed/schema.json", "t/archive/1.0.0_x.json", "t/failed/error.json", "t/pending/request.json"):
        put(tmp_path / past, b"no schema")
    put(tmp_path / "t" / "pending" / ".schema.json.json", b"a file being written")
    findings = lint([tmp_path, good])
    assert [finding.file for finding in findings] == [good, active, bad]
    assert [finding.error is None for finding in findings] == [True, True, False]
    error = findings[2].error
    assert error is not None
    assert error.where == str(bad)
    assert [problem.path for problem in error.problems] == [
        "$.schema_version",
        "$.table_name",
        "$.envelope_columns",
        "$.payload_columns",
    ]


def test_a_named_file_is_checked_wherever_it_is(tmp_path: Path) -> None:
    file = put(tmp_path / "failed" / "schema.json", GOOD)
    assert [finding.file for finding in lint([file])] == [file]


@pytest.mark.parametrize("name", ["missing.json", "empty"])
def test_nothing_to_check_is_wrong_use(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(WrongUseError, match="there is no schema file; expected a JSON file, or a folder"):
        lint([tmp_path / name])


def test_a_file_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(WrongUseError, match="can't be read; found No such file"):
        read_schema_file(tmp_path / "missing.json")
