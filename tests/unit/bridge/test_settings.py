from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from lean_ops.bridge.settings import BridgeSettings, load_bridge_settings
from lean_ops.model.errors import WrongUseError

GIVEN = {
    "LEAN_OPS_PROJECT": "lean-ops",
    "LEAN_OPS_ENVIRONMENT": "dev",
    "LEAN_OPS_ARCHIVE_BUCKET": "archive-bucket",
    "LEAN_OPS_BRIDGE_GCP_PROJECT": "events-project",
    "LEAN_OPS_BRIDGE_SUBSCRIPTION_PREFIX": "lean-ops-",
}


def test_the_least_that_must_be_said_is_enough() -> None:
    settings = load_bridge_settings({**GIVEN, "PATH": "/bin", "LEAN_OPS_SCHEMA_BUCKET": "other"})
    assert settings == BridgeSettings("lean-ops", "dev", "archive-bucket", "events-project", (), "lean-ops-")
    assert settings.deployment.queue("events_a") == "lean-ops-dev-events_a"
    assert settings.deployment.dead_letter_queue == "lean-ops-dev-dlq"
    with pytest.raises(FrozenInstanceError):
        settings.project = "other"  # type: ignore[misc]


def test_every_setting_has_its_variable() -> None:
    more = {
        "SUBSCRIPTIONS": "one-sub, two.sub,one-sub",
        "REFRESH_SECONDS": "60",
        "MAX_MESSAGES": "500",
        "MAX_BYTES": "2097152",
        "TOPIC_MESSAGES": "100",
        "TOPIC_BYTES": "1048576",
        "LINGER_SECONDS": "0.5",
        "SENDERS": "8",
        "SENDS_PER_TOPIC": "2",
        "SEND_ATTEMPTS": "3",
        "SEND_TIMEOUT_SECONDS": "2.5",
        "RETRY_SECONDS": "0.1",
        "RETRY_SECONDS_MAX": "1",
        "REST_SECONDS": "2",
        "REST_SECONDS_MAX": "30",
        "ACK_DEADLINE_SECONDS": "30",
        "SHUTDOWN_SECONDS": "5",
        "HTTP_HOST": "0.0.0.0",  # noqa: S104  a value, nothing listens
        "HTTP_PORT": "8080",
    }
    variables = {**GIVEN, **{f"LEAN_OPS_BRIDGE_{name}": value for name, value in more.items()}}
    del variables["LEAN_OPS_BRIDGE_SUBSCRIPTION_PREFIX"]
    settings = load_bridge_settings(variables)
    assert settings.subscriptions == ("one-sub", "two.sub")
    assert (settings.max_messages, settings.linger_seconds, settings.http_port) == (500, 0.5, 8080)
    untouched = BridgeSettings("lean-ops", "dev", "archive-bucket", "events-project")
    same = [name for name in more if getattr(settings, name.lower()) == getattr(untouched, name.lower())]
    assert same == []


@pytest.mark.parametrize(
    "missing",
    ["LEAN_OPS_PROJECT", "LEAN_OPS_ENVIRONMENT", "LEAN_OPS_ARCHIVE_BUCKET", "LEAN_OPS_BRIDGE_GCP_PROJECT"],
)
def test_what_is_missing_is_named(missing: str) -> None:
    for value in ({}, {missing: ""}):
        variables = {name: text for name, text in GIVEN.items() if name != missing}
        with pytest.raises(WrongUseError, match=missing):
            load_bridge_settings({**variables, **value})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LEAN_OPS_PROJECT", "Lean_Ops"),
        ("LEAN_OPS_ENVIRONMENT", "dev/../prod"),
        ("LEAN_OPS_ARCHIVE_BUCKET", "s3://bucket"),
        ("LEAN_OPS_BRIDGE_GCP_PROJECT", "projects/x"),
        ("LEAN_OPS_BRIDGE_SUBSCRIPTION_PREFIX", "a"),
        ("LEAN_OPS_BRIDGE_MAX_MESSAGES", "many"),
        ("LEAN_OPS_BRIDGE_MAX_MESSAGES", "0"),
        ("LEAN_OPS_BRIDGE_MAX_BYTES", "1.5"),
        ("LEAN_OPS_BRIDGE_LINGER_SECONDS", "nan"),
        ("LEAN_OPS_BRIDGE_SHUTDOWN_SECONDS", "inf"),
        ("LEAN_OPS_BRIDGE_SHUTDOWN_SECONDS", "-1"),
        ("LEAN_OPS_BRIDGE_ACK_DEADLINE_SECONDS", "5"),
        ("LEAN_OPS_BRIDGE_HTTP_PORT", "70000"),
        ("LEAN_OPS_BRIDGE_HTTP_HOST", "a b"),
    ],
)
def test_a_wrong_value_is_told_with_its_variable_and_what_is_allowed(variable: str, value: str) -> None:
    with pytest.raises(WrongUseError) as wrong:
        load_bridge_settings({**GIVEN, variable: value})
    assert wrong.value.where == variable
    assert wrong.value.found == repr(value)
    assert wrong.value.expected


def test_a_misspelt_setting_is_not_ignored() -> None:
    with pytest.raises(WrongUseError, match="LEAN_OPS_BRIDGE_MAX_MESAGES"):
        load_bridge_settings({**GIVEN, "LEAN_OPS_BRIDGE_MAX_MESAGES": "10"})


def test_subscriptions_are_chosen_in_one_way() -> None:
    with pytest.raises(WrongUseError, match="in one way"):
        load_bridge_settings({**GIVEN, "LEAN_OPS_BRIDGE_SUBSCRIPTIONS": "one-sub"})
    without = {name: value for name, value in GIVEN.items() if "PREFIX" not in name}
    with pytest.raises(WrongUseError, match="in one way"):
        load_bridge_settings(without)
