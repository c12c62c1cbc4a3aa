"""The Spark session: started when the first batch needs it; one session of its own for each worker thread."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.lake.catalog import CATALOG_NAME
from lean_ops.lake.java import find_java
from lean_ops.lake.java_process import forget_ended_java, java_of_this_process, log_broken_connections, way_of_ending
from lean_ops.lake.kernel_jar import (
    FILE_IO_CLASS,
    FILE_SYSTEM_CLASS,
    FUNCTIONS_CATALOG,
    FUNCTIONS_CLASS,
    spark_jars,
)
from lean_ops.model.errors import TerminalError, TransientError
from lean_ops.model.pattern_cost import STACK_BYTES

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from lean_ops.settings import Settings

_SMALL_BATCH: Final = 100_000
_TINY_BATCH: Final = 10_000
_ROWS_PER_SHUFFLE_PARTITION: Final = 100_000
# Code is generated for every plan of every topic; a full cache ends in an error of the virtual machine.
_CODE_CACHE: Final = "-XX:ReservedCodeCacheSize=512m"
# A virtual machine that ran out of memory has lost threads that others wait for: it must end, not linger.
_END_WITHOUT_MEMORY: Final = "-XX:+ExitOnOutOfMemoryError"
# Work that is done within minutes, in small batches, ends before the second compiler has paid off: with the
# first one alone, hundreds of topics take half the processor time. What a plan leaves behind is gone when the next one
# is made, so half of the memory is for what is young.
_BRIEF_WORK: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:NewRatio=1 -Xms{memory}"
_BRIEF_RECORDS: Final = 2_000_000
# A schema's pattern may take a piece of a thread's stack per character; a stack that is full ends the machine, too.
_STACK: Final = f"-Xss{STACK_BYTES // 1024}k"
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


class SparkEndedError(TransientError):
    """Spark's virtual machine ended in the middle of the work."""

    def __init__(self, exit_code: int | None, settings: Settings) -> None:
        super().__init__(
            "Spark ended while it worked",
            found=way_of_ending(exit_code),
            remedy="Nothing was published; the next run finishes this batch. If Java or the machine ran out of memory,"
            f" give Spark more (`spark_driver_memory`, now {settings.spark_driver_memory}) or let fewer topics work at"
            f" the same time (`workers`, now {settings.workers}). Its own words are in {settings.logs_dir}.",
        )


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
        self._java: subprocess.Popen[bytes] | None = None
        self._is_brief = False
        self._local = threading.local()

    def expect_only(self, batch_sizes: Sequence[int], largest_table: int = 0) -> None:
        """Tell, before Spark starts, all that it is started for; without that it is made for long and large work."""
        largest_batch = max(batch_sizes, default=0)
        self._is_brief = max(sum(batch_sizes), largest_table) <= _BRIEF_RECORDS and largest_batch <= _SMALL_BATCH

    def mine(self) -> SparkSession:
        """The calling thread's session; a new one of a new application if the one before has ended."""
        session: SparkSession | None = getattr(self._local, "session", None)
        if session is None or self.failure() is not None:
            self._local.session = None
            base, self._local.java = self._started()
            session = self._local.session = base.newSession()
        return session

    def failure(self) -> SparkEndedError | None:
        """How the application behind the calling thread's session ended, if it did."""
        java: subprocess.Popen[bytes] | None = getattr(self._local, "java", None)
        if java is None or (java.poll() is None and self._answers()):
            return None
        java.kill()  # it has ended or is about to: a connection breaks before its process is seen to be gone
        return SparkEndedError(java.wait(), self._settings)

    def _answers(self) -> bool:
        session: SparkSession | None = getattr(self._local, "session", None)
        try:
            return session is not None and bool(session.version)
        except Exception:  # of the network or of pyspark, whichever notices first
            return False

    def stop(self) -> None:
        """End the application, if it was ever started."""
        with self._lock:
            if self._base is not None and self._is_alive():
                with suppress(Exception):  # one that can't be stopped ends with this process all the same
                    self._base.stop()
            self._base = self._java = None

    def cancel_all(self) -> None:
        """End every running job; their threads see an error."""
        with self._lock:
            if self._base is not None and self._is_alive():
                with suppress(Exception):  # it may end in this moment
                    self._base.sparkContext.cancelAllJobs()

    def _started(self) -> tuple[SparkSession, subprocess.Popen[bytes] | None]:
        with self._lock:
            if self._base is not None and not self._is_alive():
                self._notice("Spark ended; starting it again")
                self._base = None
            if self._base is None:
                self._base = self._start_or_explain()
            return self._base, self._java

    def _is_alive(self) -> bool:
        return self._java is None or self._java.poll() is None

    def _start_or_explain(self) -> SparkSession:
        try:
            return self._start()
        except Exception as error:
            raise SparkStartError(
                "Spark could not be started",
                found=_in_short(error),
                remedy="`lean-ops doctor` checks Java and jars; `spark_driver_memory` is what Java gets, now"
                f" {self._settings.spark_driver_memory}; Spark's own words are in {self._settings.logs_dir}.",
            ) from error

    def _start(self) -> SparkSession:
        import pyspark
        from pyspark import SparkConf
        from pyspark.sql import SparkSession

        forget_ended_java()
        java = find_java(self._settings.cache_dir, os.environ)
        jars = spark_jars(self._settings.cache_dir, java, self._notice)
        conf = SparkConf().setAppName("lean-ops").setMaster(self._settings.spark_master)
        settings = {**_session_conf(self._settings, self._is_brief), **_jar_conf(self._settings.spark_master, jars)}
        conf.setAll(list(settings.items()))
        os.environ.update(
            JAVA_HOME=str(java.home),
            SPARK_HOME=str(Path(pyspark.__file__).parent),
            SPARK_LOCAL_IP="127.0.0.1",
            PYSPARK_PYTHON=sys.executable,
        )
        self._java = java_of_this_process(conf, self._settings.logs_dir / "spark-start.log")
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        log_broken_connections(session)
        return session


def prepare_for(session: SparkSession, records: int) -> None:
    """Set a session up for a batch: a small one is all overhead, so it gets one partition and no re-planning."""
    partitions = max(1, min(64, -(-records // _ROWS_PER_SHUFFLE_PARTITION)))
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    session.conf.set("spark.sql.adaptive.enabled", str(records > _SMALL_BATCH).lower())
    # Code is generated and compiled for every plan; for a few thousand rows that takes longer than to interpret it.
    is_tiny = records <= _TINY_BATCH
    session.conf.set("spark.sql.codegen.wholeStage", str(not is_tiny).lower())
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN" if is_tiny else "FALLBACK")


def _jar_conf(master: str, jars: Sequence[Path]) -> dict[str, str]:
    """On one machine the jars go on the class path, which starts faster than handing them out to executors."""
    if master.startswith("local"):
        return {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
    return {"spark.jars": ",".join(map(str, jars))}


def _session_conf(settings: Settings, is_brief: bool) -> dict[str, str]:
    settings.logs_dir.mkdir(parents=True, exist_ok=True)
    log4j = settings.logs_dir / "log4j2.properties"
    log4j.write_text(_LOG4J.format(folder=settings.logs_dir), encoding="utf-8")
    catalog = f"spark.sql.catalog.{CATALOG_NAME}"
    brief = _BRIEF_WORK.format(memory=settings.spark_driver_memory) if is_brief else ""
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{catalog}.uri": f"jdbc:sqlite:{settings.catalog_file}?busy_timeout=30000",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.warehouse": f"file://{settings.warehouse_dir}",
        f"{catalog}.io-impl": FILE_IO_CLASS,
        "spark.hadoop.fs.file.impl": FILE_SYSTEM_CLASS,
        # pyiceberg commits to the same tables: a cached table would be a stale one.
        f"{catalog}.cache-enabled": "false",
        f"spark.sql.catalog.{FUNCTIONS_CATALOG}": FUNCTIONS_CLASS,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
        # Refused payloads, which come back as Arrow, may be megabytes each: batches are bounded by bytes too.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(32 * 1024 * 1024),
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f'-Dlog4j2.configurationFile="{log4j.as_uri()}" {_CODE_CACHE} '
        f"{_END_WITHOUT_MEMORY} {_STACK} {brief} {settings.spark_java_options}",
        "spark.executor.extraJavaOptions": _STACK,  # where the master is another machine
    }


def _in_short(error: Exception) -> str:
    """An error in a line; what comes of Java says in its second line what happened."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:2]) or type(error).__name__
