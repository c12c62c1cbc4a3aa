"""What `generate` is asked for: counts, names, files, and the same bytes for the same seed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from lean_ops.model.errors import WrongUseError
from lean_ops.model.schema import parse_schema
from lean_ops.operate.generate.families import FAMILIES, family_of, schema_of
from lean_ops.operate.generate.kinds import INJECTIONS, Kind
from lean_ops.operate.generate.order import Order, kind_counts, make


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_same_seed_makes_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    rates = {"duplicates": 0.1, "corrections": 0.1, "poison": 0.1, "malformed": 0.1}
    for name, seed in (("one", 5), ("same", 5), ("other", 6)):
        make(Order("orders", 300, rates, seed=seed), tmp_path / name)
    assert content_of(tmp_path / "one") == content_of(tmp_path / "same")
    one, other = (content_of(tmp_path / name) for name in ("one", "other"))
    ids = [{json.loads(line).get("message_id") for line in found["fates.jsonl"].splitlines()} for found in (one, other)]
    assert ids[0] & ids[1] <= {None}


def test_bytes_do_not_depend_on_how_many_files_there_are(tmp_path: Path) -> None:
    rates = {"duplicates": 0.2, "late": 0.1}
    one = make(Order("orders", 301, rates), tmp_path / "one")
    three = make(Order("orders", 301, rates, files=3), tmp_path / "three")
    assert three.files == {"orders": ("orders-1.jsonl", "orders-2.jsonl", "orders-3.jsonl")}
    bodies = [(tmp_path / "three" / name).read_bytes() for name in three.files["orders"]]
    assert b"".join(bodies) == (tmp_path / "one" / "orders.jsonl").read_bytes()
    assert [body.count(b"\n") for body in bodies] == [100, 100, 101]
    assert one.fates == three.fates


def test_each_line_of_the_fates_names_the_place_of_its_body(tmp_path: Path) -> None:
    made = make(Order("orders", 50, {"malformed": 0.2}, files=2, topics=2), tmp_path)
    for line in (tmp_path / "fates.jsonl").read_text().splitlines():
        told = json.loads(line)
        body = (tmp_path / told["file"]).read_bytes().splitlines()[told["line"] - 1]
        assert told["topic"] in made.topics
        assert "message_id" not in told or told["message_id"].encode() in body


def test_rates_become_exact_counts_of_the_whole() -> None:
    counts = kind_counts(1000, {"duplicates": 0.05, "corrections": 0.06, "empty": 0.001})
    assert counts == {
        Kind.NEW: 889,
        Kind.RETRY: 25,
        Kind.ALTERED_RETRY: 25,
        Kind.CORRECTION: 40,
        Kind.TIE: 20,
        Kind.EMPTY: 1,
    }


def test_every_kind_can_be_asked_for() -> None:
    assert {kind for injection in INJECTIONS.values() for kind in injection.kinds} == set(Kind) - {Kind.NEW}


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ({"rates": {"late": 1.5}}, "--late: not a rate; found 1.5"),
        ({"rates": {"late": 0.6, "bad_types": 0.6}}, "the rates leave no room"),
        ({"messages": 0}, "-n: out of range"),
        ({"topics": 0}, "--topics: out of range"),
        ({"files": 101}, "--files: out of range"),
        ({"family": "stars"}, "no such family"),
        ({"topic": "9"}, "topic"),
        ({"rates": {"corrections": 1}}, "nothing to refer to"),
        ({"rates": {"repairs": 0.5}}, "nothing to refer to"),
    ],
)
def test_a_wrong_order_is_refused_with_its_place(order: dict[str, object], words: str, tmp_path: Path) -> None:
    given = {"topic": "orders", "messages": 100} | order
    with pytest.raises(WrongUseError) as caught:
        make(Order(**given), tmp_path)
    assert words in str(caught.value)


def test_many_topics_have_numbers_and_take_turns_with_the_families(tmp_path: Path) -> None:
    made = make(Order("shop", 3, topics=700), tmp_path)
    assert made.topics[0] == "shop_001"
    assert made.topics[-1] == "shop_700"
    assert made.messages == 2100
    families = Counter(family_of(topic, number).name for number, topic in enumerate(made.topics))
    assert families == dict.fromkeys(FAMILIES, 175)
    assert family_of("web_orders", 1).name == "orders"
    assert len((tmp_path / "fates.jsonl").read_bytes().splitlines()) == 2100


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("enhanced", [False, True])
def test_the_topics_schema_is_right_and_its_own(family: str, enhanced: bool) -> None:
    content = schema_of("my_topic", FAMILIES[family], enhanced)
    assert parse_schema(content, "the test").table_name == "my_topic"


def test_a_folder_that_was_left_half_written_has_no_fates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lean_ops.operate.generate.order.write_part", fail)
    with pytest.raises(OSError, match="No space"):
        make(Order("orders", 10), tmp_path)
    assert not (tmp_path / "fates.jsonl").exists()
