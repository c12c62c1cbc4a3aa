"""What the bridge counts, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lean_ops.bridge.parcel import Parcel

_NAMESPACE: Final = "lean_ops_bridge"
_TOPIC: Final = ("topic",)
_LATENCIES: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SENDER: Final = "sender"
RECEIVER: Final = "receiver"


class Metrics:
    """All counters of a process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.received = self._counter("received", "Messages that Pub/Sub handed over, copies included.")
        self.received_bytes = self._counter("received_bytes", "Bytes of their queue bodies.")
        self.sent = self._counter("sent", "Messages that a queue confirmed.")
        self.sent_bytes = self._counter("sent_bytes", "Bytes of the messages that a queue confirmed.")
        self.oversized = self._counter("oversized", "Messages too large for a queue, sent to the dead letters.")
        self.refused = self._counter("refused", "Messages that a queue refused, by whose fault it is.", ("fault",))
        self.acked = self._counter("acked", "Messages acknowledged to Pub/Sub.")
        self.nacked = self._counter("nacked", "Messages given back to Pub/Sub, to come again.")
        self.unsettled = self._counter("unsettled", "Messages whose acknowledgement or return failed; they come again.")
        self.rests = self._counter("rests", "Times that a topic had to wait, by reason.", ("reason",))
        self.held = self._gauge("in_flight", "Messages that the bridge has and has not settled.")
        self.up = self._gauge("topic_up", "1 while a topic's messages flow, 0 while it waits.")
        self.latency = Histogram(
            "delivery_seconds",
            "From the arrival of a message to the queue's confirmation.",
            _TOPIC,
            namespace=_NAMESPACE,
            registry=self.registry,
            buckets=_LATENCIES,
        )
        self.refused_subscriptions = Gauge(
            "refused_subscriptions",
            "Subscriptions that can't be brought to a queue.",
            namespace=_NAMESPACE,
            registry=self.registry,
        )

    def of_topic(self, topic: str) -> TopicMetrics:
        """The counters of one topic."""
        return TopicMetrics(self, topic)

    def forget(self, topic: str) -> None:
        """A topic that is not bridged any more neither flows nor waits."""
        self.up.remove(topic)

    def _counter(self, name: str, text: str, more_labels: Sequence[str] = ()) -> Counter:
        return Counter(name, text, (*_TOPIC, *more_labels), namespace=_NAMESPACE, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, _TOPIC, namespace=_NAMESPACE, registry=self.registry)


class TopicMetrics:
    """One topic's counters, looked up once: a message must not pay for that."""

    def __init__(self, metrics: Metrics, topic: str) -> None:
        self._rests = metrics.rests
        self._topic = topic
        self._received = metrics.received.labels(topic)
        self._received_bytes = metrics.received_bytes.labels(topic)
        self._sent = metrics.sent.labels(topic)
        self._sent_bytes = metrics.sent_bytes.labels(topic)
        self._oversized = metrics.oversized.labels(topic)
        self._latency = metrics.latency.labels(topic)
        self._sender_faults = metrics.refused.labels(topic, SENDER)
        self._receiver_faults = metrics.refused.labels(topic, RECEIVER)
        self._up = metrics.up.labels(topic)
        self.held = metrics.held.labels(topic)
        self.acked = metrics.acked.labels(topic)
        self.nacked = metrics.nacked.labels(topic)
        self.unsettled = metrics.unsettled.labels(topic)

    def came(self, parcels: Sequence[Parcel]) -> None:
        """Messages came."""
        self._received.inc(len(parcels))
        self._received_bytes.inc(sum(parcel.size for parcel in parcels))

    def confirmed(self, parcels: Sequence[Parcel], now: float) -> None:
        """A queue has them."""
        for parcel in parcels:
            self._latency.observe(now - parcel.received_at)
            if parcel.is_oversized:
                self._oversized.inc()
            else:
                self._sent.inc()
                self._sent_bytes.inc(parcel.size)

    def refused(self, for_good: bool) -> None:
        """A queue did not take one."""
        (self._sender_faults if for_good else self._receiver_faults).inc()

    def rested(self, reason: str) -> None:
        """The topic waits."""
        self._rests.labels(self._topic, reason).inc()
        self._up.set(0)

    def flows(self) -> None:
        """The topic does not wait any more."""
        self._up.set(1)
