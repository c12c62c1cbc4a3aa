"""The Spark session: started once, when the first batch needs it; one session of its own for each worker thread."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.lake.catalog import CATALOG_NAME
from lean_ops.lake.jars import jar_files
from lean_ops.lake.java import find_java
from lean_ops.model.errors import LeanOpsError, TerminalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from lean_ops.settings import Settings

_SMALL_BATCH: Final = 100_000
_ROWS_PER_SHUFFLE_PARTITION: Final = 100_000
# Code is generated for every plan of every topic; a full cache ends in an error of the virtual machine.
_CODE_CACHE: Final = "-XX:ReservedCodeCacheSize=512m"
_LOG4J: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {folder}/spark.log
appender.file.filePattern = {folder}/spark.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


class SparkStartError(TerminalError):
    """Spark can't be started here: the machine's fault, not any topic's."""


class SparkSessions:
    """Sessions of one Spark application; a thread always gets the same one back.

    A session per topic would leave a catalog handle open for each; a session shared by threads would mix their
    settings. So: one per worker thread, used again and again.
    """

    def __init__(self, settings: Settings, notice: Callable[[str], None]) -> None:
        self._settings = settings
        self._notice = notice
        self._lock = threading.Lock()
        self._base: SparkSession | None = None
        self._local = threading.local()

    def mine(self) -> SparkSession:
        """The calling thread's session."""
        session: SparkSession | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = self._started().newSession()
        return session

    def stop(self) -> None:
        """End the application, if it was ever started."""
        with self._lock:
            if self._base is not None:
                self._base.stop()
                self._base = None

    def cancel_all(self) -> None:
        """End every running job; their threads see an error."""
        with self._lock:
            if self._base is not None:
                self._base.sparkContext.cancelAllJobs()

    def _started(self) -> SparkSession:
        with self._lock:
            if self._base is None:
                self._base = self._start_or_explain()
            return self._base

    def _start_or_explain(self) -> SparkSession:
        from pyspark.errors import PySparkException

        try:
            return self._start()
        except (PySparkException, LeanOpsError, OSError) as error:
            raise SparkStartError(
                "Spark could not be started",
                found=str(error),
                remedy=f"`lean-ops doctor` checks Java and jars; Spark's own words are in {self._settings.logs_dir}.",
            ) from error

    def _start(self) -> SparkSession:
        import pyspark
        from pyspark.sql import SparkSession

        java = find_java(self._settings.cache_dir, os.environ)
        jars = jar_files(self._settings.cache_dir, java, notice=self._notice)
        conf = {**_session_conf(self._settings), **_jar_conf(self._settings.spark_master, jars)}
        os.environ.update(
            JAVA_HOME=str(java.home),
            SPARK_HOME=str(Path(pyspark.__file__).parent),
            SPARK_LOCAL_IP="127.0.0.1",
            PYSPARK_PYTHON=sys.executable,
        )
        builder = SparkSession.builder.appName("lean-ops").master(self._settings.spark_master)
        for key, value in conf.items():
            builder = builder.config(key, value)
        with _stderr_into(self._settings.logs_dir / "spark-start.log"):
            return builder.getOrCreate()


def prepare_for(session: SparkSession, records: int) -> None:
    """Set a session up for a batch: a small one is all overhead, so it gets one partition and no re-planning."""
    partitions = max(1, min(64, -(-records // _ROWS_PER_SHUFFLE_PARTITION)))
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    session.conf.set("spark.sql.adaptive.enabled", str(records > _SMALL_BATCH).lower())


def _jar_conf(master: str, jars: Sequence[Path]) -> dict[str, str]:
    """On one machine the jars go on the class path, which starts faster than handing them out to executors."""
    if master.startswith("local"):
        return {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
    return {"spark.jars": ",".join(map(str, jars))}


def _session_conf(settings: Settings) -> dict[str, str]:
    settings.logs_dir.mkdir(parents=True, exist_ok=True)
    log4j = settings.logs_dir / "log4j2.properties"
    log4j.write_text(_LOG4J.format(folder=settings.logs_dir), encoding="utf-8")
    catalog = f"spark.sql.catalog.{CATALOG_NAME}"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{catalog}.uri": f"jdbc:sqlite:{settings.catalog_file}?busy_timeout=30000",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.warehouse": f"file://{settings.warehouse}",
        # pyiceberg commits to the same tables: a cached table would be a stale one.
        f"{catalog}.cache-enabled": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
        # Payloads may be megabytes each: batches for Python workers are bounded by bytes too.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(32 * 1024 * 1024),
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f'-Dlog4j2.configurationFile="{log4j.as_uri()}" {_CODE_CACHE} '
        f"{settings.spark_java_options}",
    }


@contextmanager
def _stderr_into(file: Path) -> Iterator[None]:
    """Let the JVM that starts meanwhile inherit a file as its stderr: a person should see our words, not its."""
    sys.stderr.flush()
    saved = os.dup(2)
    with file.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
