"""Event source mappings: whether and how fast a queue is read by its function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lean_ops.aws.calls import calling
from lean_ops.aws.faults import code_of
from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_lambda.type_defs import (
        EventSourceMappingConfigurationTypeDef,
        UpdateEventSourceMappingRequestTypeDef,
    )

ON: Final = "Enabled"
OFF: Final = "Disabled"


@dataclass(frozen=True, slots=True)
class QueueMapping:
    """A mapping as it was seen; `concurrency` is its limit, if it has one."""

    mapping_id: str
    queue_arn: str
    state: str
    concurrency: int | None = None
    is_provisioned: bool = False

    @property
    def is_changing(self) -> bool:
        """Whether a change is under way, during which it takes no other."""
        return self.state not in {ON, OFF}


@dataclass(frozen=True, slots=True)
class QueueMappings:
    """The mappings of one function."""

    client: LambdaClient
    function: str

    def all(self) -> list[QueueMapping]:
        """Every queue that the function reads."""
        with calling(f"mappings of function {self.function}"):
            pages = self.client.get_paginator("list_event_source_mappings").paginate(FunctionName=self.function)
            return [_seen(mapping) for page in pages for mapping in page["EventSourceMappings"]]

    def switch(self, mapping: QueueMapping, *, on: bool, concurrency: int | None) -> None:
        """Turn a mapping on or off, with a limit; TransientError while another change is under way.

        One with provisioned pollers has no such limit and keeps what it has.
        """
        from botocore.exceptions import ClientError

        change: UpdateEventSourceMappingRequestTypeDef = {"UUID": mapping.mapping_id, "Enabled": on}
        if not mapping.is_provisioned and concurrency != mapping.concurrency:
            change["ScalingConfig"] = {} if concurrency is None else {"MaximumConcurrency": concurrency}
        where = f"mapping {mapping.mapping_id} of {mapping.queue_arn}"
        with calling(where):
            try:
                self.client.update_event_source_mapping(**change)
            except ClientError as error:
                if code_of(error) in {"ResourceInUseException", "ResourceConflictException"}:
                    raise TransientError("another change is under way", where=where) from error
                raise


def _seen(mapping: EventSourceMappingConfigurationTypeDef) -> QueueMapping:
    return QueueMapping(
        mapping["UUID"],
        mapping.get("EventSourceArn", ""),
        mapping.get("State", ""),
        (mapping.get("ScalingConfig") or {}).get("MaximumConcurrency"),
        bool(mapping.get("ProvisionedPollerConfig")),
    )
