"""What policies say, and what is wrong with them: pure functions over their JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

# Actions for which AWS knows no resource, so that "*" is all that can be said, with the reason.
WITHOUT_RESOURCE: Final = {
    "cloudwatch:PutMetricData": "CloudWatch has no resource for metrics; the namespace is a condition",
    "lambda:ListEventSourceMappings": "Lambda has no resource for this list",
    "logs:CreateLogDelivery": "the delivery of logs is set up for the account",
    "logs:DeleteLogDelivery": "the delivery of logs is set up for the account",
    "logs:DescribeLogGroups": "asked by Step Functions without naming a group",
    "logs:DescribeResourcePolicies": "resource policies of CloudWatch Logs belong to the account",
    "logs:GetLogDelivery": "the delivery of logs is set up for the account",
    "logs:ListLogDeliveries": "the delivery of logs is set up for the account",
    "logs:PutResourcePolicy": "resource policies of CloudWatch Logs belong to the account",
    "logs:UpdateLogDelivery": "the delivery of logs is set up for the account",
    "xray:GetSamplingRules": "X-Ray has no resource for its rules of sampling",
    "xray:GetSamplingTargets": "X-Ray has no resource for its rules of sampling",
    "xray:PutTelemetryRecords": "X-Ray has no resource for what is sent to it",
    "xray:PutTraceSegments": "X-Ray has no resource for what is sent to it",
}
# What must be said instead, where the resource says too little.
NEEDED_CONDITION: Final = {
    "cloudwatch:PutMetricData": "cloudwatch:namespace",
    "lambda:UpdateEventSourceMapping": "lambda:FunctionArn",
}
# Ids that nobody knows before the thing is made; a condition names it instead.
NAMED_BY_CONDITION: Final = frozenset({"lambda:UpdateEventSourceMapping"})
# Services that do not say for whom they take a role, with the reason why that is no danger.
SILENT_SERVICES: Final = {
    "glue.amazonaws.com": "Glue does not document source conditions; a role is passed to it in its own account only",
}
# A key's own policy can only speak of that key.
_POLICY_OF_ITSELF: Final = frozenset({"aws_kms_key", "aws_kms_key_policy"})
_TRUST: Final = "assume_role_policy"
POLICY_ATTRIBUTES: Final = frozenset({_TRUST, "policy", "policy_document", "access_policy"})
_SOURCE: Final = frozenset({"aws:sourceaccount", "aws:sourcearn"})
_OWNER: Final = _SOURCE | {"aws:sourceowner", "aws:principalaccount"}
_TYPE_OF_ID: Final = re.compile(r"[A-Za-z-]+[:/]")

Kind = Literal["trust", "identity", "resource", "own"]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy by the address of what it belongs to."""

    address: str
    kind: Kind
    document: Mapping[str, Any]

    @property
    def statements(self) -> list[Mapping[str, Any]]:
        """Its statements."""
        return listed(self.document["Statement"])

    @property
    def allowed(self) -> list[Mapping[str, Any]]:
        """Those that allow; a denial can't be too wide."""
        return [statement for statement in self.statements if statement["Effect"] == "Allow"]

    @property
    def actions(self) -> set[str]:
        """All that is allowed."""
        return {action for statement in self.allowed for action in listed(statement.get("Action", []))}


def policies_of(resources: Mapping[str, Mapping[str, Any]]) -> list[Policy]:
    """Every policy that resources carry, in whatever attribute."""
    return [
        Policy(address, _kind(address, attribute), document)
        for address, values in resources.items()
        for attribute, value in values.items()
        if (document := _document(value)) is not None
    ]


def _kind(address: str, attribute: str) -> Kind:
    if attribute == _TRUST:
        return "trust"
    kind = type_of(address)
    if kind in {"aws_iam_role_policy", "aws_iam_policy"}:
        return "identity"
    return "own" if kind in _POLICY_OF_ITSELF else "resource"


def type_of(address: str) -> str:
    """The resource's type, of an address such as module.compute.aws_iam_role.function["health"]."""
    return address.partition("[")[0].split(".")[-2]


def _document(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, str) or '"Statement"' not in value:
        return None
    document = json.loads(value)
    return document if isinstance(document, dict) else None


# judgement


def faults(policy: Policy) -> list[str]:
    """What is wrong with a policy; nothing if it is as narrow as AWS lets it be."""
    found = [fault for statement in policy.allowed for fault in _faults_of(policy.kind, statement)]
    if policy.kind == "trust":
        found += _faults_of_trust(policy)
    return [f"{policy.address}: {fault}" for fault in found]


def _faults_of(kind: Kind, statement: Mapping[str, Any]) -> Iterator[str]:
    if "NotAction" in statement or "NotResource" in statement or "NotPrincipal" in statement:
        yield f"allows all but something: {json.dumps(statement)}"
    actions = listed(statement.get("Action", []))
    yield from (f"action {action!r} is a pattern" for action in actions if "*" in action or "?" in action)
    yield from _missing_conditions(kind, actions, statement)
    if kind in {"identity", "resource"}:
        for resource in listed(statement.get("Resource", [])):
            yield from (f"{action} on {resource!r}" for action in actions if not _is_scoped(action, resource))
    if (
        kind in {"resource", "own"}
        and _is_anybody(statement.get("Principal"))
        and not _OWNER & _condition_keys(statement)
    ):
        yield "allows anybody"


def _missing_conditions(kind: Kind, actions: Iterable[str], statement: Mapping[str, Any]) -> Iterator[str]:
    conditions = _condition_keys(statement)
    for action in actions:
        needed = NEEDED_CONDITION.get(action)
        if needed and needed.lower() not in conditions:
            yield f"{action} without a condition on {needed}"
        by_whom = any(key == "kms:viaservice" or key.startswith("kms:encryptioncontext:") for key in conditions)
        if kind == "identity" and action.startswith("kms:") and not by_whom:
            yield f"{action} without a condition on the service or the context"


def _is_scoped(action: str, resource: str) -> bool:
    """Whether a resource names something: its account, if it has one, and at least the beginning of a name."""
    if resource == "*":
        return action in WITHOUT_RESOURCE
    parts = resource.split(":", 5)
    if len(parts) < 6 or any("*" in part for part in parts[:5]):
        return False
    name = _TYPE_OF_ID.sub("", parts[5], count=1)
    return not name.startswith("*") or action in NAMED_BY_CONDITION


def _faults_of_trust(policy: Policy) -> Iterator[str]:
    if len(policy.statements) != 1:
        yield f"{len(policy.statements)} statements, but one service takes a role"
    for statement in policy.allowed:
        if listed(statement.get("Action", [])) != ["sts:AssumeRole"]:
            yield f"allows {statement.get('Action')!r}"
        services = listed(statement["Principal"].get("Service", []))
        if set(statement["Principal"]) != {"Service"} or len(services) != 1:
            yield f"is taken by {statement['Principal']!r}, but one service takes a role"
        if not _SOURCE & _condition_keys(statement) and not set(services) <= SILENT_SERVICES.keys():
            yield "has no condition on the account or on who asks"


def _is_anybody(principal: Any) -> bool:
    values = principal.values() if isinstance(principal, Mapping) else [principal]
    return any("*" in listed(value) for value in values)


def _condition_keys(statement: Mapping[str, Any]) -> set[str]:
    return {key.lower() for test in statement.get("Condition", {}).values() for key in test}


def listed(value: Any) -> list[Any]:
    """What policies say of one or of many, always as many."""
    return value if isinstance(value, list) else [value]
