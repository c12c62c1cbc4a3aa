"""Where fuzzing begins: inputs that reach deep into each target, and words that mean something to it."""

from __future__ import annotations

import json

_TIME = "2026-02-03T10:15:30.120Z"
_PAYLOAD = (
    '{"_metadata": {"idempotencyKeyResource": "k", "periodReference": "2026-02", "correlationId": 9}, "a.b": -0,'
    ' "A": {"b": {"c": {"d": {"e": {"f": [1.10, 1e5, true, null, {}]}}}}}, "a": "\\ud83d\\ude00\\n", "a": [], "": {}}'
)
_BODY = f'{{"message_id": "m", "publish_time": "{_TIME}", "idempotency_key": "k", "payload": {_PAYLOAD}}}'
_OBJECTS = [
    _PAYLOAD,
    "{}",
    ' {"a" : [ ] , "b":{"c":-1.5E+3}}\n',
    '{"a":[[1,[]],{"b":{}},{"c":[1,2,{"d":1}],"e":2}],"f":-0.5e+3}',
    '{"a":"\\ud800"}',
    '{"\\udc00":1,"a":"\\ud83d\\u0041"}',
    '{"a":' + "9" * 4301 + "}",
    '{"a":"' + "9" * 4299 + '"}',
    '{"a":' + "[" * 199 + "]" * 199 + "}",
    '{"a":' + "[" * 200 + "]" * 200 + "}",
    '{"a":1,"a":{"b":2},"a":3}',
    '{"é":"日本","\\u00e9":"\\/"}',
    "[1]",
    "null",
]
_BODIES = [
    _BODY,
    f'{{"messageId":"m","publishTime":"{_TIME}","payload":null}}',
    f'{{"message_id":null,"messageId":"m","publish_time":"{_TIME}","payload":{json.dumps(_PAYLOAD)}}}',
    f'{{"message_id":"a\\u0041","publish_time":"{_TIME}","payload":"\\ud800"}}',
    f'{{"payload":1,"message_id":"a","publish_time":"{_TIME}","message_id":"b","payload":[1, 2 ]}}',
    '{"message_id":"m","payload":{',
]
_SCHEMA = {
    "schema_version": "1.0.0",
    "table_name": "events",
    "description": "x",
    "envelope_columns": {"message_id": {"type": "STRING", "required": True}},
    "payload_columns": {
        "user_id": {"json_path": "$.event['odd key']", "type": "STRING", "pattern": "[a-z]+(?<n>x){1,3}"},
        "amount": {"type": "DECIMAL(10,2)", "min": 0, "max": 9.5, "default": 1},
        "at": {"type": "TIMESTAMP", "format": "epoch_ms", "enum": [1770113730120]},
        "mail": {"pii": "hash", "cde": True, "enum": ["a", "b"], "default": "a"},
    },
    "version_column": "at",
    "zones": ["standardized", "curated"],
    "partitioning": ["day(publish_time)", "bucket(16, user_id)"],
    "table_properties": {"write.parquet.compression-codec": "zstd"},
}
_SCHEMAS = [
    json.dumps(_SCHEMA),
    json.dumps({**_SCHEMA, "payload_columns": {}, "version_column": None, "partitioning": []}),
    '{"payload_columns":{"x":{"enum":' + "[" * 90 + "]" * 90 + "}}}",
    '{"payload_columns":{"x":{"default":' + "[" * 480 + "]" * 480 + "}}}",
    '{"a":' * 400 + "1" + "}" * 400,
    '{"schema_version":"1","schema_version":2}',
]
_SQL = [
    "SELECT a, count(*) FROM raw.t WHERE b LIKE 'x%' GROUP BY ALL HAVING count(*) > 1 ORDER BY 1 LIMIT 3",
    "WITH RECURSIVE q(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM q WHERE n < 5) SELECT * FROM q, curated.t",
    "SELECT * FROM raw.t JOIN standardized.t USING (a) QUALIFY row_number() OVER (PARTITION BY b ORDER BY c) = 1",
    "SELECT * EXCLUDE (a) REPLACE (lower(b) AS b) FROM ops.t, unnest([1, 2]) u(x), range(3)",
    "SELECT list_transform([1], x -> x + 1), {'a': 1}, MAP {'k': 1}, CASE WHEN true THEN 1 END, getenv('HOME')",
    "SELECT (SELECT content FROM read_text('/etc/passwd')), * FROM 'file.parquet'",
    "FROM (PIVOT raw.t ON b IN ('p') USING sum(a)) SELECT * UNION SELECT 1 FROM read_csv('x')",
    "COPY (SELECT 1) TO 'out.csv'; INSERT INTO raw.t VALUES (1)",
    "DESCRIBE raw.t",
    "SUMMARIZE SELECT * FROM ops.t TABLESAMPLE 10%",
    'WITH "x.csv" AS (SELECT 1) SELECT * FROM "x.csv", LATERAL (SELECT * FROM glob(\'*\'))',
]
_PATTERNS = [
    *(r"[a-z&&[^q]]+\p{L}{2,3}(?<name>x|y)*\k<name>", r"\Qa(b\E(?i:x)(?=a)(?<!b)\x41\u0041\07\cA[^]a-z\]-]"),
    *(r"(a+)+$", r"(?:a|aa)*?", r"(\d{1,3}\.){3}\d{1,3}", r"(?P<n>a)(?P=n)(?#c)", r"a{,5}b{2}{3}", r"[[:alpha:]]"),
]
_TIMES = [_TIME, "2026-02-03 10:15:60+23:59", "1970-01-01t00:00:00.123456789z", "2100-12-31T23:59:59-00:01"]
_VALUES = ["1.50", "-0e10", ".5", "12345678901234567890", "true", "2026-02-03", _TIME, "1770113730.5", "1e-9999"]
_PATHS = ["$.a.b", "$['odd key'][\"it's\"]", r"$['it\'s\\']", "$.a[0]", "$..*"]
_LINES = ["a\nb\r\n\n \r\nc", "\ufeff{}\n\ufeff", "x" * 70 + "\n" + " " * 70 + "\n\r\n"]


def _bytes(texts: list[str]) -> list[bytes]:
    return [text.encode() for text in texts]


SEEDS: dict[str, list[bytes]] = {
    "envelope": [*_bytes(_BODIES), b'{"message_id":"m","payload":"\xff"}'],
    "scanner": _bytes(_OBJECTS + _BODIES),
    "payload": [*_bytes(_OBJECTS), b"\xef\xbb\xbf{}", b" \t"],
    "names": [b"a\x1fb\x1ea_b\x1eA.b", "É\x1f\x1e_file\x1e/~".encode(), b"x" * 300 + b"\x1e" + b"X" * 200],
    "publish_time": _bytes(_TIMES),
    "casts": [bytes([kind, 0]) + text for kind in range(10) for text in _bytes(_VALUES)],
    "json_path": _bytes(_PATHS),
    "archive": [*_bytes(_LINES), b"\xff\xfe", '\\"é😀\x00'.encode(), b"\xe2\x82"],
    "lines": [bytes([step, limit]) + text for step in (1, 7) for limit in (0, 20) for text in _bytes(_LINES)],
    "schema": _bytes(_SCHEMAS),
    "pattern": _bytes(_PATTERNS),
    "sql": _bytes(_SQL),
}

_JSON_WORDS = ["{", "}", "[", "]", ",", ":", '"', "\\", "\\ud800", "\\udc00", "\\u", "null", "true", "-0", "1e5", "0.1"]
_JSON_WORDS += [" ", "\n", "\x00", "\x1f", "NaN", "Infinity", "01", '"payload":', '"message_id":', '"_metadata":', "é"]
_SQL_WORDS = ["SELECT ", " FROM ", "raw.t", "WITH q AS (", ")", " UNION ", "read_csv(", "'x'", '"', ";", "--", "/*"]
_SQL_WORDS += ["$", "INSERT INTO ", "DELETE FROM ", " RETURNING *", "getenv(", "glob(", "COPY ", "::", "->", "*", "?"]
_SCHEMA_WORDS = ['"type":', '"enum":', '"default":', '"min":', '"pattern":', '"json_path":', '"pii":', '"format":']
_SCHEMA_WORDS += ['"DECIMAL(38,9)"', '"TIMESTAMP"', '"partitioning":', '"zones":', '"table_properties":', "1e9999"]
_PATTERN_WORDS = [*"()[]{}*+?|\\^$.-,&<>=!:#0123aQEpkbx", "(?:", "(?=", "(?<=", "(?<n>", "\\p{L}", "&&[", "{2,3}"]
_TIME_WORDS = ["-", ":", ".", "T", "Z", "+", "00", "31", "1970", "2100", "\u0661", " ", "e", "\t", "\ufeff", "\r\n"]
WORDS: dict[str, list[bytes]] = {
    **dict.fromkeys(("envelope", "scanner", "payload", "archive"), _bytes(_JSON_WORDS)),
    "schema": _bytes(_JSON_WORDS + _SCHEMA_WORDS),
    "sql": _bytes(_SQL_WORDS),
    "pattern": _bytes(_PATTERN_WORDS),
    "names": _bytes(["\x1e", "\x1f", "/", "~", "_", ".", "_file", "É", "İ"]),
    "json_path": _bytes(["$", ".", "['", "']", '["', '"]', "\\", "[0]", "*", " "]),
    **dict.fromkeys(("publish_time", "casts", "lines"), _bytes(_TIME_WORDS)),
}
