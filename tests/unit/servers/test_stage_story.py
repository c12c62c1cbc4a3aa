"""What three topics are sent on the local AWS, and what the tables must hold at each moment."""

from __future__ import annotations

from collections import Counter

from tests.aws_local.stage_story import FULL, STANDARDIZED_ONLY, TOPICS, WITHOUT_SCHEMA, StageStory, rows_of

STORY = StageStory((dict.fromkeys(TOPICS, 200), dict.fromkeys(TOPICS, 100)), seed=3)


def test_every_body_that_was_sent_has_a_fate() -> None:
    for sent, bodies in ((1, 200), (2, 300)):
        counted = Counter(fate["topic"] for fate in STORY.fates(sent, {FULL: 1}))
        assert counted == dict.fromkeys(TOPICS, bodies)
        assert all(len(STORY.bodies(topic, sent - 1)) == bodies - 200 * (sent - 1) for topic in TOPICS)


def test_a_topic_without_a_schema_waits_in_raw() -> None:
    rows = rows_of(STORY.fates(1, {FULL: 1, STANDARDIZED_ONLY: 1}))[WITHOUT_SCHEMA]
    assert rows["raw"] + rows["dlq_errors"] == 200
    assert rows["standardized"] == rows["curated"] == rows["parse_errors"] == rows["errors"] == 0


def test_a_topic_that_ends_at_standardized_has_no_fate_beyond_it() -> None:
    fates = [fate for fate in STORY.fates(2, {STANDARDIZED_ONLY: 2}) if fate["topic"] == STANDARDIZED_ONLY]
    kinds = {fate["fate"] for fate in fates}
    assert kinds == {"standardized", "duplicate", "parse_error", "dead_letter"}
    assert not any("curated" in fate or "version" in fate for fate in fates)


def test_what_is_sent_later_waits_while_the_first_wave_is_processed() -> None:
    first, both = (rows_of(STORY.fates(sent, {FULL: 1}))[FULL] for sent in (1, 2))
    assert both["raw"] > first["raw"]
    assert {**both, "raw": 0, "dlq_errors": 0} == {**first, "raw": 0, "dlq_errors": 0}
