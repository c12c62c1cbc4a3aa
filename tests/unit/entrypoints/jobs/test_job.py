"""What a job is asked for, and how it says what failed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from lean_ops.entrypoints.jobs import job
from lean_ops.entrypoints.jobs.job import Order, in_words, ordered
from lean_ops.entrypoints.jobs.rebuild import rebuild_topics
from lean_ops.model.batch import Zone
from lean_ops.model.errors import WrongUseError


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], Order((), "aws")),
        (["--topics", "[]", "--profile", "embedded"], Order((), "embedded")),
        (["--topics", '["events", "orders", "events"]'], Order(("events", "orders"), "aws")),
        (["--topics", "events, orders"], Order(("events", "orders"), "aws")),
        (["--topics=events", "--JOB_NAME", "x", "--enable-metrics", "true"], Order(("events",), "aws")),
    ],
)
def test_arguments_are_topics_and_profile_and_those_of_others_are_left_alone(
    arguments: list[str], expected: Order
) -> None:
    assert ordered(arguments) == expected


@pytest.mark.parametrize("topics", ["[", "[1]", '["Bad Name!"]', "", "a,,b", '{"a": 1}', "[[]]"])
def test_topics_that_are_none_are_refused(topics: str) -> None:
    with pytest.raises(WrongUseError):
        ordered(["--topics", topics])


@pytest.mark.parametrize("arguments", [["--profile", "azure"], ["--topics"]])
def test_arguments_that_cant_be_understood_are_refused_without_leaving_the_process(arguments: list[str]) -> None:
    with pytest.raises(WrongUseError, match="argument"):
        ordered(arguments)


def test_a_few_failures_are_named_and_the_rest_counted() -> None:
    failed: list[dict[str, Any]] = [{"topic": f"t{number}", "reason": "x" * 1000} for number in range(7)]
    words = in_words(failed, 25)
    assert words.startswith("7 of 25 topics failed: t0: xxx")
    assert words.endswith("; and 2 more")
    assert len(words) < 1700


def test_wrong_use_ends_in_words_and_exit_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job, "log_to_stderr", lambda: None)
    with pytest.raises(SystemExit, match="list of topics"):
        job.main(Zone.CURATED, ["--topics", "["])
    monkeypatch.setattr(sys, "argv", ["curated", "--topics", "events"])
    with pytest.raises(SystemExit, match="the aws profile needs this setting"):
        job.main(Zone.CURATED)


def test_a_rebuild_of_no_topic_in_particular_is_wrong_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEAN_OPS_HOME", str(tmp_path))
    monkeypatch.setattr(job, "log_to_stderr", lambda: None)
    with pytest.raises(SystemExit, match="names no topic"):
        job.carry_out(rebuild_topics, ["--profile", "embedded"])


def test_a_good_end_is_no_exit_and_prints_one_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEAN_OPS_HOME", str(tmp_path))
    monkeypatch.setattr(job, "log_to_stderr", lambda: None)
    job.main(Zone.CURATED, ["--profile", "embedded"])
    assert capsys.readouterr().out == '{"run_id": null, "zone": "curated", "topics": [], "waiting": []}\n'
