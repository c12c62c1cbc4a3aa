"""The Spark session: started when the first batch needs it; one session of its own for each worker thread."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lean_ops.lake.class_archive import ClassArchive
from lean_ops.lake.jars import AWS_JARS, jar_files
from lean_ops.lake.java import find_java
from lean_ops.lake.java_process import (
    forget_ended_java,
    is_hosted,
    java_of_this_process,
    log_broken_connections,
    way_of_ending,
)
from lean_ops.lake.kernel_jar import FUNCTIONS_CLASS, KERNEL_NAME, spark_jars
from lean_ops.lake.spark_conf import class_path_after, session_conf, start_conf
from lean_ops.model.errors import TerminalError, TransientError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    from lean_ops.settings import Settings

_SMALL_BATCH: Final = 100_000
_TINY_BATCH: Final = 10_000
_ROWS_PER_SHUFFLE_PARTITION: Final = 100_000
_BRIEF_RECORDS: Final = 2_000_000


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
            _name_call_sites(session)
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
        from pyspark.sql import SparkSession

        conf = self._conf_of_host() if is_hosted() else self._conf_of_own()
        session = SparkSession.builder.config(conf=conf).getOrCreate()
        if is_hosted():
            _refuse_without_kernel(session)
        log_broken_connections(session)
        return session

    def _conf_of_host(self) -> SparkConf:
        """Spark was started by `spark-submit`, Glue or EMR: master, memory and jars are what they were told."""
        from pyspark import SparkConf

        return SparkConf().setAll(list(session_conf(self._settings).items()))

    def _conf_of_own(self) -> SparkConf:
        import pyspark
        from pyspark import SparkConf

        forget_ended_java()
        java = find_java(self._settings.cache_dir, os.environ)
        cache = self._settings.cache_dir
        jars = spark_jars(cache, java, self._notice)
        cloud = jar_files(cache, java, notice=self._notice, jars=AWS_JARS) if self._settings.profile == "aws" else ()
        conf = SparkConf().setAppName("lean-ops").setMaster(self._settings.spark_master)
        classes = ClassArchive.of(cache, java, jars).options
        start = start_conf(self._settings, (jars, cloud), self._is_brief, classes)
        conf.setAll(list({**session_conf(self._settings), **start}.items()))
        os.environ.update(
            JAVA_HOME=str(java.home),
            SPARK_HOME=str(Path(pyspark.__file__).parent),
            SPARK_LOCAL_IP="127.0.0.1",
            PYSPARK_PYTHON=sys.executable,
            SPARK_DIST_CLASSPATH=class_path_after(cloud, os.environ),
        )
        self._java = java_of_this_process(conf, self._settings.logs_dir / "spark-start.log")
        return conf


def _name_call_sites(session: SparkSession) -> None:
    """Name what this thread asks of Spark, which else looks through the stack for a name, several times a statement."""
    for form in ("callSite.short", "callSite.long"):
        session.sparkContext.setLocalProperty(form, "lean-ops")


def _refuse_without_kernel(session: SparkSession) -> None:
    """TerminalError if whoever started Spark left our jar out: every batch would fail on it, each in its own words."""
    from py4j.protocol import Py4JJavaError

    try:
        loader = session._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # noqa: SLF001
        loader.loadClass(FUNCTIONS_CLASS)
    except Py4JJavaError as error:
        raise TerminalError(
            "this Spark was started without our jar",
            where=KERNEL_NAME,
            found=f"no class {FUNCTIONS_CLASS}",
            remedy="Give it to `spark-submit --jars` or Glue's `--extra-jars`; `make glue` makes it.",
        ) from error


def prepare_for(session: SparkSession, records: int) -> None:
    """Set a session up for a batch: a small one is all overhead, so it gets one partition and no re-planning."""
    partitions = max(1, min(64, -(-records // _ROWS_PER_SHUFFLE_PARTITION)))
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    session.conf.set("spark.sql.adaptive.enabled", str(records > _SMALL_BATCH).lower())
    # Code is generated and compiled for every plan; for a few thousand rows that takes longer than to interpret it.
    is_tiny = records <= _TINY_BATCH
    session.conf.set("spark.sql.codegen.wholeStage", str(not is_tiny).lower())
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN" if is_tiny else "FALLBACK")


def _in_short(error: Exception) -> str:
    """An error in a line; what comes of Java says in its second line what happened."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:2]) or type(error).__name__
