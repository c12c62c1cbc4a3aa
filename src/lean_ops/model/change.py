"""What differs between two schemas of a topic: a list of typed changes that know whether they break."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from lean_ops.model.json_path import format_json_path
from lean_ops.model.tables import ENVELOPE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lean_ops.model.partitioning import PartitionField
    from lean_ops.model.schema import EnvelopeColumn, PayloadColumn, Schema


class ChangeClass(StrEnum):
    """How a change is treated, in rising order; NEW is a topic's first schema."""

    NEW = "NEW"
    COMPATIBLE = "COMPATIBLE"
    ENHANCEMENT = "ENHANCEMENT"
    BREAKING = "BREAKING"

    @property
    def rank(self) -> int:
        """Its place in the order."""
        return list(ChangeClass).index(self)


class ChangeKind(StrEnum):
    """Everything that can differ; the value is how a person reads it."""

    DESCRIPTION = "description changed"
    LAYOUT = "table layout changed"
    DEFAULT = "default changed"
    PRESENCE_LOOSENED = "may be missing now"
    PRESENCE_MARK = "marked differently, required as before"
    RULE_LOOSENED = "rule loosened"
    COLUMN_ADDED = "optional column added"
    TYPE_WIDENED = "type widened"
    ZONE_ADDED = "zone added"
    COLUMN_REMOVED = "column removed"
    REQUIRED_COLUMN_ADDED = "required column added"
    PRESENCE_TIGHTENED = "must be present now"
    RULE_TIGHTENED = "rule tightened"
    TYPE_CHANGED = "type changed"
    FORMAT_CHANGED = "time format changed"
    SOURCE_CHANGED = "source changed"
    PII_CHANGED = "protection of personal data changed"
    VERSION_COLUMN_CHANGED = "version column changed"
    ZONE_REMOVED = "zone removed"
    TABLE_RENAMED = "table renamed"


_MILD: Final = {
    ChangeKind.DESCRIPTION: ChangeClass.COMPATIBLE,
    ChangeKind.LAYOUT: ChangeClass.COMPATIBLE,
    ChangeKind.DEFAULT: ChangeClass.COMPATIBLE,
    ChangeKind.PRESENCE_LOOSENED: ChangeClass.COMPATIBLE,
    ChangeKind.PRESENCE_MARK: ChangeClass.COMPATIBLE,
    ChangeKind.RULE_LOOSENED: ChangeClass.COMPATIBLE,
    ChangeKind.COLUMN_ADDED: ChangeClass.ENHANCEMENT,
    ChangeKind.TYPE_WIDENED: ChangeClass.ENHANCEMENT,
    ChangeKind.ZONE_ADDED: ChangeClass.ENHANCEMENT,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: where in the file, what it was, what it is."""

    kind: ChangeKind
    keys: tuple[str, ...]
    old: str | None = None
    new: str | None = None

    @property
    def change_class(self) -> ChangeClass:
        """How it is treated; a kind that nobody called mild breaks."""
        return _MILD.get(self.kind, ChangeClass.BREAKING)

    @property
    def breaks(self) -> bool:
        """Whether rows or readers that were fine could fail."""
        return self.change_class is ChangeClass.BREAKING

    @property
    def path(self) -> str:
        """The place as a JSON path."""
        return format_json_path(self.keys)

    def to_dict(self) -> dict[str, str | None]:
        """Plain data for `schema_versions` and machines."""
        return {
            "path": self.path,
            "kind": self.kind.name,
            "change_class": self.change_class.value,
            "old": self.old,
            "new": self.new,
        }

    def __str__(self) -> str:
        return f"{self.path}: {self.kind.value} ({_or_none(self.old)} -> {_or_none(self.new)})"


def _or_none(text: str | None) -> str:
    return "none" if text is None else text


def classify(changes: Iterable[Change]) -> ChangeClass:
    """The class of a whole change: that of its heaviest part; no difference at all is COMPATIBLE."""
    classes = (change.change_class for change in changes)
    return max(classes, key=lambda each: each.rank, default=ChangeClass.COMPATIBLE)


def compare(old: Schema, new: Schema) -> tuple[Change, ...]:
    """Every difference but the version number, in the file's order; order of keys is none."""
    return (*_about_table(old, new), *_about_envelope(old, new), *_about_payload(old, new))


def _about_table(old: Schema, new: Schema) -> Iterator[Change]:
    yield from _differs(ChangeKind.TABLE_RENAMED, ("table_name",), old.table_name, new.table_name)
    yield from _differs(ChangeKind.DESCRIPTION, ("description",), old.description, new.description)
    yield from _differs(ChangeKind.VERSION_COLUMN_CHANGED, ("version_column",), old.version_column, new.version_column)
    if old.zones != new.zones:
        kind = ChangeKind.ZONE_ADDED if new.is_curated else ChangeKind.ZONE_REMOVED
        yield from _differs(kind, ("zones",), old.zones, new.zones)
    yield from _differs(ChangeKind.LAYOUT, ("partitioning",), _partitioning(old), _partitioning(new))
    yield from _differs(ChangeKind.LAYOUT, ("table_properties",), old.table_properties, new.table_properties)


def _partitioning(schema: Schema) -> tuple[PartitionField, ...] | None:
    """By meaning, not by spelling; an empty list asks for no partitions, no list leaves it to the pipeline."""
    return None if schema.partitioning is None else schema.partition_fields


def _about_envelope(old: Schema, new: Schema) -> Iterator[Change]:
    for name in ENVELOPE_NAMES:
        keys = ("envelope_columns", name)
        was, now = old.envelope_column(name), new.envelope_column(name)
        yield from _presence(keys, was, now)
        yield from _differs(ChangeKind.DESCRIPTION, (*keys, "description"), was.description, now.description)


def _about_payload(old: Schema, new: Schema) -> Iterator[Change]:
    for name, column in old.payload_columns.items():
        keys = ("payload_columns", name)
        if name in new.payload_columns:
            yield from _about_column(keys, column, new.payload_columns[name])
        else:
            yield Change(ChangeKind.COLUMN_REMOVED, keys, str(column.type), None)
    for name, column in new.payload_columns.items():
        if name not in old.payload_columns:
            kind = ChangeKind.REQUIRED_COLUMN_ADDED if column.must_be_present else ChangeKind.COLUMN_ADDED
            yield Change(kind, ("payload_columns", name), None, str(column.type))


def _about_column(keys: tuple[str, ...], old: PayloadColumn, new: PayloadColumn) -> Iterator[Change]:
    yield from _differs(ChangeKind.SOURCE_CHANGED, (*keys, "json_path"), old.pointer, new.pointer)
    yield from _presence(keys, old, new)
    yield from _differs(ChangeKind.PII_CHANGED, (*keys, "pii"), old.pii, new.pii)
    yield from _differs(ChangeKind.DESCRIPTION, (*keys, "description"), old.description, new.description)
    if old.type != new.type and not old.type.widens_to(new.type):
        # Under another type every value is judged anew: comparing the rules one by one would say nothing.
        yield Change(ChangeKind.TYPE_CHANGED, (*keys, "type"), str(old.type), str(new.type))
        return
    yield from _differs(ChangeKind.TYPE_WIDENED, (*keys, "type"), old.type, new.type)
    yield from _differs(ChangeKind.FORMAT_CHANGED, (*keys, "format"), old.time_format, new.time_format)
    yield from _about_rules(keys, old, new)


def _presence(
    keys: tuple[str, ...], old: EnvelopeColumn | PayloadColumn, new: EnvelopeColumn | PayloadColumn
) -> Iterator[Change]:
    was, now = _marks(old), _marks(new)
    if was == now:
        return
    kind = ChangeKind.PRESENCE_MARK
    if old.must_be_present != new.must_be_present:
        kind = ChangeKind.PRESENCE_TIGHTENED if new.must_be_present else ChangeKind.PRESENCE_LOOSENED
    yield Change(kind, (*keys, "required"), was, now)


def _marks(column: EnvelopeColumn | PayloadColumn) -> str:
    marks = [name for name, is_set in (("required", column.required), ("cde", column.cde)) if is_set]
    return " and ".join(marks) or "optional"


def _about_rules(keys: tuple[str, ...], old: PayloadColumn, new: PayloadColumn) -> Iterator[Change]:
    yield from _default(keys, old, new)
    yield from _enum(keys, old, new)
    yield from _bound((*keys, "min"), _value(old, old.min), _value(new, new.min), raised_is_tighter=True)
    yield from _bound((*keys, "max"), _value(old, old.max), _value(new, new.max), raised_is_tighter=False)
    if old.pattern != new.pattern:  # whether one pattern holds all of another can't be told, so any new one is tighter
        yield _rule((*keys, "pattern"), old.pattern, new.pattern, tighter=new.pattern is not None)


def _default(keys: tuple[str, ...], old: PayloadColumn, new: PayloadColumn) -> Iterator[Change]:
    was, now = _value(old, old.default), _value(new, new.default)
    # What a required column's default has filled so far would be refused without it.
    missed = now is None and new.must_be_present
    kind = ChangeKind.PRESENCE_TIGHTENED if missed else ChangeKind.DEFAULT
    yield from _differs(kind, (*keys, "default"), was, now)


def _enum(keys: tuple[str, ...], old: PayloadColumn, new: PayloadColumn) -> Iterator[Change]:
    was = None if old.enum is None else {old.value_of(literal) for literal in old.enum}
    now = None if new.enum is None else {new.value_of(literal) for literal in new.enum}
    if was != now:
        tighter = now is not None and (was is None or not was <= now)
        yield _rule((*keys, "enum"), _list(old.enum), _list(new.enum), tighter=tighter)


def _list(literals: tuple[str, ...] | None) -> str | None:
    return None if literals is None else ", ".join(literals)


def _bound(keys: tuple[str, ...], old: Any, new: Any, *, raised_is_tighter: bool) -> Iterator[Change]:
    if old != new:
        tighter = new is not None and (old is None or (new > old) == raised_is_tighter)
        yield _rule(keys, old, new, tighter=tighter)


def _rule(keys: tuple[str, ...], old: Any, new: Any, *, tighter: bool) -> Change:
    kind = ChangeKind.RULE_TIGHTENED if tighter else ChangeKind.RULE_LOOSENED
    return Change(kind, keys, _text(old), _text(new))


def _value(column: PayloadColumn, literal: str | None) -> Any:
    return None if literal is None else column.value_of(literal)


def _differs(kind: ChangeKind, keys: tuple[str, ...], old: object, new: object) -> Iterator[Change]:
    if old != new:
        yield Change(kind, keys, _text(old), _text(new))


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={value[key]}" for key in sorted(value))
    return str(value)
