"""What moto lacks for Terraform and for many callers at once."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

import moto.sqs.models as sqs
from moto.core.responses import BaseResponse
from moto.core.utils import unix_time
from moto.sqs.models import Message, Queue, SQSBackend

# Two requests at once would find what neither has left, or a dict that changes while it is read. Only those that wait
# for what they start have to pass each other.
_MANY_AT_A_TIME: Final = frozenset({("awslambda", "Invoke")})
_MANY_SERVICES_AT_A_TIME: Final = frozenset({"stepfunctions"})
_ONE_AT_A_TIME: Final[dict[str | None, Any]] = {}
_INVOCATION: Final = "amz-sdk-invocation-id"
_CALLS_KEPT: Final = 1_000
_call_action: Final = BaseResponse.call_action
_set_attributes: Final = Queue._set_attributes
_attributes: Final = Queue.attributes.fget
_ALLOWED_SOURCES: Final = "RedriveAllowPolicy"


def install() -> None:
    """From now on, in this process."""
    BaseResponse.call_action = _call_action_once
    Queue._set_attributes = _set_attributes_and_keep
    Queue.BASE_ATTRIBUTES = [*Queue.BASE_ATTRIBUTES, _ALLOWED_SOURCES]
    Queue.redrive_allow_policy = None
    Queue.attributes = property(_attributes_as_sqs_spells)
    SQSBackend.is_message_valid_based_on_retention_period = _is_kept
    # It is asked for each message of a queue, whatever the queue is asked; moto makes two dates of each answer.
    sqs.unix_time_millis = lambda: time.time() * 1000


@dataclass
class _Call:
    """A call by its id: whoever has the lock is at work on it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    answer: Any = None


_calls: Final[OrderedDict[str, _Call]] = OrderedDict()
_calls_lock: Final = threading.Lock()


def _call_action_once(self: BaseResponse) -> Any:
    """The answer; a call whose answer got lost and that is tried again gets the same one.

    An SDK tries a call again under the same id, also while the first try is still at work. Without this a role or a
    function that was made would be refused as a second one.
    """
    invocation = self.headers.get(_INVOCATION)
    call = _Call() if invocation is None else _call_of(invocation)
    with call.lock:
        if call.answer is not None:
            return call.answer
        answer = _call_action_in_turn(self)
        if answer[0] < 300:
            call.answer = answer
        return answer


def _call_of(invocation: str) -> _Call:
    with _calls_lock:
        call = _calls.setdefault(invocation, _Call())
        while len(_calls) > _CALLS_KEPT:
            _calls.popitem(last=False)
        return call


def _call_action_in_turn(self: BaseResponse) -> Any:
    service = self.service_name
    if service in _MANY_SERVICES_AT_A_TIME or (service, self._get_action()) in _MANY_AT_A_TIME:
        return _call_action(self)
    with _ONE_AT_A_TIME.setdefault(service, threading.RLock()):
        return _call_action(self)


def _set_attributes_and_keep(self: Queue, attributes: dict[str, Any], now: float | None = None) -> None:
    """Set what is told and leave the rest; moto forgets a policy that is not told again."""
    kept = {"Policy": getattr(self, "policy", None)} if "Policy" not in attributes else {}
    _set_attributes(self, {**kept, **attributes}, now)


def _attributes_as_sqs_spells(self: Queue) -> dict[str, Any]:
    """The attributes; a redrive policy without blanks, which Terraform would take for a change."""
    found: dict[str, Any] = _attributes(self)
    if self.redrive_policy:
        found["RedrivePolicy"] = json.dumps(self.redrive_policy, separators=(",", ":"))
    return found


def _is_kept(self: SQSBackend, queue_name: str, message: Message) -> bool:
    """Whether a message is not too old; moto counts the whole queue nine times to find out, for each message."""
    kept_seconds = float(self.get_queue(queue_name).message_retention_period)
    return bool(unix_time() < message.sent_timestamp / 1000 + kept_seconds)
