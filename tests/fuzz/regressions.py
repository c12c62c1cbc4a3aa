"""Inputs that once failed, by target, with what went wrong; a test replays them all."""

from __future__ import annotations

from typing import NamedTuple


class Regression(NamedTuple):
    """An input, and what it did before."""

    target: str
    data: bytes
    did: str


def _column(value: str) -> bytes:
    columns = f'{{"x":{{"default":{value}}}}}'
    return f'{{"schema_version":"1.0.0","table_name":"t","envelope_columns":{{}},"payload_columns":{columns}}}'.encode()


REGRESSIONS = (
    Regression("schema", _column("[" * 480 + "]" * 480), "RecursionError when the value was shown"),
    Regression("schema", _column('{"a":' * 331 + "1" + "}" * 331), "RecursionError when the value was shown"),
    Regression("payload", b'{"a":[' + b",".join([b'"' + b"9" * 4299 + b'"'] * 60) + b"]}", "seconds for 256 KB"),
    Regression("payload", b'{"\xc3\xa9":"\\ud800","\\u00e9":"x"}', "the judge overlooked an overwritten key"),
    Regression("sql", b"\xff", "TypeError for an argument that is no text"),
    Regression("sql", b"SELECT " + b"(" * 20_000, "minutes in the parser"),
    Regression("sql", b"SELECT * FROM " + b"(FROM " * 100_000 + b"raw.t" + b")" * 100_000, "ended the process"),
    Regression("sql", b"DESCRIBE " * 100_000 + b"raw.t", "ended the process"),
    Regression("sql", b"SELECT sleep_ms(100000000)", "a function that waits was let through"),
)
