"""The bridge's settings: environment variables, read once, frozen; a wrong one is an error that names it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from lean_ops.aws.environment import ARCHIVE_BUCKET, ENVIRONMENT, PROJECT, Deployment
from lean_ops.model.errors import WrongUseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX: Final = "LEAN_OPS_BRIDGE_"
_MIB: Final = 1024 * 1024
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}").fullmatch
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]").fullmatch
_GCP_PROJECT: Final = re.compile(r"[a-z][a-z0-9.:-]{4,61}[a-z0-9]").fullmatch
_SUBSCRIPTION: Final = re.compile(r"[A-Za-z][A-Za-z0-9._~+%-]{2,254}").fullmatch
_HOST: Final = re.compile(r"[A-Za-z0-9.:-]{1,253}").fullmatch


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """Everything that the bridge can be told. `subscriptions` are short names; without any, the prefix chooses."""

    project: str
    environment: str
    archive_bucket: str
    gcp_project: str
    subscriptions: tuple[str, ...] = ()
    subscription_prefix: str = ""
    refresh_seconds: float = 300
    max_messages: int = 4000
    max_bytes: int = 128 * _MIB
    topic_messages: int = 1000
    topic_bytes: int = 32 * _MIB
    linger_seconds: float = 0.05
    senders: int = 32
    sends_per_topic: int = 4
    send_attempts: int = 5
    send_timeout_seconds: float = 10
    retry_seconds: float = 0.2
    retry_seconds_max: float = 5
    rest_seconds: float = 1
    rest_seconds_max: float = 60
    ack_deadline_seconds: int = 60
    shutdown_seconds: float = 25
    http_host: str = "127.0.0.1"
    http_port: int = 9090

    @property
    def deployment(self) -> Deployment:
        """The installation whose queues are filled."""
        return Deployment(self.project, self.environment)


@dataclass(frozen=True, slots=True)
class _Rule:
    """How a variable's text becomes a value, and what is allowed in words."""

    read: Callable[[str], Any]
    allowed: str


def _name(matches: Callable[[str], object], allowed: str) -> _Rule:
    def read(text: str) -> str:
        if not matches(text):
            raise ValueError
        return text

    return _Rule(read, allowed)


def _names(matches: Callable[[str], object], allowed: str) -> _Rule:
    def read(text: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        if not all(map(matches, names)):
            raise ValueError
        return names

    return _Rule(read, allowed)


def _whole(least: int, most: int) -> _Rule:
    def read(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise ValueError
        return value

    return _Rule(read, f"a whole number from {least} to {most}")


def _seconds(least: float, most: float) -> _Rule:
    def read(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError
        return value

    return _Rule(read, f"seconds, from {least:g} to {most:g}")


_RULES: Final[Mapping[str, _Rule]] = {
    "project": _name(_NAME, "small letters, digits and '-', at most 31, a letter first"),
    "environment": _name(_NAME, "small letters, digits and '-', at most 31, a letter first"),
    "archive_bucket": _name(_BUCKET, "the name of an S3 bucket"),
    "gcp_project": _name(_GCP_PROJECT, "the id of a Google Cloud project"),
    "subscriptions": _names(_SUBSCRIPTION, "names of subscriptions with ',' between them"),
    "subscription_prefix": _name(_SUBSCRIPTION, "how the names of the subscriptions begin, at least 3 characters"),
    "refresh_seconds": _seconds(1, 86_400),
    "max_messages": _whole(10, 1_000_000),
    "max_bytes": _whole(_MIB, 64 * 1024 * _MIB),
    "topic_messages": _whole(10, 1_000_000),
    "topic_bytes": _whole(_MIB, 64 * 1024 * _MIB),
    "linger_seconds": _seconds(0, 10),
    "senders": _whole(1, 512),
    "sends_per_topic": _whole(1, 64),
    "send_attempts": _whole(1, 20),
    "send_timeout_seconds": _seconds(0.1, 60),
    "retry_seconds": _seconds(0.01, 60),
    "retry_seconds_max": _seconds(0.01, 600),
    "rest_seconds": _seconds(0.01, 600),
    "rest_seconds_max": _seconds(0.01, 600),
    "ack_deadline_seconds": _whole(10, 600),
    "shutdown_seconds": _seconds(0, 600),
    "http_host": _name(_HOST, "an address to listen on, like 127.0.0.1 or 0.0.0.0"),
    "http_port": _whole(0, 65_535),
}
# The names that Lambdas and jobs of the same installation know too.
_SHARED: Final = {"project": PROJECT, "environment": ENVIRONMENT, "archive_bucket": ARCHIVE_BUCKET}


def load_bridge_settings(environ: Mapping[str, str]) -> BridgeSettings:
    """The settings that the environment holds."""
    _refuse_unknown(environ)
    given = {name: environ[variable] for name in _RULES if environ.get(variable := _variable(name))}
    _refuse_missing(given)
    return BridgeSettings(**{name: _value(name, text) for name, text in given.items()})


def _variable(name: str) -> str:
    return _SHARED.get(name, f"{PREFIX}{name.upper()}")


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = set(map(_variable, _RULES))
    for variable in environ:
        if variable.startswith(PREFIX) and variable not in known:
            raise WrongUseError("no such setting", where=variable, expected=f"one of {', '.join(sorted(known))}")


def _refuse_missing(given: Mapping[str, str]) -> None:
    required = [field.name for field in fields(BridgeSettings)][:4]
    for name in required:
        if name not in given:
            raise WrongUseError("this setting is missing", where=_variable(name), expected=_RULES[name].allowed)
    chosen = [_variable(name) for name in ("subscriptions", "subscription_prefix") if name in given]
    if len(chosen) != 1:
        raise WrongUseError(
            "which subscriptions to pull from must be said in one way",
            found=" and ".join(chosen) or "none",
            expected=f"{PREFIX}SUBSCRIPTIONS or {PREFIX}SUBSCRIPTION_PREFIX",
        )


def _value(name: str, text: str) -> Any:
    rule = _RULES[name]
    try:
        return rule.read(text)
    except ValueError:
        raise WrongUseError(
            "a value that can't be", where=_variable(name), found=repr(text), expected=rule.allowed
        ) from None
