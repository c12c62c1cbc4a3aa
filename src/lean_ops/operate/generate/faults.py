"""Bodies that are wrong, or hard to take, whatever they are about."""

from __future__ import annotations

import json
from typing import Final

from lean_ops.operate.generate.changes import reversed_members
from lean_ops.operate.generate.variants import (
    Make,
    Parts,
    Variant,
    body_as,
    dead,
    payload_as,
    payload_string,
    payload_text,
    setting,
    unreadable,
)

# What a payload may nest and a number may have, by the contract: far past it, and well within.
_TOO_DEEP: Final = 250
_DEEP: Final = 150
_TOO_MANY_DIGITS: Final = 4_400
_LIMIT_BYTES: Final = 10 * 1024 * 1024
_HUGE: Final = 200_000
_WIDE: Final = 60

_NO_JSON: Final = dead("MALFORMED_JSON")
_BROKEN: Final = dead("INVALID_CONTRACT")
_INVALID: Final = unreadable("INVALID_JSON")


def _cut(text: str) -> str:
    return text[:-10]


def _payload(text: str) -> Make:
    """The body with another JSON text as its payload."""
    return payload_text(lambda _: text)


def _member(name: str, value: str | None) -> Make:
    """The body with another JSON text as a member's value; without the member if there is none."""

    def change(parts: Parts) -> str:
        members = {"message_id": json.dumps(parts.message_id), "publish_time": json.dumps(parts.publish_time)}
        members["payload"] = parts.payload
        if value is None:
            del members[name]
        else:
            members[name] = value
        written = ",".join(f'"{key}":{text}' for key, text in members.items() if key != "payload")
        payload = f'"payload":{members["payload"]}' if "payload" in members else '"data":{}'
        return f"{{{written}{',' if written else ''}{parts.envelope}{payload}}}"

    return change


MALFORMED: Final = (
    Variant(body_as(_cut), _NO_JSON),
    Variant(payload_string(_cut), _INVALID),
    Variant(body_as(lambda _: "not JSON at all"), _NO_JSON, has_id=False),
    Variant(payload_string(lambda text: text[:-1] + ",}"), _INVALID),
    Variant(body_as(lambda body: f"[{body}]"), _NO_JSON, has_id=False),
    Variant(payload_string(lambda text: text.replace('"', "'")), _INVALID),
    Variant(body_as(lambda body: body.replace('"payload":', '"payload":NaN,"x":', 1)), _NO_JSON),
    Variant(payload_string(lambda text: f"{text} {{}}"), _INVALID),
    Variant(payload_string(lambda text: f'{{"x":NaN,{text[1:]}'), _INVALID),
)
EMPTY: Final = tuple(
    Variant(_payload(text), unreadable("EMPTY_PAYLOAD")) for text in ("null", '""', '"   "', r'"\t\n"')
)
NOT_AN_OBJECT: Final = tuple(
    Variant(_payload(text), unreadable("NOT_AN_OBJECT"))
    for text in ("[]", "42", "true", '"\\"a text\\""', '"null"', '[{"a":1}]')
)
REFUSED: Final = (
    Variant(_member("message_id", None), _BROKEN, has_id=False),
    Variant(_member("publish_time", None), _BROKEN),
    Variant(_member("payload", None), _BROKEN),
    Variant(_member("message_id", "12"), _BROKEN, has_id=False),
    Variant(_member("message_id", '""'), _BROKEN, has_id=False),
    Variant(_member("message_id", "null"), _BROKEN, has_id=False),
)
BAD_PUBLISH_TIMES: Final = tuple(
    Variant(_member("publish_time", text), _BROKEN)
    for text in ('"yesterday"', "1770113730", '"2026-02-30T10:15:30Z"', '"1969-12-31T23:59:59Z"', '"2026-02-03"', '""')
)
REORDERED: Final = (Variant(payload_as(reversed_members)),)


# poison


def _nested(depth: int) -> str:
    return '{"deep":' + "[" * depth + "]" * depth + "}"


def _with(members: str) -> Make:
    """The payload with further members, given as text, in front of its own."""
    return payload_text(lambda payload: f"{{{members},{payload[1:]}")


def _last_counts(parts: Parts) -> str:
    """Every top-level member stands there twice, first with a value that must not count."""
    names = json.loads(parts.payload)
    wrong = ",".join(f"{json.dumps(name)}:-1" for name in names)
    return parts._replace(payload=f"{{{wrong},{parts.payload[1:]}").body


def _other_spelling(parts: Parts) -> str:
    return parts.body.replace('"message_id":', '"messageId":', 1).replace('"publish_time":', '"publishTime":', 1)


def _in_another_zone(parts: Parts) -> str:
    """The same moment to the microsecond; more digits than that are cut."""
    return parts._replace(publish_time=parts.publish_time.replace("Z", "000999+00:00")).body


def _not_utf8(body: str) -> bytes:
    return body.encode()[:-2] + b'\xff\xfe"}'


_HOSTILE: Final = (
    *("'; DROP TABLE orders; --", "SELECT", "__proto__", "", "a.b", "tab\there", "x" * 300, "Ünï", "\U0001f600"),
    *("_file", "_batch_id", "message_id", "ingestion_ts", "ORDERID", "Event"),
)
_DEEP_MEMBER: Final = _nested(_DEEP)[1:-1]
_NUMBERS: Final = '"numbers":{"a":1e400,"b":-0,"c":1E+5,"d":12345678901234567890,"e":0.10}'

POISON: Final = (
    Variant(_with(_DEEP_MEMBER)),
    Variant(_payload(_nested(_TOO_DEEP)), _INVALID),
    Variant(_with(f'"blob":"{"x" * _HUGE}"')),
    Variant(_with(f'"digits":{"7" * _TOO_MANY_DIGITS}'), _INVALID),
    Variant(setting({f"/{name}": "odd" for name in _HOSTILE})),
    Variant(_with(r'"half":"\ud83d"'), _INVALID),
    Variant(body_as(_not_utf8), _NO_JSON),
    Variant(_last_counts),
    Variant(_with(r'"control":"\u0000\u0001\u001f","emoji":"\ud83d\ude00","line":"\u2028"')),
    Variant(payload_string(lambda text: f"\ufeff{text}"), _INVALID),
    Variant(_with(_NUMBERS)),
    Variant(_other_spelling),
    Variant(_in_another_zone),
    Variant(payload_string(lambda text: f"  {text}\n")),
    Variant(_with(f'"list":[{",".join(map(str, range(2_000)))}]')),
    Variant(_with(",".join(f'"wide_{number}":{number}' for number in range(_WIDE)))),
    Variant(body_as(lambda body: f" \t{body} ")),
)
OVERSIZED: Final = (
    Variant(
        body_as(lambda body: f'{body[:-1]},"filler":"{"x" * _LIMIT_BYTES}"}}'),
        dead("OVERSIZED"),
    ),
)
