"""What can go wrong with a topic, one thing at a time, and what must be found of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.integration.reconcile_home import Home, Told, message

from lean_ops.model.batch import Counts

Disturb = Callable[[Told], None]
Found = dict[tuple[str, str], list[str]]  # by zone and kind the ids that are shown; batches by their names


def undisturbed(told: Told) -> None:
    pass


# the ledger


def line_missing(told: Told) -> None:
    told.unbooked.add("b1")


def line_unbalanced(told: Told) -> None:
    told.counts["b2"] = Counts(3, inserted=3, duplicates=1)


def line_of_another_zone(told: Told) -> None:
    """Balances as a sum, but nothing is updated in Standardized."""
    told.counts["b2"] = Counts(3, inserted=2, updated=1)


def range_gap(told: Told) -> None:
    told.starts["b2"] = 4711


def range_overlap(told: Told) -> None:
    told.starts["b2"] = None  # type: ignore[assignment]


# the tables


def row_too_many(told: Told) -> None:
    told.standardized[1].append(message("m1", "k1", "b1"))
    told.counts["c2"] = Counts(4, inserted=1, updated=1, superseded=1, errors=1)


def row_from_nowhere(told: Told) -> None:
    told.standardized[1].append(message("ghost", "k2", "by hand"))
    told.counts["c2"] = Counts(4, inserted=1, updated=1, superseded=1, errors=1)


def message_lost(told: Told) -> None:
    told.raw[1].append(message("m5", "k5"))
    told.counts |= {"f2": Counts(4, inserted=4), "b2": Counts(4, inserted=4)}


def flush_lost_a_row(told: Told) -> None:
    told.raw[1].pop()
    told.standardized[1].pop()
    told.counts["b2"] = Counts(2, inserted=2)
    told.counts["c2"] = Counts(2, inserted=1, updated=1)
    told.errors.clear()


def parse_error_doubled(told: Told) -> None:
    told.parse_errors.append(message("bad", None, "b1"))


def parse_error_of_a_row(told: Told) -> None:
    told.parse_errors.append(message("m3", "k2", "b2"))
    told.counts["b2"] = Counts(4, inserted=3, errors=1)
    told.counts["f2"] = Counts(4, inserted=4)
    told.raw[1].append(message("m3", "k2"))


def dead_letter_lost(told: Told) -> None:
    told.letters.clear()


def dead_letter_doubled(told: Told) -> None:
    told.letters *= 2


def key_twice(told: Told) -> None:
    told.curated[0].append(message("m1", "k1", "c1"))


def key_lost(told: Told) -> None:
    told.curated[1].pop()


def key_swapped(told: Told) -> None:
    told.curated[1][1] = message("m3", "other", "c2")


def curated_from_nowhere(told: Told) -> None:
    told.curated[1].append(message("ghost", "k9", "c2"))


def error_doubled(told: Told) -> None:
    told.errors.append(message("m4", None, "c2"))


def error_of_a_current_row(told: Told) -> None:
    told.errors[0] = message("m3", "k2", "c2")


def error_from_nowhere(told: Told) -> None:
    told.errors.append(message("ghost", None, "c1"))


# Each with what metadata and ledger show of it, and what a recount finds.
DISTURBED: dict[str, tuple[Disturb, Found, Found]] = {
    "line_missing": (
        line_missing,
        {("standardized", "GAP"): ["b2"], ("standardized", "ROWS"): [], ("standardized", "SOURCE"): []},
        {
            ("standardized", "GAP"): ["b2"],
            ("standardized", "ROWS"): [],
            ("standardized", "SOURCE"): [],
            ("standardized", "BATCH_COUNT"): ["b1"],
            ("standardized", "MISSING"): ["bad"],
        },
    ),
    "line_unbalanced": (
        line_unbalanced,
        {("standardized", "UNBALANCED"): ["b2"]},
        {("standardized", "UNBALANCED"): ["b2"]},
    ),
    "line_of_another_zone": (
        line_of_another_zone,
        {("standardized", "UNBALANCED"): ["b2"], ("standardized", "ROWS"): []},
        {
            ("standardized", "UNBALANCED"): ["b2"],
            ("standardized", "ROWS"): [],
            ("standardized", "BATCH_COUNT"): ["b2"],
        },
    ),
    "line_twice": (
        undisturbed,
        {("curated", "BATCH_TWICE"): ["c2"], ("curated", "ROWS"): [], ("curated", "SOURCE"): []},
        {("curated", "BATCH_TWICE"): ["c2"], ("curated", "ROWS"): [], ("curated", "SOURCE"): []},
    ),
    "line_ahead": (
        undisturbed,
        {("curated", "AHEAD"): ["later"], ("curated", "ROWS"): [], ("curated", "SOURCE"): []},
        {
            ("curated", "AHEAD"): ["later"],
            ("curated", "ROWS"): [],
            ("curated", "SOURCE"): [],
            ("curated", "BATCH_COUNT"): ["later"],
        },
    ),
    "range_gap": (range_gap, {("standardized", "GAP"): ["b2"]}, {("standardized", "GAP"): ["b2"]}),
    "range_overlap": (
        range_overlap,
        {("standardized", "OVERLAP"): ["b1", "b2"]},
        {("standardized", "OVERLAP"): ["b1", "b2"]},
    ),
    "row_too_many": (
        row_too_many,
        {("standardized", "ROWS"): []},
        {("standardized", "ROWS"): [], ("standardized", "DOUBLED"): ["m1"], ("standardized", "BATCH_COUNT"): ["b1"]},
    ),
    "row_from_nowhere": (
        row_from_nowhere,
        {("standardized", "ROWS"): []},
        {
            ("standardized", "ROWS"): [],
            ("standardized", "UNKNOWN"): ["ghost"],
            ("standardized", "BATCH_COUNT"): ["by hand"],
        },
    ),
    "message_lost": (
        message_lost,
        {("standardized", "ROWS"): []},
        {("standardized", "ROWS"): [], ("standardized", "MISSING"): ["m5"], ("standardized", "BATCH_COUNT"): ["b2"]},
    ),
    "flush_lost_a_row": (flush_lost_a_row, {("raw", "ROWS"): []}, {("raw", "ROWS"): []}),
    "parse_error_doubled": (
        parse_error_doubled,
        {},
        {("standardized", "DOUBLED"): ["bad"], ("standardized", "BATCH_COUNT"): ["b1"]},
    ),
    "parse_error_of_a_row": (parse_error_of_a_row, {}, {("standardized", "IN_BOTH"): ["m3"]}),
    "dead_letter_lost": (dead_letter_lost, {}, {("raw", "DEAD_LETTERS"): []}),
    "dead_letter_doubled": (dead_letter_doubled, {}, {("raw", "DEAD_LETTERS"): [], ("raw", "DOUBLED"): ["d1"]}),
    "key_twice": (key_twice, {("curated", "ROWS"): []}, {("curated", "ROWS"): [], ("curated", "KEY_TWICE"): ["k1"]}),
    "key_lost": (
        key_lost,
        {("curated", "ROWS"): []},
        {("curated", "ROWS"): [], ("curated", "NOT_IN_CURATED"): ["m3"]},
    ),
    "key_swapped": (key_swapped, {}, {("curated", "UNKNOWN"): ["m3"]}),
    "curated_from_nowhere": (
        curated_from_nowhere,
        {("curated", "ROWS"): []},
        {("curated", "ROWS"): [], ("curated", "UNKNOWN"): ["ghost"], ("curated", "BATCH_COUNT"): ["c2"]},
    ),
    "error_doubled": (error_doubled, {}, {("curated", "DOUBLED"): ["m4"], ("curated", "BATCH_COUNT"): ["c2"]}),
    "error_of_a_current_row": (
        error_of_a_current_row,
        {},
        {("curated", "IN_BOTH"): ["m3"], ("curated", "NOT_IN_CURATED"): ["m4"]},
    ),
    "error_from_nowhere": (
        error_from_nowhere,
        {},
        {("curated", "UNKNOWN"): ["ghost"], ("curated", "BATCH_COUNT"): ["c1"]},
    ),
}


def waits(told: Told) -> None:
    """A third flush that no batch has read, and a third Standardized batch that Curated has not."""
    told.raw += [[message("m6", "k6")], [message("m7", "k7"), message("m8", "k8")]]
    told.standardized.append([message("m6", "k6", "b3")])
    told.counts |= {
        "f3": Counts(1, inserted=1),
        "f4": Counts(2, inserted=2),
        "b3": Counts(1, inserted=1),
    }


def behind_an_open_batch(told: Told) -> None:
    """Errors of batches that have not published yet, for records that wait."""
    told.raw.append([message("m6", "k6"), message("worse")])
    told.counts["f3"] = Counts(2, inserted=2)
    told.parse_errors.append(message("worse", None, "open"))
    told.errors.append(message("m3", "k2", "open"))


def replayed(told: Told) -> None:
    """The broken payload was mended: it is in Standardized, and its error row says so."""
    told.standardized[1].append(message("bad", "k1", "replay"))
    told.parse_errors[0]["replay_status"] = "FIXED"
    told.counts["c2"] = Counts(4, inserted=1, updated=1, superseded=1, errors=1)


def only_standardized(told: Told) -> None:
    told.curated = []


BALANCED: dict[str, Disturb] = {
    "good": undisturbed,
    "waits": waits,
    "behind_an_open_batch": behind_an_open_batch,
    "replayed": replayed,
    "only_standardized": only_standardized,
}


def told_with(topic: str, disturb: Disturb) -> Told:
    told = Told(topic)
    disturb(told)
    return told


class Stories(Home):
    """All topics in one home: writing one takes longer than reading it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        disturbed = {topic: disturb for topic, (disturb, _, _) in DISTURBED.items()}
        self.topics = {topic: self.tell(told_with(topic, disturb)) for topic, disturb in (BALANCED | disturbed).items()}
        self.topics["line_twice"].lines.append(self.topics["line_twice"].lines[-1])
        ahead = self.topics["line_ahead"].lines
        ahead.append({**ahead[-1], "batch_id": "later", "from_snapshot": ahead[-1]["to_snapshot"], "to_snapshot": "99"})
        replay = self.topics["replayed"]
        row = {**replay.lines[2], "kind": "REPLAY", "batch_id": "replay", "from_snapshot": None, "to_snapshot": None}
        counts = {"records_in": 1, "records_out": 1, "inserted": 1, "duplicates": 0, "errors": 0}
        replay.lines.append(row | counts)
        self.book(list(self.topics.values()))
