"""The bridge's process: settings from the environment, the parts put together, an exit code.

0: it was told to end, and everything that it held was confirmed or given back. 1: it could not give all of it back in
time, or a fault ended it; Pub/Sub hands such messages out again. 2: its settings are wrong.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import uuid
from collections.abc import Mapping
from typing import Final

import structlog

from lean_ops.aws.calls import calling
from lean_ops.aws.clients import s3_client
from lean_ops.aws.letters import BucketBodies, LetterBox
from lean_ops.aws.topic_queues import TopicQueues, sqs_client
from lean_ops.bridge.bridge import Bridge, Pulse
from lean_ops.bridge.http_server import serving
from lean_ops.bridge.metrics import Metrics
from lean_ops.bridge.post import Post
from lean_ops.bridge.pubsub import PubSubSource
from lean_ops.bridge.settings import BridgeSettings, load_bridge_settings
from lean_ops.model.errors import LeanOpsError, WrongUseError

# A loop that has not turned for so long does nothing any more.
_STILL_SECONDS: Final = 30.0


def main() -> None:
    """Run until told to end."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stdout),
    )
    try:
        sys.exit(0 if asyncio.run(run(load_bridge_settings(os.environ), os.environ)) else 1)
    except LeanOpsError as error:
        structlog.get_logger().error("not_started", error=str(error))
        sys.exit(2 if isinstance(error, WrongUseError) else 1)


async def run(settings: BridgeSettings, environ: Mapping[str, str]) -> bool:
    """Bridge until SIGTERM or SIGINT; whether everything was confirmed or given back."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    metrics, pulse = Metrics(), Pulse(loop.time())
    source = _source(settings, environ)
    bridge = Bridge(settings, source, _post(settings), metrics, structlog.get_logger(), random.random, pulse)
    checks = {
        "/healthz": lambda: loop.time() - pulse.last_beat < _STILL_SECONDS,
        "/readyz": lambda: pulse.is_ready,
    }
    with serving(settings.http_host, settings.http_port, metrics.registry, checks) as port:
        structlog.get_logger().info("started", http_host=settings.http_host, http_port=port)
        try:
            return await bridge.run(stop)
        finally:
            await source.close()


def _source(settings: BridgeSettings, environ: Mapping[str, str]) -> PubSubSource:
    return PubSubSource(
        settings.gcp_project,
        settings.subscriptions,
        settings.subscription_prefix,
        settings.ack_deadline_seconds,
        str(uuid.uuid4()),
        environ.get("PUBSUB_EMULATOR_HOST") or None,
    )


def _post(settings: BridgeSettings) -> Post:
    with calling("settings of AWS"):
        client = sqs_client(settings.send_timeout_seconds, settings.senders)
        bodies = BucketBodies(s3_client(), settings.archive_bucket)
    letters = LetterBox(client, settings.deployment.dead_letter_queue, bodies)
    queues = TopicQueues(client, settings.deployment)
    return Post(queues, letters, settings.senders, settings.send_timeout_seconds, random.random)


if __name__ == "__main__":
    main()
