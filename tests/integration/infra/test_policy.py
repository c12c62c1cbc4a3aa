"""Checkov's word on infra/, and that it is heard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.servers.checkov import INFRA, Verdict, judged
from tests.servers.supply import WITHOUT_SERVERS, cache_dir

from lean_ops.model.errors import TerminalError

BAD_GROUP = """
resource "aws_security_group" "open" {
  description = "Open to everybody."
  ingress {
    description = "ssh"
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}
"""
SKIPS = """
resource "aws_cloudwatch_log_group" "silent" {
  #checkov:skip=CKV_AWS_338
  #checkov:skip=CKV_AWS_158:because
  name = "silent"
}

resource "aws_cloudwatch_log_group" "told" {
  #checkov:skip=CKV_AWS_338:Its logs are worth nothing after a week.
  #checkov:skip=CKV_AWS_158:There is nothing in it that anybody may not see.
  #checkov:skip=CKV_AWS_18:A group of logs is not a bucket, but this says so.
  name              = "told"
  retention_in_days = 7
}
"""


def _judged(folder: Path) -> Verdict:
    try:
        return judged(folder, cache_dir())
    except TerminalError as error:
        if os.environ.get(WITHOUT_SERVERS) == "1":
            pytest.skip(f"{WITHOUT_SERVERS}=1 and {error}")
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "group.tf").write_text(BAD_GROUP, encoding="utf-8")
    (folder / "skips.tf").write_text(SKIPS, encoding="utf-8")
    (folder / "broken.tf").write_text('resource "aws_sqs_queue" {{{', encoding="utf-8")
    return _judged(folder)


def test_no_rule_fails_and_every_skipped_one_has_its_reason() -> None:
    verdict = _judged(INFRA)
    assert verdict.complaints == ()
    assert verdict.passed > 100


def test_a_rule_that_fails_is_told_with_its_place(bad: Verdict) -> None:
    assert any(said.startswith("group.tf:2-11 aws_security_group.open: CKV_AWS_24 ") for said in bad.complaints)


def test_a_skipped_rule_needs_a_reason(bad: Verdict) -> None:
    without = [said for said in bad.complaints if "without a reason" in said]
    assert [said.partition(" is skipped")[0] for said in without] == [
        "skips.tf:3: CKV_AWS_338",
        "skips.tf:4: CKV_AWS_158",
    ]


def test_a_skip_that_nothing_needs_is_told(bad: Verdict) -> None:
    idle = [said for said in bad.complaints if "nothing to skip" in said]
    assert [said.partition(" is skipped")[0] for said in idle] == ["skips.tf:11: CKV_AWS_18"]


def test_a_file_that_cannot_be_read_is_no_good_file(bad: Verdict) -> None:
    assert any("broken.tf" in said and "can't read" in said for said in bad.complaints)


def test_a_folder_where_nothing_was_looked_at_is_no_good_folder(tmp_path: Path) -> None:
    verdict = _judged(tmp_path)
    assert verdict.passed == 0
    assert len(verdict.complaints) == 1
