"""What an account has: every service of the local AWS is asked for all that it keeps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.aws_local.stage import Stage

# A service, its call, the list in the answer and what names an item of it.
_ASKED = (
    ("lambda", "list_functions", "Functions", "FunctionName"),
    ("lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"),
    ("sqs", "list_queues", "QueueUrls", None),
    ("sns", "list_topics", "Topics", "TopicArn"),
    ("sns", "list_subscriptions", "Subscriptions", "SubscriptionArn"),
    ("firehose", "list_delivery_streams", "DeliveryStreamNames", None),
    ("dynamodb", "list_tables", "TableNames", None),
    ("glue", "get_databases", "DatabaseList", "Name"),
    ("glue", "get_jobs", "Jobs", "Name"),
    ("glue", "get_security_configurations", "SecurityConfigurations", "Name"),
    ("stepfunctions", "list_state_machines", "stateMachines", "name"),
    ("scheduler", "list_schedules", "Schedules", "Name"),
    ("scheduler", "list_schedule_groups", "ScheduleGroups", "Name"),
    ("events", "list_rules", "Rules", "Name"),
    ("iam", "list_roles", "Roles", "RoleName"),
    ("iam", "list_policies", "Policies", "PolicyName"),
    ("logs", "describe_log_groups", "logGroups", "logGroupName"),
    ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    ("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
)

# AWS has keys of its own for whoever names none; moto makes one for every table, before it hears of ours, and one for
# each of AWS' own aliases that somebody asks for.
_MADE_BY_MOTO = ("Default master key that protects my DynamoDB table storage", "Default key")


def everything(stage: Stage) -> dict[str, list[str]]:
    """Names of all that is there, by service and kind; what an account has from the first is left out."""
    found: dict[str, Iterable[Any]] = {}
    for service, call, listed, name in _ASKED:
        more = {"Scope": "Local"} if call == "list_policies" else {}
        items = getattr(stage.client(service), call)(**more).get(listed) or []
        found[f"{service} {listed}"] = [item if name is None else item[name] for item in items]
    found["kms Keys"] = _keys(stage.client("kms"))
    found["kms Aliases"] = [
        alias["AliasName"]
        for alias in stage.client("kms").list_aliases()["Aliases"]
        if not alias["AliasName"].startswith("alias/aws/")
    ]
    found["scheduler ScheduleGroups"] = [name for name in found["scheduler ScheduleGroups"] if name != "default"]
    return {kind: sorted(names) for kind, names in found.items()}


def _keys(kms: Any) -> list[str]:
    """Our keys that nobody has asked to delete: AWS keeps the others for 30 days."""
    found = [kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"] for key in kms.list_keys()["Keys"]]
    own = [key for key in found if key["Description"] not in _MADE_BY_MOTO]
    return [key["KeyId"] for key in own if key["KeyState"] != "PendingDeletion"]
