"""What an error of a call means."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from tests.unit.aws.scenes import client_error

from lean_ops.aws.faults import code_of, is_passing, told

ADDRESS = {"endpoint_url": "http://127.0.0.1"}


@pytest.mark.parametrize(
    "error",
    [
        client_error("ThrottlingException"),
        client_error("com.amazonaws.sqs.RequestThrottled"),
        client_error("ServiceUnavailableException", 503),
        client_error("Whatever", 502),
        client_error("Whatever", 429),
        ReadTimeoutError(**ADDRESS),
        ConnectTimeoutError(**ADDRESS),
        EndpointConnectionError(**ADDRESS),
        ConnectionClosedError(**ADDRESS),
    ],
)
def test_a_fault_of_the_service_or_of_the_way_there_passes(error: BotoCoreError) -> None:
    assert is_passing(error)


@pytest.mark.parametrize(
    "error",
    [
        client_error("AccessDeniedException", 403),
        client_error("ResourceNotFoundException"),
        client_error("InvalidArgumentException"),
        NoCredentialsError(),
    ],
)
def test_a_fault_of_ours_stays(error: BotoCoreError) -> None:
    assert not is_passing(error)


def test_an_error_is_told_in_one_short_line() -> None:
    words = told(client_error(f"A\nB{'x' * 999}"))
    assert "\n" not in words
    assert len(words) <= 300


def test_a_code_has_no_prefix_of_its_protocol() -> None:
    assert code_of(client_error("AWS.SimpleQueueService.NonExistentQueue")) == "NonExistentQueue"
