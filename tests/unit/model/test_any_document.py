"""For any JSON as a schema file, any path and any value's text: an answer, never a crash."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.strategies import inputs_of
from tests.fuzz.targets import casts, json_path, pattern, run, schema

SCHEMA_KEYS = "schema_version table_name envelope_columns payload_columns version_column zones partitioning"
COLUMN_KEYS = "table_properties description json_path type format default required cde enum pattern min max pii"
NAMES = ["message_id", "idempotency_key", "a", "at", "odd key", "_file", ""]
KEYS = st.sampled_from([*SCHEMA_KEYS.split(), *COLUMN_KEYS.split(), *NAMES])
TYPES = ["STRING", "INT", "TIMESTAMP", "DECIMAL(10,2)", "DOUBLE", "DATE", "BOOLEAN", "epoch_ms", "iso", "hash", "drop"]
PARTS = ["$.a.b", "$['x']", "[a-z]+", "(a+)+", "(", "curated", "standardized", "day(publish_time)", "bucket(16, a)"]
VALUES = ["1.0.0", "events", "write.a", "2026-02-03", "1e400", "", "a", "at", "é", "\x00", "\u2028"]
WORDS = st.sampled_from([*TYPES, *PARTS, *VALUES])
SCALARS = WORDS | st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=5)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=6),
    max_leaves=25,
)
COLUMNS = st.dictionaries(KEYS, st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=3), max_size=6) | ANY_JSON)
DOCUMENTS = st.fixed_dictionaries(
    {"schema_version": st.just("1.0.0"), "table_name": st.just("events"), "payload_columns": COLUMNS},
    optional={
        "envelope_columns": COLUMNS,
        "version_column": SCALARS,
        "zones": ANY_JSON,
        "partitioning": ANY_JSON | st.lists(WORDS),
        "table_properties": ANY_JSON,
    },
)


@settings(max_examples=400)
@given(DOCUMENTS | ANY_JSON)
def test_any_json_is_a_schema_or_has_problems(document: Any) -> None:
    run(schema.__name__, json.dumps(document).encode())


@settings(max_examples=300)
@given(inputs_of("schema"))
def test_any_bytes_are_a_schema_or_have_problems(data: bytes) -> None:
    run(schema.__name__, data)


@settings(max_examples=300)
@given(inputs_of("pattern"))
def test_any_pattern_is_accepted_or_has_one_problem(data: bytes) -> None:
    run(pattern.__name__, data)


@settings(max_examples=300)
@given(inputs_of("json_path"))
def test_any_json_path_is_refused_or_written_back_alike(data: bytes) -> None:
    run(json_path.__name__, data)


@settings(max_examples=400)
@given(inputs_of("casts"))
def test_any_text_is_held_exactly_or_refused(data: bytes) -> None:
    run(casts.__name__, data)
