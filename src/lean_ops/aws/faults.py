"""What a failed call to AWS means: whether the same call may succeed later, and how it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError

_PASSING: Final = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "KMSThrottlingException",
        "KmsThrottled",
        "LimitExceededException",
        "OverLimit",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
_TOO_MANY_REQUESTS: Final = 429
_SERVER_FAULT: Final = 500


def is_passing(error: ClientError | BotoCoreError) -> bool:
    """Whether the same call may succeed later: throttled, timed out, not connected, or the service's own fault."""
    from botocore.exceptions import ClientError, ConnectionError, HTTPClientError  # noqa: A004  botocore's name for it

    if not isinstance(error, ClientError):
        return isinstance(error, ConnectionError | HTTPClientError)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code_of(error) in _PASSING or status == _TOO_MANY_REQUESTS or status >= _SERVER_FAULT


def code_of(error: ClientError) -> str:
    """The service's word for an error, without the prefix of its protocol."""
    return error.response.get("Error", {}).get("Code", "").rpartition(".")[2]


def told(error: ClientError | BotoCoreError) -> str:
    """An error in one bounded line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
