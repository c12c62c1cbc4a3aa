"""The emulation's plan: the numbers that its phases are known for, and one phase after the other."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from lean_ops.ledger.oracle import FATES_FILE
from lean_ops.model.errors import LeanOpsError, WrongUseError
from lean_ops.operate.emulation import TOPICS, Emulation, Phase, Scene
from lean_ops.operate.emulation_log import begin
from lean_ops.operate.generate.kinds import Kind

SMALL = Emulation(size=400)


def kinds_of(emulation: Emulation, phase: Phase) -> Counter[Kind]:
    found: Counter[Kind] = Counter()
    for topic, story in emulation.stories(phase).items():
        parts = [batch[topic] for batch in emulation.batches(phase)]
        kinds = story.rows.kind[parts[0].first : parts[-1].last]
        found.update(list(Kind)[code] for code in kinds)
    return found


def told(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_second_day_has_the_numbers_that_it_is_known_for() -> None:
    emulation = Emulation()
    assert kinds_of(emulation, Phase.DAY1) == {Kind.NEW: 100_000}
    assert kinds_of(emulation, Phase.DAY2) == {
        Kind.CORRECTION: 5_000,
        Kind.LATE: 5_000,
        Kind.RETRY: 5_000,
        Kind.DRIFT: 10_000,
        Kind.REMOVED: 10_000,
        Kind.TYPE_CHANGE: 10_000,
        Kind.EMPTY: 3_000,
        Kind.CDE_NULL: 2_000,
    }


def test_the_fourth_day_spreads_over_three_months_and_corrects_after_three() -> None:
    emulation = Emulation(size=20_000)
    for topic, story in emulation.stories(Phase.DAY4).items():
        (part,) = (batch[topic] for batch in emulation.batches(Phase.DAY4))
        rows = story.rows
        new = [row for row in range(part.first, part.last) if rows.kind[row] == list(Kind).index(Kind.NEW)]
        months = Counter(int(rows.at[row].astype("datetime64[ms]").astype("datetime64[M]").astype(int)) for row in new)
        shares = [months[month] / len(new) for month in sorted(months)]
        assert shares == pytest.approx([0.3, 0.6, 0.1], abs=0.06)
        later = [row for row in range(part.first, part.last) if rows.kind[row] == list(Kind).index(Kind.CROSS_MONTH)]
        days = [int(rows.at[row] - rows.at[rows.key[row]]) / 86_400_000 for row in later]
        assert min(days) >= 31
        assert max(days) > 80


def test_on_day_three_every_way_to_go_wrong_has_its_turn_however_small_it_is() -> None:
    for topic, story in SMALL.stories(Phase.DAY3).items():
        (part,) = (batch[topic] for batch in SMALL.batches(Phase.DAY3))
        sent = Counter(story.rows.kind[part.first : part.last].tolist())
        for kind in (Kind.MALFORMED, Kind.BAD_TYPE, Kind.POISON, Kind.BROKEN_RULE, Kind.REFUSED, Kind.BAD_TIMESTAMP):
            assert sent[list(Kind).index(kind)] >= len(TOPICS[topic].variants_of(kind))


def test_batches_follow_each_other_without_a_gap() -> None:
    for topic in TOPICS:
        parts = [batch[topic] for phase in Phase for batch in SMALL.batches(phase)]
        assert parts[0].first == 0
        assert all(one.last == other.first for one, other in pairwise(parts))
        assert parts[-1].last == len(SMALL.stories(Phase.MIXED)[topic].rows)


def test_the_fates_tell_of_what_was_sent_and_of_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / FATES_FILE
    Scene(SMALL, Phase.DAY1, 1, held=True).write_fates(path)
    assert Counter(line["fate"] for line in told(path)) == {"pending": 400}
    Scene(SMALL, Phase.DAY1, 1).write_fates(path)
    assert Counter(line["fate"] for line in told(path)) == {"curated": 400}
    Scene(SMALL, Phase.MIXED, 2).write_fates(path)
    sent = sum(
        part.last - part.first
        for phase in Phase
        for number, batch in enumerate(SMALL.batches(phase))
        for part in batch.values()
        if phase is not Phase.MIXED or number < 2
    )
    assert len(told(path)) == sent


def test_bodies_and_fates_are_in_the_same_order(tmp_path: Path) -> None:
    scene = Scene(SMALL, Phase.DAY2, 1)
    files = scene.write_bodies(tmp_path)
    scene.write_fates(tmp_path / FATES_FILE)
    for line in told(tmp_path / FATES_FILE):
        if line["file"].startswith("day2/"):
            body = files[line["topic"]].read_bytes().splitlines()[int(line["line"]) - 1]
            assert line["message_id"].encode() in body


# the log


def test_phases_have_their_turn_and_a_later_call_goes_on(tmp_path: Path) -> None:
    log = begin(tmp_path, 400, 3)
    assert log.wanted("day1") == [Phase.DAY1]
    log.phase_begins(Phase.DAY1)
    log.phase_ends(Phase.DAY1)
    again = begin(tmp_path, None, None)
    assert again.emulation == Emulation(400, 3)
    assert again.wanted("full") == [phase for phase in Phase if phase is not Phase.DAY1]
    with pytest.raises(WrongUseError, match="emulate schema` comes next"):
        again.wanted("day2")
    with pytest.raises(WrongUseError, match="no such phase"):
        again.wanted("day9")


def test_an_interrupted_phase_is_played_again_and_its_bodies_count_as_redelivered(tmp_path: Path) -> None:
    begin(tmp_path, 400, 3).phase_begins(Phase.DAY1)
    again = begin(tmp_path, None, None)
    assert not again.redelivered
    again.phase_begins(Phase.DAY1)
    assert again.redelivered
    again.phase_ends(Phase.DAY1)
    assert begin(tmp_path, None, None).redelivered


def test_a_home_has_one_emulation_of_one_size_and_seed(tmp_path: Path) -> None:
    begin(tmp_path, 400, 3).phase_begins(Phase.DAY1)
    with pytest.raises(WrongUseError, match="another emulation"):
        begin(tmp_path, 500, None)


def test_a_damaged_log_is_an_error_that_names_it(tmp_path: Path) -> None:
    begin(tmp_path, 400, 3).phase_begins(Phase.DAY1)
    file = tmp_path / "emulation" / "emulation.json"
    file.write_text('{"size": 400')
    with pytest.raises(LeanOpsError, match=r"emulation\.json"):
        begin(tmp_path, None, None)


@pytest.mark.parametrize("size", [0, 399, 10_000_001])
def test_a_size_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(WrongUseError, match="--size"):
        Emulation(size=size)
