"""A topic's schema file as frozen data. `parse_schema` is the door: it accepts, or tells every problem at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from lean_ops.model.data_type import ALLOWED_TYPES, STRING, DataType, TimeFormat, Value, parse_type
from lean_ops.model.json_path import json_pointer, parse_json_path
from lean_ops.model.partitioning import PartitionField, parse_partition
from lean_ops.model.problem import Problem, SchemaError
from lean_ops.model.schema_rules import column_problems, schema_problems
from lean_ops.model.strict_json import Number, read_document, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pydantic_core import ErrorDetails

ALWAYS_REQUIRED: Final = "idempotency_key"
_VERSION: Final = r"^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$"


def _type_of(value: Any) -> DataType:
    if isinstance(value, DataType):
        return value
    if not isinstance(value, str):
        raise ValueError(ALLOWED_TYPES)  # noqa: TRY004  pydantic turns only a ValueError into a problem
    return parse_type(value)


def _path(value: Any) -> Any:
    """A JSON path as it was written, once it is known to lead somewhere."""
    if isinstance(value, str):
        try:
            parse_json_path(value)
        except ValueError as error:
            raise PydanticCustomError("reason", "{reason}", {"reason": str(error)}) from error
    return value


def _literal_text(value: Any) -> Any:
    """A literal by its text: the form that a payload's value has in Standardized."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.text if isinstance(value, Number) else value


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


Literally: TypeAlias = Annotated[str, BeforeValidator(_literal_text)]
Texts: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_tuple)]


class _Part(BaseModel):
    """A part of the file: frozen, no unknown keys, no silent conversions, all of its problems in one error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    @classmethod
    def _rules(cls, data: Mapping[str, Any]) -> Iterable[Problem]:  # noqa: ARG003  parts without rules of their own
        """What the fields' own types can't say; must bear fields of any type."""
        return ()

    @model_validator(mode="wrap")
    @classmethod
    def _with_all_problems(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        # Rules run on the data as given, so that a wrong field does not hide what else is wrong.
        problems = list(cls._rules(data)) if isinstance(data, dict) else []
        try:
            part = handler(data)
        except ValidationError as error:
            raise _custom([*cls._shape_problems(error), *problems]) from None
        if problems:
            raise _custom(problems)
        return part

    @classmethod
    def _shape_problems(cls, error: ValidationError) -> Iterable[Problem]:
        for detail in error.errors(include_url=False):
            inner = _reported(detail)
            yield from inner or [cls._shape_problem(detail)]

    @classmethod
    def _shape_problem(cls, detail: ErrorDetails) -> Problem:
        keys = detail["loc"]
        field = cls.model_fields.get(str(keys[0])) if keys else None
        expected = field.description if field else f"an object with {', '.join(cls.model_fields)}"
        match detail["type"]:
            case "missing":
                return Problem(keys, "is missing", expected=expected)
            case "extra_forbidden":
                return Problem(keys, "unknown key", shown(keys[-1]), f"one of {', '.join(cls.model_fields)}")
            case "reason":
                return Problem(keys, detail["msg"], shown(detail["input"]), expected)
        return Problem(keys, "wrong value", shown(detail["input"]), expected)


def _reported(detail: ErrorDetails) -> list[Problem]:
    """The problems that an inner part has already told."""
    problems: list[Problem] = detail["ctx"]["problems"] if detail["type"] == "problems" else []
    return [problem.under(*detail["loc"]) for problem in problems]


def _custom(problems: list[Problem]) -> PydanticCustomError:
    return PydanticCustomError("problems", "see the list of problems", {"problems": problems})


class EnvelopeColumn(_Part):
    """What a schema asks of an envelope column."""

    type: Annotated[InstanceOf[DataType], BeforeValidator(_type_of)] | None = Field(None, description=ALLOWED_TYPES)
    required: bool = Field(False, description="true or false")
    cde: bool = Field(False, description="true or false")
    description: str | None = Field(None, description="a text")

    @property
    def must_be_present(self) -> bool:
        """A row without it is refused."""
        return self.required or self.cde


_NOTHING_ASKED: Final = EnvelopeColumn.model_validate({})


class PayloadColumn(_Part):
    """One Curated column: where it comes from, its type and its rules.

    Literals (`default`, `enum`, `min`, `max`) are kept by their text and are written as the payload would write
    them: in the column's `format`.
    """

    json_path: Annotated[str, BeforeValidator(_path)] | None = Field(
        None, description="a JSON path such as $.event.userId or $['odd key']"
    )
    type: Annotated[InstanceOf[DataType], BeforeValidator(_type_of)] = Field(STRING, description=ALLOWED_TYPES)
    format: Literal["iso", "epoch_s", "epoch_ms"] | None = Field(None, description="iso, epoch_s or epoch_ms")
    default: Literally | None = Field(None, description="a value of the column's type")
    required: bool = Field(False, description="true or false")
    cde: bool = Field(False, description="true or false")
    enum: Annotated[tuple[Literally, ...], BeforeValidator(_tuple)] | None = Field(
        None, description="a list of at least one value of the column's type", min_length=1
    )
    pattern: str | None = Field(None, description="a Java regular expression of at most 1000 characters")
    min: Literally | None = Field(None, description="a value of the column's type")
    max: Literally | None = Field(None, description="a value of the column's type")
    pii: Literal["hash", "mask", "drop"] | None = Field(None, description="hash, mask or drop")
    description: str | None = Field(None, description="a text")

    @classmethod
    def _rules(cls, data: Mapping[str, Any]) -> Iterable[Problem]:
        return column_problems(data)

    @property
    def must_be_present(self) -> bool:
        """A row without it is refused."""
        return self.required or self.cde

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The keys of `json_path`."""
        return None if self.json_path is None else parse_json_path(self.json_path)

    @property
    def pointer(self) -> str | None:
        """The JSON pointer of `json_path`; without one the column takes the Standardized column of its own name."""
        return None if self.keys is None else json_pointer(self.keys)

    @property
    def time_format(self) -> TimeFormat:
        """How a TIMESTAMP is written."""
        return TimeFormat(self.format or TimeFormat.ISO)

    def value_of(self, literal: str) -> Value:
        """The value that one of this column's literals stands for."""
        return self.type.value_of(literal, self.time_format)


class Schema(_Part):
    """A whole schema file."""

    schema_version: str = Field(description="a version as 1.0.0", pattern=_VERSION)
    table_name: str = Field(description="the topic's name")
    description: str | None = Field(None, description="a text")
    envelope_columns: dict[str, EnvelopeColumn] = Field(description="an object of envelope columns by name")
    payload_columns: dict[str, PayloadColumn] = Field(description="an object of columns by name")
    version_column: str | None = Field(None, description="the name of a TIMESTAMP payload column")
    zones: Texts = Field(("standardized", "curated"), description='["standardized"] or ["standardized", "curated"]')
    partitioning: Texts | None = Field(None, description='a list of texts such as "bucket(16, idempotency_key)"')
    table_properties: dict[str, str] | None = Field(None, description="an object of texts by property name")

    @classmethod
    def _rules(cls, data: Mapping[str, Any]) -> Iterable[Problem]:
        return schema_problems(data)

    @property
    def version(self) -> tuple[int, int, int]:
        """The version as numbers, so that 1.10.0 is above 1.9.0."""
        major, minor, patch = map(int, self.schema_version.split("."))
        return major, minor, patch

    @property
    def is_curated(self) -> bool:
        """Whether the topic goes on from Standardized to Curated."""
        return "curated" in self.zones

    @property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """What `partitioning` asks for; none if it is empty or, which means another thing, not given."""
        return tuple(parse_partition(text) for text in self.partitioning or ())

    def declared_pointers(self) -> tuple[str, ...]:
        """The JSON pointers that this schema reads, each once, in the file's order."""
        pointers = (column.pointer for column in self.payload_columns.values())
        return tuple(dict.fromkeys(pointer for pointer in pointers if pointer is not None))

    def envelope_column(self, name: str) -> EnvelopeColumn:
        """What the schema asks of an envelope column; the key is always required."""
        column = self.envelope_columns.get(name, _NOTHING_ASKED)
        return column.model_copy(update={"required": True}) if name == ALWAYS_REQUIRED else column


def parse_schema(content: str | bytes, where: str) -> Schema:
    """The schema in a file's content, or SchemaError with every problem it has."""
    document = read_document(content)
    problems = list(document.problems)
    try:
        if document.data is not None or not problems:
            schema = Schema.model_validate(document.data)
    except ValidationError as error:
        problems += [problem for detail in error.errors() for problem in _reported(detail)]
    if problems:
        raise SchemaError(where, problems)
    return schema
