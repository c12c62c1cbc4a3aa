"""What can differ between a lake and an oracle, one thing at a time, and what must be found of it."""

from __future__ import annotations

from tests.integration.reconcile_home import DAY, message
from tests.integration.verify_home import Change, Story, curated, dead, letter, line, refused

from lean_ops.model.batch import Counts

Found = dict[str, list[str]]  # by message id what differs


def as_told(story: Story) -> None:
    pass


# right in other ways


def waits(story: Story) -> None:
    """m6 waits for Curated, m7 and its copy for Standardized, and m3's late copy too."""
    story.lake.raw += [[message("m6", "k6")], [message("m7", "k7"), message("m7", "k7"), message("m3", "k2")]]
    story.lake.standardized.append([message("m6", "k6", "b3")])
    story.lake.counts |= {"f3": Counts(1, inserted=1), "f4": Counts(3, inserted=3), "b3": Counts(1, inserted=1)}
    story.fates += [line(8, "m6", "pending", idempotency_key="k6"), line(11, "m3", "pending", idempotency_key="k2")]
    story.fates += [line(9, "m7", "pending", idempotency_key="k7"), line(10, "m7", "pending", idempotency_key="k7")]


def open_batch(story: Story) -> None:
    """The error rows of a batch that is not published belong to records that still wait."""
    story.lake.raw.append([message("worse")])
    story.lake.counts["f3"] = Counts(1, inserted=1)
    story.lake.parse_errors.append(refused("worse", "open", "INVALID_JSON"))
    story.fates.append(line(8, "worse", "pending"))


def only_standardized(story: Story) -> None:
    story.lake.curated, story.lake.errors = [], []
    for number in (1, 5, 6, 7):
        story.fates[number - 1] |= {
            "fate": "standardized",
            "reason": None,
            "version": None,
            "fields": None,
            "curated": None,
        }


def untold(story: Story) -> None:
    """What a line does not say is not compared."""
    for row in story.fates:
        for member in ("reason", "fields", "version", "curated"):
            row.pop(member, None)


def some_columns(story: Story) -> None:
    story.of("m2")["curated"] = {"amount": "+19.900", "quality": "0.9120"}
    story.of("m3")["curated"] = {}


def same_id_another_time(story: Story) -> None:
    """A message is its id and its time."""
    later = {"publish_time": DAY.replace(hour=11)}
    story.lake.raw[1].append({**message("m3", "k9"), **later})
    story.lake.standardized[1].append({**message("m3", "k9", "b2"), **later})
    story.lake.curated[1].append({**curated("m3", "k9", note="later"), **later})
    story.lake.counts |= {"f2": Counts(4, inserted=4), "b2": Counts(4, inserted=4), "c2": Counts(4, 2, 1, errors=1)}
    more = {"idempotency_key": "k9", "publish_time": "2026-02-03T12:00:00+01:00", "curated": {"note": "later"}}
    story.fates.append({**line(8, "m3", "curated"), **more})


def hostile(story: Story) -> None:
    """Ids, keys and values that are no pleasant text."""
    for text in ('it\'s "quoted"; DROP TABLE told; --', "[bold]x[/bold]\x1b[31m", "nul\x00\nline\u2028", "x" * 100_000):
        story.lake.raw[1].append(message(text, text))
        story.lake.standardized[1].append(message(text, text, "b2"))
        story.lake.curated[1].append(curated(text, text, note=text))
        values = {"note": text}
        story.fates.append(line(8, text, "curated", idempotency_key=text, version=text, curated=values, kind=text))
    story.lake.counts |= {"f2": Counts(7, inserted=7), "b2": Counts(7, inserted=7), "c2": Counts(7, 5, 1, errors=1)}


RIGHT: dict[str, Change] = {
    "as_told": as_told,
    "waits": waits,
    "open_batch": open_batch,
    "only_standardized": only_standardized,
    "untold": untold,
    "some_columns": some_columns,
    "same_id_another_time": same_id_another_time,
    "hostile": hostile,
}


# the lake is wrong


def never_came(story: Story) -> None:
    story.fates.append(line(8, "m9", "curated", idempotency_key="k9"))


def copy_never_came(story: Story) -> None:
    story.fates.append(line(8, "m3", "duplicate", idempotency_key="k2"))


def copy_too_many(story: Story) -> None:
    story.lake.raw[1].append(message("m3", "k2"))
    story.lake.counts |= {"f2": Counts(4, inserted=4), "b2": Counts(4, inserted=3, duplicates=1)}


def lost_on_the_way(story: Story) -> None:
    story.lake.raw[1].append(message("m5", "k5"))
    story.lake.counts |= {"f2": Counts(4, inserted=4), "b2": Counts(4, inserted=4)}
    story.fates.append(line(8, "m5", "curated", idempotency_key="k5"))


def lost_before_curated(story: Story) -> None:
    story.lake.curated[1].pop()


def not_refused(story: Story) -> None:
    """An error that was expected passed."""
    story.lake.errors.clear()
    story.lake.raw[1][2] = message("m4", "k4")
    story.lake.standardized[1][2] = message("m4", "k4", "b2")
    story.lake.curated[1].append(curated("m4", "k4"))
    story.of("m4")["idempotency_key"] = "k4"


def refused_wrongly(story: Story) -> None:
    story.lake.curated[1].pop()
    story.lake.errors.append(refused("m3", "c2", "TYPE_CAST", ["amount"]))


def older_one_won(story: Story) -> None:
    story.lake.curated[1][0] = curated("m1", "k1")


def not_read_yet(story: Story) -> None:
    story.lake.raw.append([message("m6", "k6")])
    story.lake.counts["f3"] = Counts(1, inserted=1)
    story.fates.append(line(8, "m6", "standardized", idempotency_key="k6"))


def read_already(story: Story) -> None:
    story.of("m3")["fate"] = "pending"


def other_parse_reason(story: Story) -> None:
    story.lake.parse_errors[0]["error_type"] = "NOT_AN_OBJECT"


def other_error_reason(story: Story) -> None:
    story.lake.errors[0]["error_type"] = "TYPE_CAST"


def other_error_fields(story: Story) -> None:
    story.lake.errors[0]["error_fields"] = ["idempotency_key"]


def no_error_fields(story: Story) -> None:
    story.lake.errors[0]["error_fields"] = None


def other_version(story: Story) -> None:
    story.of("m1")["version"] = "m9"


def other_amount(story: Story) -> None:
    story.lake.curated[1][1]["amount"] += 1


def null_value(story: Story) -> None:
    story.lake.curated[1][1]["quality"] = None


def value_for_null(story: Story) -> None:
    story.lake.curated[1][1]["note"] = ""


def column_missing(story: Story) -> None:
    story.of("m3")["curated"] = {"amount": "19.90", "no\nsuch 'column\"/~": "x"}


def raw_key_lost(story: Story) -> None:
    story.lake.raw[1][1]["idempotency_key"] = None


def raw_key_of_a_copy(story: Story) -> None:
    story.lake.raw[0][1]["idempotency_key"] = "k9"


def raw_key_of_a_copy_lost(story: Story) -> None:
    story.lake.raw[0][1]["idempotency_key"] = None


def curated_key_swapped(story: Story) -> None:
    story.lake.curated[1][1]["idempotency_key"] = "k9"


def standardized_twice(story: Story) -> None:
    story.lake.standardized[1].append(message("m3", "k2", "b2"))


def parse_error_twice(story: Story) -> None:
    story.lake.parse_errors *= 2


def error_twice(story: Story) -> None:
    story.lake.errors *= 2


def curated_twice(story: Story) -> None:
    story.lake.curated[1].append(curated("m3", "k2"))


def key_twice(story: Story) -> None:
    """By a message that no line knows."""
    story.lake.curated[1].append(curated("ghost", "k2"))


def in_standardized_and_parse_errors(story: Story) -> None:
    story.lake.parse_errors.append(refused("m3", "b2", "INVALID_JSON"))


def in_curated_and_errors(story: Story) -> None:
    story.lake.errors.append(refused("m3", "c2", "TYPE_CAST", ["amount"]))


def not_in_raw(story: Story) -> None:
    story.lake.raw[1].pop(1)


def letter_lost(story: Story) -> None:
    story.lake.letters.clear()


def letter_twice(story: Story) -> None:
    story.lake.letters *= 2


def other_letter_reason(story: Story) -> None:
    story.lake.letters[0]["error_type"] = "MALFORMED_JSON"


def one_letter_of_two(story: Story) -> None:
    """The same body twice, and one of its letters has another reason."""
    story.lake.letters.append(letter(reason="ARCHIVED"))
    story.fates.append(dead(8))


def refused_at_the_door(story: Story) -> None:
    story.lake.letters.append(letter("what m9 was sent as", "OVERSIZED", message_id="m9"))
    story.fates.append(line(8, "m9", "curated", idempotency_key="k9"))


def told_as_letter(story: Story) -> None:
    """Taken into RAW, although it should have been refused."""
    story.fates.append({**dead(8, "what m3 was sent as"), "message_id": "m3"})
    story.fates.remove(story.of("m3"))


WRONG: dict[str, tuple[Change, Found]] = {
    "never_came": (never_came, {"m9": ["fate"]}),
    "copy_never_came": (copy_never_came, {"m3": ["fate"]}),
    "copy_too_many": (copy_too_many, {"m3": ["fate"]}),
    "lost_on_the_way": (lost_on_the_way, {"m5": ["fate"]}),
    "lost_before_curated": (lost_before_curated, {"m3": ["fate"]}),
    "not_refused": (not_refused, {"m4": ["fate"]}),
    "refused_wrongly": (refused_wrongly, {"m3": ["fate"]}),
    "older_one_won": (older_one_won, {"m1": ["fate"], "m2": ["fate"]}),
    "not_read_yet": (not_read_yet, {"m6": ["fate"]}),
    "read_already": (read_already, {"m3": ["fate"]}),
    "other_parse_reason": (other_parse_reason, {"bad": ["reason"]}),
    "other_error_reason": (other_error_reason, {"m4": ["reason"]}),
    "other_error_fields": (other_error_fields, {"m4": ["fields"]}),
    "no_error_fields": (no_error_fields, {"m4": ["fields"]}),
    "other_version": (other_version, {"m1": ["version"]}),
    "other_amount": (other_amount, {"m3": ["values"]}),
    "null_value": (null_value, {"m3": ["values"]}),
    "value_for_null": (value_for_null, {"m3": ["values"]}),
    "column_missing": (column_missing, {"m3": ["values"]}),
    "raw_key_lost": (raw_key_lost, {"m3": ["raw_key"]}),
    "raw_key_of_a_copy": (raw_key_of_a_copy, {"m1": ["raw_key"]}),
    "raw_key_of_a_copy_lost": (raw_key_of_a_copy_lost, {"m1": ["raw_key"]}),
    "curated_key_swapped": (curated_key_swapped, {"m3": ["curated_key"]}),
    "standardized_twice": (standardized_twice, {"m3": ["doubled"]}),
    "parse_error_twice": (parse_error_twice, {"bad": ["doubled"]}),
    "error_twice": (error_twice, {"m4": ["doubled"]}),
    "curated_twice": (curated_twice, {"m3": ["doubled", "key_twice"]}),
    "key_twice": (key_twice, {"m3": ["version", "key_twice"]}),
    "in_standardized_and_parse_errors": (in_standardized_and_parse_errors, {"m3": ["in_both"]}),
    "in_curated_and_errors": (in_curated_and_errors, {"m3": ["in_both"]}),
    "not_in_raw": (not_in_raw, {"m3": ["unsourced"]}),
    "letter_lost": (letter_lost, {"-": ["fate"]}),
    "letter_twice": (letter_twice, {"-": ["fate"]}),
    "other_letter_reason": (other_letter_reason, {"-": ["reason"]}),
    "one_letter_of_two": (one_letter_of_two, {"-": ["reason"]}),
    "refused_at_the_door": (refused_at_the_door, {"m9": ["fate"]}),
    "told_as_letter": (told_as_letter, {"m3": ["fate"]}),
}


# messages that no line knows


def unknown_message(story: Story) -> None:
    """m3, in three zones, and m4, in errors."""
    story.fates[:] = [row for row in story.fates if row.get("message_id") not in {"m3", "m4"}]


def unknown_refused(story: Story) -> None:
    story.fates.remove(story.of("bad"))


def unknown_letter(story: Story) -> None:
    story.lake.letters.append(letter("another body", "MALFORMED_JSON", message_id="d2"))


UNKNOWN: dict[str, tuple[Change, list[str]]] = {
    "unknown_message": (unknown_message, ["m3", "m4"]),
    "unknown_refused": (unknown_refused, ["bad"]),
    "unknown_letter": (unknown_letter, ["d2"]),
}
