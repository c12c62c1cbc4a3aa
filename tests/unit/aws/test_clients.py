"""Clients that do not wait for ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest

from lean_ops.aws.clients import (
    BRIEF,
    ONE_ATTEMPT,
    USUAL,
    Limits,
    dynamodb_client,
    firehose_client,
    s3_client,
    sqs_client,
)


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "tests")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    # It keeps the credentials that it was first used with.
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


@pytest.mark.parametrize("make", [firehose_client, sqs_client, s3_client, dynamodb_client])
@pytest.mark.parametrize("limits", [USUAL, ONE_ATTEMPT, BRIEF])
def test_every_client_has_its_limits(make: Callable[..., Any], limits: Limits) -> None:
    config = make(limits).meta.config
    assert config.connect_timeout == limits.connect_seconds
    assert config.read_timeout == limits.read_seconds
    assert config.retries["total_max_attempts"] == limits.attempts


def test_who_sends_again_by_himself_has_a_client_that_does_not() -> None:
    assert firehose_client().meta.config.retries["total_max_attempts"] == 1
    assert sqs_client().meta.config.retries["total_max_attempts"] == 1


def test_the_longest_call_counts_every_attempt() -> None:
    assert Limits(1, 2, 2).attempt_seconds == 3
    assert Limits(1, 2, 2).call_seconds == 8
