from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lean_ops.model.errors import WrongUseError
from lean_ops.settings import FILE_NAME, LoadedSettings, Settings, load_settings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees a settings file of the folder it happens to run in."""
    (tmp_path / "cwd").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def load(home: Path, text: str | None = None, environ: dict[str, str] | None = None, **flags: Any) -> LoadedSettings:
    if text is not None:
        (home / FILE_NAME).write_text(text)
    return load_settings({"home": home, **flags}, environ or {})


def test_defaults_hold_when_nothing_is_given() -> None:
    loaded = load_settings({}, {})

    assert loaded.settings.home == Path.cwd() / ".lean-ops"
    assert loaded.settings.cache_dir == Path("~/.cache/lean-ops").expanduser()
    assert set(loaded.origins) == set(Settings.model_fields)
    assert set(loaded.origins.values()) == {"default"}


def test_file_beats_default_environment_beats_file_flag_beats_all(home: Path) -> None:
    text = 'workers = 5\nprofile = "embedded"\ncolumn_limit = 10\n'
    environ = {"LEAN_OPS_WORKERS": "6", "LEAN_OPS_LEASE_SECONDS": "60"}

    loaded = load(home, text, environ, lease_seconds=90)

    settings = loaded.settings
    assert (settings.column_limit, settings.workers, settings.lease_seconds) == (10, 6, 90)
    assert loaded.origins["column_limit"] == str(home / FILE_NAME)
    assert loaded.origins["workers"] == "LEAN_OPS_WORKERS"
    assert loaded.origins["lease_seconds"] == "--lease-seconds"
    assert loaded.origins["format_version"] == "default"


def test_a_flag_that_was_not_given_changes_nothing(home: Path) -> None:
    assert load(home, "workers = 5", workers=None).settings.workers == 5


def test_the_homes_file_is_read_before_the_working_directorys(home: Path) -> None:
    Path(FILE_NAME).write_text("workers = 7")
    assert load(home).settings.workers == 7

    assert load(home, "workers = 5").settings.workers == 5


def test_the_home_named_in_the_environment_leads_to_its_file(home: Path) -> None:
    (home / FILE_NAME).write_text("workers = 5")

    loaded = load_settings({}, {"LEAN_OPS_HOME": str(home)})

    assert (loaded.settings.home, loaded.settings.workers) == (home, 5)


def test_values_of_the_environment_are_read_as_their_type(home: Path) -> None:
    environ = {"LEAN_OPS_FLUSH_SECONDS": "1.5", "LEAN_OPS_WORKERS": "3", "LEAN_OPS_CACHE_DIR": "~/x"}

    settings = load(home, environ=environ).settings

    assert (settings.flush_seconds, settings.workers) == (1.5, 3)
    assert settings.cache_dir == Path("~/x").expanduser()


def test_the_format_version_can_come_from_the_environment(home: Path) -> None:
    assert load(home, environ={"LEAN_OPS_FORMAT_VERSION": "3"}).settings.format_version == 3


def test_new_curated_tables_have_no_buckets_unless_a_setting_says_so(home: Path) -> None:
    assert load(home).settings.curated_buckets == 0
    assert load(home, "curated_buckets = 16").settings.curated_buckets == 16


def test_other_variables_are_left_alone(home: Path) -> None:
    assert load(home, environ={"LEAN_OPSWORKERS": "x", "WORKERS": "x"}).settings.workers == Settings().workers


def test_settings_are_frozen(home: Path) -> None:
    with pytest.raises(ValidationError):
        load(home).settings.workers = 9  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "key", "allowed"),
    [
        ("wrokers = 5", "wrokers", "workers"),
        ("workers = 0", "workers", "ge=1"),
        ("workers = 65", "workers", "le=64"),
        ('workers = "many"', "workers", "int"),
        ('profile = "moon"', "profile", "embedded"),
        ("format_version = 4", "format_version", "less than or equal to 3"),
        ('database_prefix = "Prod-"', "database_prefix", "a-z0-9_"),
        ('spark_driver_memory = "2 GB"', "spark_driver_memory", "[mg]"),
        ("flush_seconds = 0", "flush_seconds", "gt=0"),
        ("curated_buckets = -1", "curated_buckets", "ge=0"),
        ("curated_buckets = 4097", "curated_buckets", "le=4096"),
        ('spark_master = ""', "spark_master", "min_length=1"),
        ("[workers]\nx = 1", "workers", "int"),
    ],
)
def test_a_wrong_setting_names_the_file_the_key_and_what_is_allowed(
    home: Path, text: str, key: str, allowed: str
) -> None:
    with pytest.raises(WrongUseError) as caught:
        load(home, text)

    message = str(caught.value)
    assert str(home / FILE_NAME) in message
    assert f"key '{key}'" in message
    assert allowed in message


@pytest.mark.parametrize("variable", ["LEAN_OPS_WORKERS", "LEAN_OPS_NO_SUCH_THING"])
def test_a_wrong_variable_is_named(home: Path, variable: str) -> None:
    with pytest.raises(WrongUseError, match=variable):
        load(home, environ={variable: "x"})


def test_a_wrong_flag_is_named(home: Path) -> None:
    with pytest.raises(WrongUseError, match="--profile"):
        load(home, profile="moon")


@pytest.mark.parametrize("content", [b"workers = ", b"\xff\xfe", b"a = 1\na = 2"])
def test_a_file_that_is_no_toml_is_named(home: Path, content: bytes) -> None:
    (home / FILE_NAME).write_bytes(content)

    with pytest.raises(WrongUseError, match="not a TOML file") as caught:
        load(home)

    assert str(home / FILE_NAME) in str(caught.value)


def test_the_file_cannot_move_the_home_it_was_found_by(home: Path) -> None:
    with pytest.raises(WrongUseError, match="home"):
        load(home, 'home = "/elsewhere"')


def test_everything_of_a_home_lies_in_it(home: Path) -> None:
    settings = load(home).settings

    for path in (settings.catalog_file, settings.warehouse_dir, settings.state_file, settings.schemas_dir):
        assert path.is_relative_to(home)


# the aws profile

AWS = {
    "profile": "aws",
    "environment": "dev",
    "warehouse": "s3://lake/warehouse",
    "schema_bucket": "acme-schemas",
    "archive_bucket": "acme-archive",
}


def aws_text(**changes: str | None) -> str:
    values = {key: value for key, value in {**AWS, **changes}.items() if value is not None}
    return "".join(f'{key} = "{value}"\n' for key, value in values.items())


def test_the_aws_profile_is_there_with_what_it_needs_and_defaults_for_the_rest(home: Path) -> None:
    settings = load(home, aws_text()).settings

    assert (settings.profile, settings.project, settings.environment) == ("aws", "lean-ops", "dev")
    assert (settings.warehouse, settings.catalog, settings.region) == ("s3://lake/warehouse", "glue", None)
    assert (settings.schema_bucket, settings.archive_bucket, settings.group_size) == (
        "acme-schemas",
        "acme-archive",
        25,
    )


def test_a_function_is_told_by_its_environment_variables() -> None:
    environ = {f"LEAN_OPS_{key.upper()}": value for key, value in AWS.items()}

    loaded = load_settings({}, {**environ, "LEAN_OPS_DATABASE_PREFIX": "p_", "LEAN_OPS_GROUP_SIZE": "7"})

    assert (loaded.settings.names.raw_database, loaded.settings.group_size) == ("p_iceberg_raw_db", 7)
    assert loaded.origins["schema_bucket"] == "LEAN_OPS_SCHEMA_BUCKET"


@pytest.mark.parametrize("key", ["environment", "warehouse", "schema_bucket", "archive_bucket"])
def test_what_the_aws_profile_needs_is_named_when_it_is_missing(home: Path, key: str) -> None:
    with pytest.raises(WrongUseError) as caught:
        load(home, aws_text(**{key: None}))

    message = str(caught.value)
    assert f"key '{key}'" in message
    assert f"LEAN_OPS_{key.upper()}" in message
    assert FILE_NAME in message


def test_a_function_that_does_less_needs_less() -> None:
    environ = {"LEAN_OPS_ENVIRONMENT": "dev", "LEAN_OPS_WAREHOUSE": "s3://lake"}

    settings = load_settings({"profile": "aws"}, environ, aws_needs=("environment", "warehouse")).settings

    assert settings.given("warehouse") == "s3://lake"
    with pytest.raises(WrongUseError, match="key 'schema_bucket'"):
        settings.given("schema_bucket")


@pytest.mark.parametrize("key", sorted({*AWS, "project", "region", "catalog"} - {"profile"}))
def test_a_setting_of_the_aws_profile_is_refused_in_the_embedded_one(home: Path, key: str) -> None:
    value = {**AWS, "project": "x", "region": "eu-central-1", "catalog": "glue"}[key]

    with pytest.raises(WrongUseError, match="only the aws profile") as caught:
        load(home, f'{key} = "{value}"')

    assert f"{home / FILE_NAME}, key '{key}'" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "key", "allowed"),
    [
        ({"warehouse": "/data/lake"}, "warehouse", "s3://BUCKET"),
        ({"warehouse": "s3://"}, "warehouse", "s3://BUCKET"),
        ({"warehouse": "s3://lake/a b"}, "warehouse", "s3://BUCKET"),
        ({"warehouse": "s3://Lake"}, "warehouse", "s3://BUCKET"),
        ({"catalog": "hive"}, "catalog", "rest"),
        ({"catalog": "rest"}, "catalog_uri", "catalog_uri"),
        ({"catalog_uri": "http://catalog"}, "catalog_uri", "catalog 'rest'"),
        ({"catalog_credential": "id:secret"}, "catalog_credential", "catalog 'rest'"),
        ({"catalog": "rest", "catalog_uri": "ftp://x"}, "catalog_uri", "https?"),
        ({"schema_bucket": "Not A Bucket"}, "schema_bucket", "a-z0-9"),
        ({"region": "here"}, "region", "region"),
        ({"environment": "a/b"}, "environment", "A-Za-z0-9"),
        ({"pii_key_secret_arn": "the secret"}, "pii_key_secret_arn", "arn:"),
        ({"pii_key_secret_arn": "arn:aws:x", "pii_key": "k" * 16}, "pii_key_secret_arn", "one of the two"),
    ],
)
def test_a_wrong_combination_on_aws_names_the_key_and_what_is_allowed(
    home: Path, changes: dict[str, str], key: str, allowed: str
) -> None:
    with pytest.raises(WrongUseError) as caught:
        load(home, aws_text(**changes))

    assert f"key '{key}'" in str(caught.value)
    assert allowed in str(caught.value)


def test_a_rest_catalog_decides_itself_what_a_warehouse_is(home: Path) -> None:
    text = aws_text(catalog="rest", catalog_uri="https://catalog.example/api", warehouse="analytics")

    assert load(home, text).settings.warehouse == "analytics"


def test_a_secret_is_never_told(home: Path) -> None:
    text = aws_text(catalog="rest", catalog_uri="https://catalog.example/api", catalog_credential="id:hush")
    assert "hush" not in repr(load(home, text))

    with pytest.raises(WrongUseError) as caught:
        load(home, environ={"LEAN_OPS_PII_KEY": "hush"})

    assert "hush" not in str(caught.value)


def test_variables_of_the_bridge_and_of_the_tests_are_no_settings(home: Path) -> None:
    environ = {"LEAN_OPS_BRIDGE_GCP_PROJECT": "x", "LEAN_OPS_TESTS_WITHOUT_SERVERS": "1"}

    assert set(load(home, environ=environ).origins.values()) == {"default", "--home"}
