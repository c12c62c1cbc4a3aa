"""Calls to DynamoDB: tried again while that can help, and what their errors mean. The only place that knows."""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from lean_ops.model.errors import LeanOpsError, TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

Answer = TypeVar("Answer")

_CANCELED: Final = "TransactionCanceledException"
_CONDITION_FAILED: Final = frozenset({"ConditionalCheckFailedException", "ConditionalCheckFailed"})
_PASSING: Final = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_NOT_ALLOWED: Final = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignatureException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "UnrecognizedClientException",
    }
)
_MISSING: Final = "Terraform's state module makes the tables; on a local server `create_tables` does."
_TOO_BUSY: Final = "Do the same again later; the table's throttled requests and conflicts are in CloudWatch."
_CREDENTIALS: Final = "Allow the caller's role what the message names, or give it credentials that are still valid."


class ConditionFailedError(Exception):
    """The write's own condition did not hold, so nothing was written; `item` is what is there, if it was asked for."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.item = item
        super().__init__("the condition of a write did not hold")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long something is tried again, with pauses that grow and differ from caller to caller."""

    seconds: float = 10
    first_pause: float = 0.02
    longest_pause: float = 1
    sleep: Callable[[float], None] = field(default=time.sleep)
    elapsed: Callable[[], float] = field(default=time.monotonic)
    share: Callable[[], float] = field(default=random.random)

    def tries(self) -> Iterator[int]:
        """Numbers of tries, from 1 on; the pause comes before the next one, the end when it would last too long."""
        end, pause, number = self.elapsed() + self.seconds, self.first_pause, 1
        while True:
            yield number
            wait = pause * self.share()
            if self.elapsed() + wait > end:
                return
            self.sleep(wait)
            pause, number = min(2 * pause, self.longest_pause), number + 1


def unique_id() -> str:
    """An id that nobody else has."""
    return uuid.uuid4().hex


class Dynamo:
    """A client whose calls are tried again while DynamoDB is busy; all else that goes wrong is one of our errors."""

    def __init__(
        self, client: DynamoDBClient, patience: Patience | None = None, new_id: Callable[[], str] = unique_id
    ) -> None:
        self._client = client
        self.patience = patience or Patience()
        self._new_id = new_id

    def do(self, table: str, call: Callable[[DynamoDBClient], Answer]) -> Answer:
        """The call's answer; ConditionFailedError if its condition did not hold."""
        tries, last = 0, None
        for number in self.patience.tries():
            try:
                return call(self._client)
            except ClientError as error:
                _refuse_what_stays(error, table)
                tries, last = number, error
            except BotoCoreError as error:
                raise _of_the_way_there(error, table) from error
        raise TransientError(
            f"DynamoDB is busy: {tries} tries in {self.patience.seconds:g} seconds were refused",
            where=_where(table),
            found=_words(last) if last else None,
            remedy=_TOO_BUSY,
        ) from last

    def transact(self, tables: str, items: Sequence[TransactWriteItemTypeDef]) -> None:
        """Write all or nothing, once, however often the answer gets lost on its way."""
        token = self._new_id()

        def write(client: DynamoDBClient) -> None:
            nonlocal token
            try:
                client.transact_write_items(TransactItems=items, ClientRequestToken=token)
            except ClientError as error:
                if _code(error) == _CANCELED:  # nothing was written, so the next try is another request
                    token = self._new_id()
                raise

        self.do(tables, write)


def _refuse_what_stays(error: ClientError, table: str) -> None:
    """Raise what a refusal means, unless it may pass by itself."""
    codes = _codes(error)
    if codes & _CONDITION_FAILED:
        response: Mapping[str, Any] = error.response
        raise ConditionFailedError(response.get("Item", {})) from error
    if not codes <= _PASSING and not _is_their_fault(error):
        raise _meaning(error, table) from error


def _meaning(error: ClientError, table: str) -> LeanOpsError:
    where, found, code = _where(table), _words(error), _code(error)
    if code == "ResourceNotFoundException":
        return TerminalError("there is no such table", where=where, found=found, remedy=_MISSING)
    if code in _NOT_ALLOWED:
        return TerminalError("DynamoDB does not allow this call", where=where, found=found, remedy=_CREDENTIALS)
    return TerminalError("DynamoDB refused the call", where=where, found=found)


def _of_the_way_there(error: BotoCoreError, table: str) -> LeanOpsError:
    """What it means that no answer came; the client has tried it again already."""
    if isinstance(error, NoConnectionError | HTTPClientError | IncompleteReadError):
        remedy = "Do the same again once the network is back."
        return TransientError("DynamoDB can't be reached", where=_where(table), found=str(error), remedy=remedy)
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return TerminalError("there are no credentials", where=_where(table), found=str(error), remedy=_CREDENTIALS)
    return TerminalError("the call can't be made", where=_where(table), found=str(error))


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _codes(error: ClientError) -> set[str]:
    """Why it was refused; of a canceled transaction, what each of its items that stood in the way says."""
    reasons: Sequence[Mapping[str, Any]] = error.response.get("CancellationReasons", [])
    return {str(reason.get("Code", "None")) for reason in reasons} - {"None"} or {_code(error)}


def _is_their_fault(error: ClientError) -> bool:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) >= 500


def _words(error: ClientError) -> str:
    details = error.response.get("Error", {})
    return f"{', '.join(sorted(_codes(error)))}: {details.get('Message') or 'without a message'}"


def _where(table: str) -> str:
    return f"DynamoDB table {table}"
