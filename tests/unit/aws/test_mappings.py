"""Event source mappings."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from lean_ops.aws.mappings import QueueMapping, QueueMappings
from lean_ops.model.errors import TerminalError, TransientError

ID, OTHER_ID = "11111111-2222-3333-4444-555555555555", "66666666-2222-3333-4444-555555555555"
MAPPING = QueueMapping(ID, "arn:aws:sqs:eu-central-1:000000000000:lean-ops-dev-events", "Enabled", 20)


@pytest.fixture
def client() -> Any:
    return boto3.Session("key", "secret", region_name="eu-central-1").client("lambda")


def test_all_mappings_of_a_function_are_found_page_by_page(client: Any) -> None:
    whole = {"UUID": ID, "EventSourceArn": MAPPING.queue_arn, "State": "Enabled"}
    pages = [
        ({}, [{**whole, "ScalingConfig": {"MaximumConcurrency": 20}}], "next"),
        ({"Marker": "next"}, [{**whole, "UUID": OTHER_ID, "ProvisionedPollerConfig": {"MinimumPollers": 1}}], None),
    ]
    with Stubber(client) as stub:
        for asked, mappings, marker in pages:
            answer = {"EventSourceMappings": mappings, **({"NextMarker": marker} if marker else {})}
            stub.add_response("list_event_source_mappings", answer, {"FunctionName": "f", **asked})
        assert QueueMappings(client, "f").all() == [
            MAPPING,
            QueueMapping(OTHER_ID, MAPPING.queue_arn, "Enabled", is_provisioned=True),
        ]


@pytest.mark.parametrize("state", ["Creating", "Enabling", "Disabling", "Updating", "Deleting", ""])
def test_a_mapping_between_two_states_is_changing(state: str) -> None:
    assert QueueMapping("u", "arn", state).is_changing
    assert not MAPPING.is_changing
    assert not QueueMapping("u", "arn", "Disabled").is_changing


@pytest.mark.parametrize(
    ("mapping", "concurrency", "more"),
    [
        (MAPPING, 20, {}),
        (MAPPING, 2, {"ScalingConfig": {"MaximumConcurrency": 2}}),
        (MAPPING, None, {"ScalingConfig": {}}),
        (QueueMapping(ID, "arn", "Enabled", None, is_provisioned=True), 2, {}),
    ],
)
def test_a_switch_says_what_is_to_change(
    client: Any, mapping: QueueMapping, concurrency: int | None, more: dict[str, Any]
) -> None:
    with Stubber(client) as stub:
        stub.add_response("update_event_source_mapping", {}, {"UUID": ID, "Enabled": True, **more})
        QueueMappings(client, "f").switch(mapping, on=True, concurrency=concurrency)
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ResourceInUseException", TransientError),
        ("ResourceConflictException", TransientError),
        ("TooManyRequestsException", TransientError),
        ("AccessDeniedException", TerminalError),
        ("ResourceNotFoundException", TerminalError),
    ],
)
def test_a_switch_that_is_refused_says_for_how_long(client: Any, code: str, error: type[Exception]) -> None:
    with Stubber(client) as stub:
        stub.add_client_error("update_event_source_mapping", code)
        with pytest.raises(error, match="lean-ops-dev-events"):
            QueueMappings(client, "f").switch(MAPPING, on=False, concurrency=None)
