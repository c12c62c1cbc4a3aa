"""Large inputs of shapes that have made parsers slow; each takes a size in bytes and makes about that many."""

from __future__ import annotations

from collections.abc import Callable

Shape = Callable[[int], bytes]


def _repeated(piece: bytes, size: int, between: bytes = b",") -> bytes:
    return between.join([piece] * (size // (len(piece) + len(between)) + 1))


def _numbered(size: int, value: bytes = b"1") -> bytes:
    """Members with different names."""
    return b",".join(b'"k%06d":%b' % (number, value) for number in range(size // (11 + len(value)) + 1))


def _letter(number: int) -> bytes:
    """A letter of which the column's name has nothing but `_`."""
    return chr(0x4E00 + number).encode()


def _inside(before: bytes, make: Shape, after: bytes = b"") -> Shape:
    return lambda size: before + make(size) + after


def _copies(piece: bytes, between: bytes = b",") -> Shape:
    return lambda size: _repeated(piece, size, between)


# JSON objects, whole and broken off; each is a payload, a body, and a body's payload
OBJECTS: dict[str, Shape] = {
    "deep arrays": lambda size: b'{"a":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}",
    "deep objects": lambda size: b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6),
    "deep mixture": lambda size: b'{"a":[' * (size // 8) + b"]}" * (size // 8),
    "arrays without an end": lambda size: b'{"a":' + b"[" * size,
    "objects without an end": lambda size: b'{"a":' * (size // 5),
    "closing brackets": lambda size: b'{"a":' + b"]" * size,
    "many members": _inside(b"{", _numbered, b"}"),
    "many members after a lone surrogate": _inside(b'{"\\ud800":1,', _numbered, b"}"),
    "many members of members": _inside(b'{"a":{', lambda size: _numbered(size, b'{"x":1,"y":{}}'), b"}}"),
    "one key again and again": _inside(b"{", _copies(b'"k":1'), b"}"),
    "one key with objects": _inside(b"{", _copies(b'"k":{"a":[1]}'), b"}"),
    "names that collide": lambda size: b"{" + b",".join(b'"%03o":1' % n for n in range(size // 8)) + b"}",
    "names of one column": lambda size: b"{" + b",".join(b'"%b":1' % _letter(n) for n in range(size // 500)) + b"}",
    "empty objects": _inside(b'{"a":[', _copies(b"{}"), b"]}"),
    "small objects": _inside(b'{"a":[', _copies(b'{"a":1}'), b"]}"),
    "numbers": _inside(b'{"a":[', _copies(b"1"), b"]}"),
    "strings without an end": _inside(b'{"a":[', _copies(b'"x"')),
    "escapes": _inside(b'{"a":"', _copies(b"\\n", b""), b'"}'),
    "escaped quotes": _inside(b'{"a":"', _copies(b'\\"', b""), b'"}'),
    "backslashes": _inside(b'{"a":"', _copies(b"\\", b"")),
    "quotes": _inside(b'{"a":', _copies(b'"', b"")),
    "surrogate pairs": _inside(b'{"a":"', _copies(b"\\ud83d\\ude00", b""), b'"}'),
    "surrogate pairs and a lone one": _inside(b'{"a":"', _copies(b"\\ud83d\\ude00", b""), b'\\ud800"}'),
    "halves of pairs": _inside(b'{"a":"', _copies(b"\\ud83d", b""), b'"}'),
    "one number": lambda size: b'{"a":' + b"9" * size + b"}",
    "one fraction": lambda size: b'{"a":0.' + b"9" * size + b"}",
    "one exponent": lambda size: b'{"a":1e' + b"9" * size + b"}",
    "numbers almost too long": _inside(b'{"a":[', _copies(b"9" * 4299), b"]}"),
    "numbers in strings": _inside(b'{"a":[', _copies(b'"' + b"9" * 4299 + b'"'), b"]}"),
    "signs in strings": _inside(b'{"a":[', _copies(b'"' + b"-" * 4200 + b'"'), b"]}"),
    "white space": lambda size: b'{"a":' + b" " * size + b"1}",
    "white space everywhere": _inside(b"{", _copies(b'"a"' + b" " * 50 + b":" + b"\n" * 50 + b"1" + b"\t" * 50), b"}"),
    "one key": lambda size: b'{"' + b"K" * size + b'":1}',
    "one string": lambda size: b'{"a":"' + b"x" * size + b'"}',
    "one string without an end": lambda size: b'{"a":"' + b"x" * size,
    "two bytes a character": _inside(b'{"a":"', _copies("é".encode(), b""), b'"}'),
    "a bad byte at the end": lambda size: b'{"a":"' + b"x" * size + b'\xff"}',
}
ENVELOPE_BEFORE = b'{"message_id":"m","publish_time":"2026-02-03T10:15:30Z","payload":'


def as_payload(shape: Shape) -> Shape:
    """A body with such a payload."""
    return _inside(ENVELOPE_BEFORE, shape, b"}")


_COLUMNS = b'{"schema_version":"1.0.0","table_name":"t","envelope_columns":{},"payload_columns":{'
_COLUMN = _COLUMNS + b'"x":{'
SCHEMAS: dict[str, Shape] = {
    **{name: OBJECTS[name] for name in ("deep arrays", "deep objects", "many members", "one number")},
    "columns that are none": _inside(_COLUMNS, _numbered, b"}}"),
    "columns with wrong rules": _inside(_COLUMNS, lambda size: _numbered(size, b'{"type":"INT","min":"x"}'), b"}}"),
    "unknown keys": _inside(_COLUMN, _numbered, b"}}}"),
    "an enum": _inside(_COLUMN + b'"type":"INT","default":0,"enum":[', _copies(b"1"), b"]}}}"),
    "an enum of wrong values": _inside(_COLUMN + b'"type":"INT","enum":[', _copies(b'"a"'), b"]}}}"),
    "a path": _inside(_COLUMN + b'"json_path":"$', _copies(b".a", b""), b'"}}}'),
    "a quoted path": _inside(_COLUMN + b'"json_path":"$[\'', _copies(b"a", b""), b'"}}}'),
    "a literal": _inside(_COLUMN + b'"type":"DECIMAL(38,9)","default":', _copies(b"9", b""), b"}}}"),
    "partitions": _inside(b'{"partitioning":[', _copies(b'"bucket(1,a)"'), b"]}"),
    "properties": _inside(b'{"table_properties":{', lambda size: _numbered(size, b'"x"'), b"}}"),
    "zones": _inside(b'{"zones":[', _copies(b'"curated"'), b"]}"),
}
LINES: dict[str, Shape] = {
    **{name: OBJECTS[name] for name in ("escapes", "backslashes", "two bytes a character", "a bad byte at the end")},
    "empty lines": lambda size: b"\x27\xff" + b"\n" * size,
    "one line": lambda size: b"\x27\xff" + b"x" * size,
    "blank lines": _inside(b"\x27\x05", _copies(b" " * 40, b"\r\n")),
}
TEXTS: dict[str, Shape] = {
    "digits": _copies(b"9", b""),
    "points": _copies(b".", b""),
    "a fraction": lambda size: b"0." + b"9" * size,
    "zeros": lambda size: b"0" * size + b"1",
    "exponents": _copies(b"1e1", b""),
    "signs": _copies(b"-", b""),
    "a time": lambda size: b"2026-02-03T10:15:30." + b"9" * size,
    "blanks": lambda size: b" " * size + b"x" + b" " * size,
    "letters": _copies(b"T", b""),
}
PATHS: dict[str, Shape] = {
    "keys": _inside(b"$", _copies(b".a", b"")),
    "quoted keys": _inside(b"$", _copies(b"['a']", b"")),
    "one key": _inside(b"$['", _copies(b"a", b""), b"']"),
    "escapes": _inside(b"$['", _copies(b"\\'", b""), b"']"),
    "a key without an end": _inside(b"$['", _copies(b"\\\\", b"")),
    "brackets": _inside(b"$", _copies(b"[", b"")),
}
