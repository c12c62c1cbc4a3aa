"""What a failed call to Pub/Sub means: whether the same call may succeed later, and how it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from google.api_core import exceptions
from google.auth.exceptions import GoogleAuthError

from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Awaitable

_Answer = TypeVar("_Answer")
_PASSING: Final = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.UNKNOWN,
    }
)
# Of these the client itself makes the same call again. A call that was cancelled is not among them: we did that.
WORTH_ANOTHER_CALL: Final = (
    exceptions.Aborted,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ResourceExhausted,
    exceptions.ServiceUnavailable,
    exceptions.Unknown,
)
_REMEDIES: Final = {
    grpc.StatusCode.NOT_FOUND: "Make the subscription, or leave it out of the bridge's settings.",
    grpc.StatusCode.PERMISSION_DENIED: "Give the bridge's service account the roles that docs/bridge.md names.",
    grpc.StatusCode.UNAUTHENTICATED: "Look at the bridge's credentials; docs/bridge.md says how it gets them.",
}
FAULTS: Final = (grpc.RpcError, exceptions.GoogleAPICallError, exceptions.RetryError, GoogleAuthError)


def error_of(where: str, error: Exception) -> LeanOpsError:
    """A failed call in our words."""
    found = " ".join(f"{type(error).__name__}: {_detail(error)}".split())[:300]
    if isinstance(error, GoogleAuthError):
        if getattr(error, "retryable", False):
            return TransientError("Google's credentials can't be had", where=where, found=found)
        remedy = _REMEDIES[grpc.StatusCode.UNAUTHENTICATED]
        return TerminalError("Google's credentials can't be had", where=where, found=found, remedy=remedy)
    code = _code(error)
    if code is None or code in _PASSING:
        return TransientError("Pub/Sub can't be reached", where=where, found=found)
    return TerminalError("Pub/Sub refused", where=where, found=found, remedy=_REMEDIES.get(code))


async def answered(where: str, call: Awaitable[_Answer]) -> _Answer:
    """A call's answer; its fault in our words."""
    try:
        return await call
    except FAULTS as error:
        raise error_of(where, error) from error


def _code(error: Exception) -> grpc.StatusCode | None:
    if isinstance(error, exceptions.RetryError):  # the time for tries is over; what they failed of was passing
        return None
    if isinstance(error, exceptions.GoogleAPICallError):
        return error.grpc_status_code
    return error.code() if isinstance(error, grpc.Call | grpc.aio.AioRpcError) else None


def _detail(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"{error.code().name}: {error.details()}"
    return str(error)
