"""Putting records to a Firehose stream, of which any part may be refused behind an HTTP 200."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.aws.faults import is_passing, told
from lean_ops.aws.sending import Refused, cut, send_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_firehose import FirehoseClient
    from mypy_boto3_firehose.type_defs import PutRecordBatchOutputTypeDef

    from lean_ops.aws.sending import Patience

MOST_RECORDS: Final = 500
# The service takes 4 MB of data; which of the two megabytes is meant, and what else counts, it does not say.
MOST_BYTES: Final = 3_900_000


@dataclass(frozen=True, slots=True)
class DeliveryStream:
    """A stream by its name."""

    client: FirehoseClient
    name: str

    def put(self, records: Sequence[bytes], patience: Patience) -> dict[int, str]:
        """Bring records into the stream; the positions of those that did not get there, with the reason.

        A record whose call timed out may have got there all the same and goes again: a copy is harmless, a loss not.
        """
        sizes = [len(record) for record in records]
        return send_all(
            len(records),
            lambda positions: cut(positions, sizes, MOST_RECORDS, MOST_BYTES),
            lambda batch: self._put_batch(batch, records),
            patience,
        )

    def _put_batch(self, batch: Sequence[int], records: Sequence[bytes]) -> Mapping[int, Refused]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self.client.put_record_batch(
                DeliveryStreamName=self.name, Records=[{"Data": records[position]} for position in batch]
            )
        except (BotoCoreError, ClientError) as error:
            return dict.fromkeys(batch, Refused(told(error), for_good=not is_passing(error)))
        return _refused(batch, answer)


def _refused(batch: Sequence[int], answer: PutRecordBatchOutputTypeDef) -> dict[int, Refused]:
    """What an answer says; if it contradicts itself nothing of the batch counts as taken."""
    if not answer["FailedPutCount"]:
        return {}
    answers = answer["RequestResponses"]
    refused = {
        position: Refused(f"{single['ErrorCode']}: {single.get('ErrorMessage', '')}"[:300])
        for position, single in zip(batch, answers, strict=False)
        if single.get("ErrorCode")
    }
    if len(answers) != len(batch) or len(refused) != answer["FailedPutCount"]:
        return dict.fromkeys(batch, Refused("the stream refused some records and did not say which"))
    return refused
