"""What a rebuild keeps comes back as it was, and its line makes the books add up."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lean_ops.lake.rebuild_ground import turns_of
from lean_ops.lake.snapshots import History, Snapshot
from lean_ops.model.batch import Batch, Counts, Intent, Zone
from lean_ops.operate.rebuild_build import correction
from lean_ops.operate.rebuild_note import RebuildNote, ZoneSwitch

LIVE = Intent(Batch("events", Zone.STANDARDIZED, 1, 2**62, "1.0.0"), ("/a",), "2026-02-03T10:00:00+00:00")
BUILT = replace(
    LIVE,
    batch=Batch("events", Zone.STANDARDIZED, None, 7, "1.0.0", "abc"),
    counts=Counts(),
    rebuilt=Counts(5, 3, duplicates=1, errors=1),
)

numbers = st.integers(0, 1000)


def test_a_note_comes_back_as_it_was() -> None:
    switch = ZoneSwitch("lean_ops_rebuild_abc", 1, 2**62, BUILT, {"lean-ops.rows": "3"}, LIVE)
    note = RebuildNote("abc", {Zone.CURATED: ("a file", "another")}, {Zone.STANDARDIZED: switch})
    assert RebuildNote.of(note.text()) == note
    assert note.is_switching
    assert not RebuildNote.of(RebuildNote("abc").text()).is_switching


def test_all_parts_of_a_rebuild_are_one_batch_that_no_live_batch_is() -> None:
    part = replace(BUILT.batch, from_snapshot=7, to_snapshot=9)
    assert part.batch_id == BUILT.batch.batch_id != replace(BUILT.batch, rebuild_id=None).batch_id
    assert replace(BUILT.batch, rebuild_id="other").batch_id != BUILT.batch.batch_id
    assert replace(BUILT.batch, zone=Zone.CURATED).batch_id != BUILT.batch.batch_id
    assert (BUILT.batch.kind, LIVE.batch.kind) == ("REPLAY", "BATCH")


def test_an_intent_of_an_earlier_release_is_understood() -> None:
    stored = LIVE.to_dict()
    del stored["rebuilt"], stored["batch"]["rebuild_id"]
    assert Intent.from_dict(stored) == LIVE


@given(inserted=numbers, lost=numbers, errors=numbers, kept=numbers, booked=st.tuples(*[numbers] * 4))
def test_the_line_balances_and_brings_the_books_to_what_stands(
    inserted: int, lost: int, errors: int, kept: int, booked: tuple[int, int, int, int]
) -> None:
    for zone, word in ((Zone.STANDARDIZED, "duplicates"), (Zone.CURATED, "superseded")):
        rebuilt = Counts(inserted + lost + errors, inserted, errors=errors, **{word: lost})
        before = Counts(sum(booked), booked[0], errors=booked[1], updated=booked[2], **{word: booked[3]})
        line = correction(zone, rebuilt, kept, before)
        assert line.balanced
        assert line.updated == 0
        assert before.records_in + line.records_in == rebuilt.records_in
        assert before.inserted + line.inserted == inserted
        assert before.errors + line.errors == errors + kept


def test_files_have_the_turn_in_which_live_batches_read_them() -> None:
    chain = [(1, "append"), (2, "append"), (3, "append"), (4, "replace"), (5, "append"), (6, "append")]
    snapshots = {number: Snapshot(number, number - 1 or None, 0, kind, {}) for number, kind in chain}
    raw = History("raw", snapshots, {"main": 6})
    assert turns_of(raw, [2, 5, 99]) == {1: 0, 2: 0, 3: 1, 4: -1, 5: 1, 6: 2}
