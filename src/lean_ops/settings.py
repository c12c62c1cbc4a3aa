"""Settings: parsed once from defaults, file, environment and flags; frozen; each knows where it came from."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from lean_ops.model.errors import WrongUseError
from lean_ops.model.tables import Names

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME: Final = "lean-ops.toml"
ENV_PREFIX: Final = "LEAN_OPS_"
_MB: Final = 1024 * 1024


class Settings(BaseModel):
    """Everything that can be set. Field descriptions are what `lean-ops config` shows."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    home: Path = Field(Path(".lean-ops"), description="folder of the embedded lake, its state and schemas")
    profile: Literal["embedded"] = Field("embedded", description="where it runs")
    database_prefix: str = Field("", pattern=r"^[a-z0-9_]{0,40}$", description="separates environments in one catalog")

    max_body_bytes: int = Field(10 * _MB, ge=1024, le=1024 * _MB, description="a larger queue body is a dead letter")
    flush_bytes: int = Field(64 * _MB, ge=1024, le=1024 * _MB, description="ingestion commits after this many bytes")
    flush_seconds: float = Field(300, gt=0, description="ingestion commits at the latest after this time")

    column_limit: int = Field(1000, ge=1, le=5000, description="payload columns of a topic; later leaves go to _extra")
    curated_buckets: int = Field(0, ge=0, le=4096, description="buckets by key of Curated tables; 0: by their rows")
    lease_seconds: int = Field(300, ge=5, description="a topic's lease; renewed while its runner works")
    failures_before_pause: int = Field(3, ge=1, description="failed batches in a row until a topic is paused")
    workers: int = Field(
        4, ge=1, le=64, description="topics processed at the same time; of small ones eight times as many"
    )
    format_version: int = Field(2, ge=2, le=3, description="Iceberg format of new tables")

    pii_key: SecretStr | None = Field(None, min_length=16, description="key of `pii: hash`; no such schema without it")

    spark_master: str = Field("local[*]", min_length=1, description="Spark master address")
    spark_driver_memory: str = Field("2g", pattern=r"^[1-9][0-9]*[mg]$", description="memory of the embedded Spark")
    spark_java_options: str = Field("", description="more options for the embedded Spark's Java")
    cache_dir: Path = Field(
        Path("~/.cache/lean-ops"), description="Iceberg jars and the Java wrapper, fetched or made once"
    )

    @property
    def names(self) -> Names:
        """The names of all tables."""
        return Names(self.database_prefix)

    @property
    def catalog_file(self) -> Path:
        """The SQLite catalog that pyiceberg and Spark share."""
        return self.home / "catalog.db"

    @property
    def warehouse(self) -> Path:
        """The tables' files."""
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


class LoadedSettings(BaseModel):
    """Settings with the origin of each value."""

    model_config = ConfigDict(frozen=True)

    settings: Settings
    origins: dict[str, str]


def load_settings(flags: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> LoadedSettings:
    """Settings from all four places; a wrong key or value is an error that names its place."""
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
    return LoadedSettings(
        settings=settings, origins={key: origins.get(key, "default") for key in Settings.model_fields}
    )


def _from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for variable, value in environ.items():
        if variable.startswith(ENV_PREFIX):
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
            found="a secret" if key == "pii_key" else repr(values.get(key)),
            expected=_allowed(key),
            remedy="`lean-ops config` lists every setting.",
        ) from error
    return settings.model_copy(
        update={"home": settings.home.expanduser().absolute(), "cache_dir": settings.cache_dir.expanduser().absolute()}
    )


def _allowed(key: str) -> str:
    field = Settings.model_fields.get(key)
    if field is None:
        return f"one of {', '.join(Settings.model_fields)}"
    limits = ", ".join(str(limit) for limit in field.metadata)
    kind = getattr(field.annotation, "__name__", str(field.annotation))
    return f"{kind} ({field.description}{'; ' + limits if limits else ''}; default {field.default})"
