"""What the functions count, as CloudWatch reads it from their logs (EMF)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from lean_ops.aws.environment import Deployment

NAMESPACE: Final = "LeanOps"


def emit(service: str, deployment: Deployment, counts: Mapping[str, int], **dimensions: str) -> None:
    """Write counts under the deployment and further dimensions.

    Nothing is written for zero: of hundreds of topics each has its own metrics, and each is paid for while it is used.
    """
    some = {name: count for name, count in counts.items() if count}
    if not some:
        return
    metrics = EphemeralMetrics(namespace=NAMESPACE, service=service)
    for name, value in {"deployment": deployment.name, **dimensions}.items():
        metrics.add_dimension(name, value)
    for name, count in some.items():
        metrics.add_metric(name, MetricUnit.Count, count)
    metrics.flush_metrics()
