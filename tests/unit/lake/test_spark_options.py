"""What Spark is told about the work it is started for, and about each batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from lean_ops.lake.spark import SparkSessions, prepare_for
from lean_ops.lake.spark_conf import class_path_after, start_conf
from lean_ops.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_COMPILER = "-XX:TieredStopAtLevel=1"


@pytest.fixture
def sessions(tmp_path: Path) -> SparkSessions:
    return SparkSessions(Settings(home=tmp_path / "home", spark_java_options="-Dmine=1"), lambda _: None)


def java_options(sessions: SparkSessions) -> list[str]:
    return start_conf(sessions._settings, ((), ()), sessions._is_brief)["spark.driver.extraJavaOptions"].split()


@pytest.mark.parametrize(
    "batch_sizes", [[], [1], [100_000], [300] * 700, [100_000] * 20], ids=["none", "one", "small", "topics", "many"]
)
def test_work_that_is_brief_gets_the_first_compiler_only(sessions: SparkSessions, batch_sizes: list[int]) -> None:
    sessions.expect_only(batch_sizes)
    assert FIRST_COMPILER in java_options(sessions)


@pytest.mark.parametrize(
    "batch_sizes", [[100_001], [1, 2, 5_000_000], [100_000] * 20 + [1]], ids=["larger", "one of them", "many"]
)
def test_large_work_gets_both_compilers(sessions: SparkSessions, batch_sizes: list[int]) -> None:
    sessions.expect_only(batch_sizes)
    assert FIRST_COMPILER not in java_options(sessions)


def test_a_small_batch_into_a_large_table_is_no_brief_work(sessions: SparkSessions) -> None:
    sessions.expect_only([300], largest_table=2_000_000)
    assert FIRST_COMPILER in java_options(sessions)
    sessions.expect_only([300], largest_table=2_000_001)
    assert FIRST_COMPILER not in java_options(sessions)


def test_work_of_which_nothing_was_told_gets_both_compilers(sessions: SparkSessions) -> None:
    assert FIRST_COMPILER not in java_options(sessions)


def test_what_was_told_last_counts(sessions: SparkSessions) -> None:
    sessions.expect_only([10])
    sessions.expect_only([10_000_000])
    assert FIRST_COMPILER not in java_options(sessions)


@pytest.mark.parametrize("batch_sizes", [[10], [10_000_000]])
def test_the_users_java_options_come_last_so_that_they_win(sessions: SparkSessions, batch_sizes: list[int]) -> None:
    sessions.expect_only(batch_sizes)
    options = java_options(sessions)
    assert options[-1] == "-Dmine=1"
    assert "-XX:+ExitOnOutOfMemoryError" in options


class RecordingSession:
    """In a session's place: remembers its settings."""

    def __init__(self) -> None:
        self.conf: Any = self
        self.settings: dict[str, str] = {}

    def set(self, name: str, value: str) -> None:
        self.settings[name.removeprefix("spark.sql.")] = value


@pytest.fixture
def session() -> RecordingSession:
    return RecordingSession()


def prepared(session: RecordingSession, records: int) -> dict[str, str]:
    prepare_for(cast("SparkSession", session), records)
    return session.settings


@pytest.mark.parametrize("records", [0, 1, 300, 10_000])
def test_the_plan_of_a_tiny_batch_is_interpreted(session: RecordingSession, records: int) -> None:
    assert prepared(session, records) == {
        "shuffle.partitions": "1",
        "adaptive.enabled": "false",
        "codegen.wholeStage": "false",
        "codegen.factoryMode": "NO_CODEGEN",
    }


@pytest.mark.parametrize("records", [10_001, 100_000])
def test_a_small_batch_gets_its_code_generated_and_one_partition(session: RecordingSession, records: int) -> None:
    assert prepared(session, records) == {
        "shuffle.partitions": "1",
        "adaptive.enabled": "false",
        "codegen.wholeStage": "true",
        "codegen.factoryMode": "FALLBACK",
    }


@pytest.mark.parametrize(("records", "partitions"), [(100_001, "2"), (1_000_000, "10"), (1_000_000_000, "64")])
def test_a_large_batch_is_planned_anew_on_its_way_and_gets_partitions_by_its_size(
    session: RecordingSession, records: int, partitions: str
) -> None:
    assert prepared(session, records) == {
        "shuffle.partitions": partitions,
        "adaptive.enabled": "true",
        "codegen.wholeStage": "true",
        "codegen.factoryMode": "FALLBACK",
    }


@pytest.mark.parametrize("before", [5, 50_000, 5_000_000])
def test_nothing_is_left_of_the_batch_before(session: RecordingSession, before: int) -> None:
    prepared(session, before)
    for records in (5, 50_000, 5_000_000):
        assert prepared(session, records) == prepared(RecordingSession(), records)


@pytest.mark.parametrize(
    ("master", "told"),
    [
        ("local[2]", {"spark.driver.extraClassPath": "/a.jar:/b.jar"}),
        ("spark://far:7077", {"spark.jars": "/a.jar,/b.jar,/c.jar"}),
    ],
)
def test_jars_of_the_cloud_come_after_sparks_own_so_that_classes_kept_ready_serve_both(
    tmp_path: Path, master: str, told: dict[str, str]
) -> None:
    settings = Settings(home=tmp_path / "home", spark_master=master)
    conf = start_conf(settings, ((Path("/a.jar"), Path("/b.jar")), (Path("/c.jar"),)), False, "-Xready")
    assert {key: value for key, value in conf.items() if "jars" in key or "ClassPath" in key} == told
    assert "-Xready" in conf["spark.driver.extraJavaOptions"].split()


def test_what_is_behind_sparks_jars_stays_there_and_ours_comes_once() -> None:
    ours = [Path("/c.jar")]
    assert class_path_after([], {}) == ""
    once = class_path_after(ours, {"SPARK_DIST_CLASSPATH": "/theirs/*"})
    assert once == "/theirs/*:/c.jar"
    assert class_path_after(ours, {"SPARK_DIST_CLASSPATH": once}) == once
