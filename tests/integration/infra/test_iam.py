"""Least privilege, on the policies as Terraform renders them: applied to moto, read back, judged one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.integration.infra.applied import PATIENCE_SECONDS, Applied
from tests.integration.infra.policies import WITHOUT_RESOURCE, Policy, faults, listed, policies_of, type_of

pytestmark = pytest.mark.timeout(PATIENCE_SECONDS)

# What all of a role's own policies may have together.
MOST_CHARACTERS = 10_240


@pytest.fixture(scope="module")
def policies(applied: Applied, storage: Applied) -> list[Policy]:
    return [*policies_of(applied.made), *policies_of(storage.made)]


def test_every_policy_that_is_planned_was_rendered(applied: Applied, storage: Applied, policies: list[Policy]) -> None:
    rendered = {policy.address for policy in policies}
    must = {"aws_iam_role", "aws_iam_role_policy", "aws_iam_policy", "aws_sns_topic_policy", "aws_s3_bucket_policy"}
    expected = {address for address in {*applied.planned, *storage.planned} if type_of(address) in must}
    assert expected <= rendered
    assert {type_of(address) for address in rendered} >= must - {"aws_iam_policy"} | {"aws_kms_key"}
    assert len([address for address in expected if ".aws_iam_role.function[" in address]) == 11


def test_no_policy_is_wider_than_aws_makes_it(policies: list[Policy]) -> None:
    assert [fault for policy in policies for fault in faults(policy)] == []


def test_every_exception_is_needed_by_somebody(policies: list[Policy]) -> None:
    used = {action for policy in policies for action in policy.actions}
    assert WITHOUT_RESOURCE.keys() <= used


def test_no_role_has_a_policy_that_others_write(applied: Applied) -> None:
    """AWS' own policies are wide, and grow without a word."""
    attached = {
        "aws_iam_role_policy_attachment",
        "aws_iam_policy_attachment",
        "aws_iam_role_policy_attachments_exclusive",
    }
    assert [address for address in applied.planned if type_of(address) in attached] == []


def test_what_a_role_may_do_fits_into_its_policy(applied: Applied) -> None:
    sizes = {
        address: len(json.dumps(json.loads(values["policy"]), separators=(",", ":")))
        for address, values in applied.made.items()
        if type_of(address) == "aws_iam_role_policy"
    }
    assert {address: size for address, size in sizes.items() if size > MOST_CHARACTERS} == {}


def _of_function(policies: list[Policy], function: str) -> Policy:
    address = f'module.compute.aws_iam_role_policy.function["{function}"]'
    return next(policy for policy in policies if policy.address == address)


def test_every_queue_that_a_policy_names_is_made(applied: Applied, policies: list[Policy]) -> None:
    made = {values["arn"] for address, values in applied.made.items() if type_of(address) == "aws_sqs_queue"}
    named = {
        resource
        for policy in policies
        for statement in policy.statements
        for resource in listed(statement.get("Resource", []))
        if resource.startswith("arn:aws:sqs:") and not resource.endswith("-*")  # any queue of the environment
    }
    assert len(made) == 3
    assert named == made


def test_only_the_circuit_breaker_turns_queues_off(policies: list[Policy]) -> None:
    able = [policy.address for policy in policies if "lambda:UpdateEventSourceMapping" in policy.actions]
    assert able == [_of_function(policies, "circuit_breaker").address]


def test_the_transform_may_do_nothing_but_log_and_trace(policies: list[Policy]) -> None:
    usual = {"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTraceSegments", "xray:PutTelemetryRecords"}
    assert _of_function(policies, "firehose_transform").actions == {*usual, "kms:Decrypt"}


def test_the_processor_of_messages_may_not_take_dead_letters(policies: list[Policy]) -> None:
    policy = _of_function(policies, "sqs_processor")
    denied = [statement for statement in policy.statements if statement["Effect"] == "Deny"]
    assert len(denied) == 1
    assert denied[0]["Resource"].endswith("-dlq")
    assert set(denied[0]["Action"]) == {"sqs:ReceiveMessage", "sqs:DeleteMessage"}


def test_who_only_looks_can_change_nothing(policies: list[Policy]) -> None:
    changing = ("Put", "Update", "Delete", "Create", "BatchWrite", "Send", "Publish", "GenerateDataKey")
    for function in ("check_schema", "fetch_active_topics", "get_all_checkpoints"):
        actions = {
            action for action in _of_function(policies, function).actions if action[:5] not in {"logs:", "xray:"}
        }
        assert [action for action in actions if action.partition(":")[2].startswith(changing)] == []


def test_only_jobs_read_the_key_of_hashes(policies: list[Policy]) -> None:
    able = {policy.address for policy in policies if "secretsmanager:GetSecretValue" in policy.actions}
    assert able == {"module.compute.aws_iam_role_policy.glue"}


# The judge itself


def _identity(**statement: Any) -> Policy:
    whole = {"Effect": "Allow", **statement}
    return Policy("module.x.aws_iam_role_policy.y", "identity", {"Statement": [whole]})


@pytest.mark.parametrize(
    "statement",
    [
        {"Action": "*", "Resource": "arn:aws:sqs:r:1:q"},
        {"Action": ["sqs:*"], "Resource": "arn:aws:sqs:r:1:q"},
        {"Action": "dynamodb:Get*", "Resource": "arn:aws:dynamodb:r:1:table/t"},
        {"Action": "sqs:SendMessage", "Resource": "*"},
        {"Action": "sqs:SendMessage", "Resource": "arn:aws:sqs:*:*:q"},
        {"Action": "sqs:SendMessage", "Resource": "arn:aws:sqs:r:1:*"},
        {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::*"},
        {"Action": "dynamodb:GetItem", "Resource": ["arn:aws:dynamodb:r:1:table/t", "arn:aws:dynamodb:r:1:table/*"]},
        {"Action": ["xray:PutTraceSegments", "s3:GetObject"], "Resource": "*"},
        {"NotAction": "iam:PassRole", "Resource": "arn:aws:sqs:r:1:q"},
        {"Action": "cloudwatch:PutMetricData", "Resource": "*"},
        {"Action": "lambda:UpdateEventSourceMapping", "Resource": "arn:aws:lambda:r:1:event-source-mapping:*"},
        {"Action": "kms:Decrypt", "Resource": "arn:aws:kms:r:1:key/k"},
    ],
)
def test_a_policy_that_is_too_wide_is_found(statement: Mapping[str, Any]) -> None:
    assert faults(_identity(**statement))


@pytest.mark.parametrize(
    "statement",
    [
        {"Action": ["xray:PutTraceSegments"], "Resource": "*"},
        {"Action": "s3:GetObject", "Resource": "arn:aws:s3:::lake/warehouse/db/*"},
        {"Effect": "Deny", "Action": "s3:*", "Resource": "*"},
        {
            "Action": "kms:Decrypt",
            "Resource": "arn:aws:kms:r:1:key/k",
            "Condition": {"StringEquals": {"kms:ViaService": "s3.r.amazonaws.com"}},
        },
    ],
)
def test_a_policy_that_is_narrow_enough_is_left_alone(statement: Mapping[str, Any]) -> None:
    assert faults(_identity(**statement)) == []


SOURCE = {"StringEquals": {"aws:SourceAccount": "1"}}


@pytest.mark.parametrize(
    ("principal", "condition", "is_good"),
    [
        ({"Service": "lambda.amazonaws.com"}, SOURCE, True),
        ({"Service": "glue.amazonaws.com"}, {}, True),
        ({"Service": "lambda.amazonaws.com"}, {}, False),
        ({"Service": ["lambda.amazonaws.com", "glue.amazonaws.com"]}, SOURCE, False),
        ({"AWS": "arn:aws:iam::1:root"}, SOURCE, False),
    ],
)
def test_a_role_is_for_one_service_that_says_for_whom_it_asks(
    principal: Mapping[str, Any], condition: Mapping[str, Any], is_good: bool
) -> None:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal, "Condition": condition}
    trust = Policy("module.x.aws_iam_role.y", "trust", {"Statement": statement})
    assert (faults(trust) == []) is is_good


def test_a_policy_of_a_thing_must_not_be_for_everybody() -> None:
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Principal": "*", "Resource": "arn:aws:sqs:r:1:q"}
    assert faults(Policy("module.x.aws_sqs_queue.y", "resource", {"Statement": [statement]}))
