from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lean_ops.model.json_path import format_json_path, json_pointer, parse_json_path


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("$.a", ("a",)),
        ("$.event.userId", ("event", "userId")),
        ("$.a-b.c$d.é", ("a-b", "c$d", "é")),
        ("$['odd key']", ("odd key",)),
        ('$["it\'s"].b', ("it's", "b")),
        (r"$['it\'s']['back\\slash']", ("it's", "back\\slash")),
        ("$['a.b']['']", ("a.b", "")),
        ("$.a['b'].c", ("a", "b", "c")),
    ],
)
def test_a_path_s_keys(path: str, keys: tuple[str, ...]) -> None:
    assert parse_json_path(path) == keys


@pytest.mark.parametrize(
    "path", ["", "a", "$", "$.", "$a", "$.a.", "$..a", "$.a b", "$[a]", "$['a'", "$['a\\n']", "$.a[*]", "$[?(@.a)]"]
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match=r"JSON path|key"):
        parse_json_path(path)


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_formatting_and_parsing_are_inverse(keys: list[str]) -> None:
    assert parse_json_path(format_json_path(keys)) == tuple(keys)


def test_a_pointer_escapes_what_rfc_6901_asks() -> None:
    assert json_pointer(("a/b", "m~n", "")) == "/a~1b/m~0n/"
