"""What is published and put to the queues in the story of ingestion, and what must become of each."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass
from typing import Final

from google.pubsub_v1.types import PubsubMessage

TOPICS: Final = ("orders", "meters", "events", "clicks", "alarms")
LATE_TOPIC: Final = "late_comers"
# Its mapping takes one message at a time: a process that dies takes the others of its batch along, and after five
# times all of them would be given up, whoever killed it.
FRAGILE_TOPIC: Final = "fragile_things"
ALL_TOPICS: Final = (*TOPICS, LATE_TOPIC, FRAGILE_TOPIC)

POISON: Final = "DEADLY-POISON"
POISONOUS: Final = 6  # each costs five new processes
RAW: Final = "RAW"
LARGE_BYTES: Final = 500_000
OVER_A_RECORD: Final = 1_030_000
OVER_A_QUEUE: Final = 1_300_000


@dataclass(frozen=True, slots=True)
class Published:
    """A message of Pub/Sub; `fate` is RAW or the error type of its dead letter."""

    topic: str
    kind: str
    data: bytes
    fate: str
    key: str

    def as_message(self) -> PubsubMessage:
        return PubsubMessage(data=self.data, attributes={"idempotency_key": self.key})

    def payload(self) -> str | None:
        """What RAW must hold."""
        return None if self.data == b"null" else self.data.decode()


@dataclass(frozen=True, slots=True)
class Direct:
    """A body that somebody puts to a queue himself, and its dead letter's error type."""

    topic: str
    kind: str
    body: str
    fate: str


@dataclass(frozen=True, slots=True)
class Story:
    """Everything, in the order in which it comes."""

    published: list[Published]
    direct: list[Direct]


def make_story(count: int, seed: int) -> Story:
    """`count` messages for Pub/Sub, and one body for a queue for every hundred of them."""
    chance = random.Random(seed)  # noqa: S311  the same story each time
    few = max(6, count // 400)
    kinds = ["large"] * few + ["oversized for a record"] * (few // 3) + ["oversized for a queue"] * (few // 3)
    kinds += ["binary"] * (count // 50) + ["late"] * (count // 20) + ["fragile"] * few + ["poison"] * POISONOUS
    plain = ("object", "object", "object", "nested", "array", "text", "not quite JSON", "number", "null", "empty")
    kinds += [plain[number % len(plain)] for number in range(count - len(kinds))]
    chance.shuffle(kinds)
    published = [_published(kind, number, chance) for number, kind in enumerate(kinds)]
    return Story(published, [_direct(number, chance) for number in range(max(8, count // 100))])


def _published(kind: str, number: int, chance: random.Random) -> Published:
    topic = {"late": LATE_TOPIC, "fragile": FRAGILE_TOPIC, "poison": FRAGILE_TOPIC}.get(kind) or chance.choice(TOPICS)
    fates = {
        "binary": "INVALID_CONTRACT",
        "oversized for a record": "OVERSIZED",
        "oversized for a queue": "OVERSIZED",
        "poison": "UNKNOWN",
    }
    return Published(topic, kind, _data(kind, number, chance), fates.get(kind, RAW), f"key-{number}")


def _data(kind: str, number: int, chance: random.Random) -> bytes:
    sizes = {"large": LARGE_BYTES, "oversized for a record": OVER_A_RECORD, "oversized for a queue": OVER_A_QUEUE}
    if kind in sizes:
        return json.dumps({"n": number, "filler": "x" * sizes[kind]}).encode()
    written = {
        "array": f"[{number}, 1.10, null, [1e5]]",
        "text": f'plain text {number} \x00\ufffe „ä“ \U0001f600 \\ "',
        "not quite JSON": f'{{"n": {number}, "broken": [1, 2',
        "number": f"{number}.10e{number % 7}",
        "null": "null",
        "empty": "",
        "poison": f'{{"n": {number}, "is": "{POISON}"}}',
        "nested": f'{{ "n":{number} , "a":{{"b":{{"c":[{{"d":"\\u00e4"}}]}}}}, "_metadata":{{"correlationId":"c"}} }}',
    }
    if kind in written:
        return written[kind].encode()
    if kind == "binary":
        return chance.randbytes(40) + b"\xff"
    value = chance.randint(0, 10**9)
    return json.dumps({"n": number, "value": value, "text": "ä" * (number % 60)}, ensure_ascii=False).encode()


def _direct(number: int, chance: random.Random) -> Direct:
    """Bodies that no bridge makes; each has a text of its own, so that it can be told from all others."""
    own, topic = uuid.UUID(int=chance.getrandbits(128), version=4).hex, chance.choice(TOPICS)
    time = '"publish_time": "2026-02-03T10:15:30.120Z"'
    bodies = (
        ("no JSON", f"<xml>{own}</xml>", "MALFORMED_JSON"),
        ("cut off", f'{{"message_id": "{own}", {time}, "payload": {{"a": [1, ', "MALFORMED_JSON"),
        ("no object", f'["{own}"]', "MALFORMED_JSON"),
        ("no message id", f'{{{time}, "payload": {{"own": "{own}"}}}}', "INVALID_CONTRACT"),
        ("no payload", f'{{"message_id": "{own}", {time}}}', "INVALID_CONTRACT"),
        ("no time", f'{{"message_id": "{own}", "payload": 1}}', "INVALID_CONTRACT"),
        ("wrong time", f'{{"message_id": "{own}", "publish_time": "yesterday", "payload": 1}}', "INVALID_CONTRACT"),
    )
    kind, body, fate = bodies[number % len(bodies)]
    return Direct(topic, f"direct: {kind}", body, fate)
