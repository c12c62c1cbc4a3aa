"""Settings: parsed once from defaults, file, environment and flags; frozen; each knows where it came from."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from lean_ops.model.errors import WrongUseError
from lean_ops.model.tables import Names

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

FILE_NAME: Final = "lean-ops.toml"
ENV_PREFIX: Final = "LEAN_OPS_"
# Variables of these parts are read by the parts themselves: they have no settings of the lake.
_OTHER_PREFIXES: Final = (f"{ENV_PREFIX}BRIDGE_", f"{ENV_PREFIX}TESTS_")
_MB: Final = 1024 * 1024
_NAME: Final = r"^[A-Za-z0-9_-]{1,40}$"
_BUCKET: Final = r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"
# What the whole product needs on AWS; a function that does less asks for less.
AWS_NEEDS: Final = ("environment", "warehouse", "schema_bucket", "archive_bucket")
_AWS_ONLY: Final = frozenset(
    {
        *AWS_NEEDS,
        "project",
        "region",
        "catalog",
        "catalog_uri",
        "catalog_credential",
        "delivery_stream",
        "alert_topic_arn",
        "group_size",
        "pii_key_secret_arn",
    }
)
_REST_ONLY: Final = ("catalog_uri", "catalog_credential")
_SECRETS: Final = frozenset({"pii_key", "catalog_credential"})


class Settings(BaseModel):
    """Everything that can be set. Field descriptions are what `lean-ops config` shows."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    home: Path = Field(Path(".lean-ops"), description="folder of the embedded lake, its state and schemas")
    profile: Literal["embedded", "aws"] = Field("embedded", description="where it runs")
    database_prefix: str = Field("", pattern=r"^[a-z0-9_]{0,40}$", description="separates environments in one catalog")

    max_body_bytes: int = Field(10 * _MB, ge=1024, le=1024 * _MB, description="a larger queue body is a dead letter")
    flush_bytes: int = Field(64 * _MB, ge=1024, le=1024 * _MB, description="ingestion commits after this many bytes")
    flush_seconds: float = Field(300, gt=0, description="ingestion commits at the latest after this time")

    column_limit: int = Field(1000, ge=1, le=5000, description="payload columns of a topic; later leaves go to _extra")
    curated_buckets: int = Field(0, ge=0, le=4096, description="buckets by key of Curated tables; 0: by their rows")
    lease_seconds: int = Field(300, ge=5, description="a topic's lease; renewed while its runner works")
    failures_before_pause: int = Field(3, ge=1, description="failed batches in a row until a topic is paused")
    workers: int = Field(
        4, ge=1, le=64, description="topics processed at the same time; of small ones seven times as many"
    )
    format_version: int = Field(2, ge=2, le=3, description="Iceberg format of new tables")

    pii_key: SecretStr | None = Field(None, min_length=16, description="key of `pii: hash`; no such schema without it")

    spark_master: str = Field("local[*]", min_length=1, description="Spark master address")
    spark_driver_memory: str = Field("2g", pattern=r"^[1-9][0-9]*[mg]$", description="memory of the embedded Spark")
    spark_java_options: str = Field("", description="more options for the embedded Spark's Java")
    cache_dir: Path = Field(
        Path("~/.cache/lean-ops"), description="jars, the Java wrapper and classes, fetched or made once"
    )

    project: str = Field("lean-ops", pattern=_NAME, description="aws: first part of the name of every resource")
    environment: str | None = Field(None, pattern=_NAME, description="aws: second part of it, such as dev or prod")
    region: str | None = Field(
        None, pattern=r"^[a-z]{2,}(-[a-z]+)+-[0-9]+$", description="aws: the region; else what AWS' own settings say"
    )
    catalog: Literal["glue", "rest"] = Field("glue", description="aws: the Glue Data Catalog, or an Iceberg REST one")
    catalog_uri: str | None = Field(
        None, pattern=r"^https?://[^\s]+$", description="aws: where the REST catalog is; only with catalog rest"
    )
    catalog_credential: SecretStr | None = Field(
        None, min_length=1, description="aws: id and secret for the REST catalog, ID:SECRET; only with catalog rest"
    )
    warehouse: str | None = Field(
        None, min_length=1, max_length=512, description="aws: where the tables lie, s3://BUCKET/PREFIX"
    )
    schema_bucket: str | None = Field(None, pattern=_BUCKET, description="aws: the bucket with schemas/")
    archive_bucket: str | None = Field(None, pattern=_BUCKET, description="aws: the bucket with dlq-archive/")
    delivery_stream: str | None = Field(None, min_length=1, description="aws: the Firehose stream into RAW")
    alert_topic_arn: str | None = Field(None, pattern=r"^arn:[^\s]+$", description="aws: the SNS topic of alerts")
    pii_key_secret_arn: str | None = Field(
        None, pattern=r"^arn:[^\s]+$", description="aws: the secret with the key of `pii: hash`, instead of `pii_key`"
    )
    group_size: int = Field(25, ge=1, le=200, description="aws: topics that one job of the state machine takes")

    @property
    def names(self) -> Names:
        """The names of all tables."""
        return Names(self.database_prefix)

    @property
    def catalog_file(self) -> Path:
        """The SQLite catalog that pyiceberg and Spark share."""
        return self.home / "catalog.db"

    @property
    def warehouse_dir(self) -> Path:
        """The tables' files of the embedded lake."""
        return self.home / "warehouse"

    @property
    def state_file(self) -> Path:
        """Checkpoints, leases and the registry."""
        return self.home / "state.db"

    @property
    def schemas_dir(self) -> Path:
        """Pending, active, failed and archived schemas of each topic."""
        return self.home / "schemas"

    @property
    def archive_dir(self) -> Path:
        """What ingestion refused."""
        return self.home / "dlq-archive"

    @property
    def logs_dir(self) -> Path:
        """What Spark has to say."""
        return self.home / "logs"

    def given(self, key: str) -> str:
        """A setting that has no default, for a part that can't do without it; WrongUseError if nobody gave it."""
        value = getattr(self, key)
        if value is None:
            raise _missing(key)
        return str(value)


class LoadedSettings(BaseModel):
    """Settings with the origin of each value."""

    model_config = ConfigDict(frozen=True)

    settings: Settings
    origins: dict[str, str]


def load_settings(
    flags: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    aws_needs: Collection[str] = AWS_NEEDS,
) -> LoadedSettings:
    """Settings from all four places; a wrong key or value is an error that names its place.

    In the aws profile `aws_needs` must be given.
    """
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in flags.items() if value is not None}
    values, origins = _from_environment(environ)
    home = Path(given.get("home") or values.get("home") or Settings.model_fields["home"].default)
    file = _settings_file(home)
    if file is not None:
        for key, value in _read_file(file).items():
            if key not in values:
                values[key], origins[key] = value, str(file)
    for key, value in given.items():
        values[key], origins[key] = value, f"--{key.replace('_', '-')}"
    settings = _validated(values, origins)
    _refuse_combination(settings, origins, aws_needs)
    return LoadedSettings(
        settings=settings, origins={key: origins.get(key, "default") for key in Settings.model_fields}
    )


def _from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for variable, value in environ.items():
        if variable.startswith(ENV_PREFIX) and not variable.startswith(_OTHER_PREFIXES):
            key = variable.removeprefix(ENV_PREFIX).lower()
            values[key], origins[key] = value, variable
    return values, origins


def _settings_file(home: Path) -> Path | None:
    """The home's file, else the working directory's."""
    return next((file for file in (home / FILE_NAME, Path(FILE_NAME)) if file.is_file()), None)


def _read_file(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongUseError("not a TOML file", where=str(file), found=str(error)) from error
    except OSError as error:
        raise WrongUseError("can't be read", where=str(file), found=str(error)) from error
    if "home" in values:
        raise WrongUseError("the home can't be set in the file that is found by it", where=f"{file}, key 'home'")
    return values


def _validated(values: dict[str, Any], origins: dict[str, str]) -> Settings:
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        raise WrongUseError(
            "no such setting" if first["type"] == "extra_forbidden" else str(first["msg"]),
            where=f"{origins.get(key, 'default')}, key '{key}'",
            found="a secret" if key in _SECRETS else repr(values.get(key)),
            expected=_allowed(key),
            remedy="`lean-ops config` lists every setting.",
        ) from error
    return settings.model_copy(
        update={"home": settings.home.expanduser().absolute(), "cache_dir": settings.cache_dir.expanduser().absolute()}
    )


def _refuse_combination(settings: Settings, origins: Mapping[str, str], aws_needs: Collection[str]) -> None:
    """WrongUseError if two settings contradict each other, or one is missing that the profile needs."""
    if settings.profile == "embedded":
        for key in sorted(_AWS_ONLY & origins.keys()):
            # Otherwise a forgotten profile would write to a local folder what was meant for the account.
            raise _contradiction(key, origins, "only the aws profile has this setting", "profile 'aws', or no such key")
        return
    for key in aws_needs:
        if getattr(settings, key) is None:
            raise _missing(key)
    if settings.pii_key is not None and settings.pii_key_secret_arn is not None:
        what = "there is a key already, in 'pii_key'"
        raise _contradiction("pii_key_secret_arn", origins, what, "one of the two")
    if settings.catalog == "rest" and settings.catalog_uri is None:
        raise _missing("catalog_uri")
    if settings.catalog == "glue":
        _refuse_with_glue(settings, origins)


def _refuse_with_glue(settings: Settings, origins: Mapping[str, str]) -> None:
    for key in _REST_ONLY:
        if getattr(settings, key) is not None:
            raise _contradiction(key, origins, "the Glue catalog has none", "catalog 'rest', or no such key")
    if settings.warehouse is not None and not _is_s3_address(settings.warehouse):
        what = f"{settings.warehouse!r} is no place for tables of the Glue catalog"
        raise _contradiction("warehouse", origins, what, "s3://BUCKET or s3://BUCKET/PREFIX")


def _is_s3_address(warehouse: str) -> bool:
    bucket, _, prefix = warehouse.removeprefix("s3://").partition("/")
    return warehouse.startswith("s3://") and bool(re.match(_BUCKET, bucket)) and not re.search(r"\s|//", prefix)


def _contradiction(key: str, origins: Mapping[str, str], what: str, expected: str) -> WrongUseError:
    return WrongUseError(what, where=f"{origins.get(key, 'default')}, key '{key}'", expected=expected)


def _missing(key: str) -> WrongUseError:
    return WrongUseError(
        "the aws profile needs this setting",
        where=f"key '{key}'",
        found="nothing",
        expected=_allowed(key),
        remedy=f"Set {ENV_PREFIX}{key.upper()}, or write it into {FILE_NAME}.",
    )


def _allowed(key: str) -> str:
    field = Settings.model_fields.get(key)
    if field is None:
        return f"one of {', '.join(Settings.model_fields)}"
    limits = ", ".join(str(limit) for limit in field.metadata)
    kind = getattr(field.annotation, "__name__", str(field.annotation))
    return f"{kind} ({field.description}{'; ' + limits if limits else ''}; default {field.default})"
