"""Spark's virtual machine as a process: one at a time, started apart from us, and another one after it has ended."""

# ruff: noqa: SLF001  pyspark keeps its one virtual machine in private names and has no other way to a second one

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import structlog

from lean_ops.model.errors import TransientError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_OUT_OF_MEMORY_CODES: Final = (3, 52)  # of -XX:+ExitOnOutOfMemoryError, and of Spark itself


def is_hosted() -> bool:
    """Whether somebody else (`spark-submit`, Glue, EMR) has started Spark, and this program in it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def forget_ended_java() -> None:
    """Let pyspark start anew after its virtual machine has ended; by itself it would talk to that one for ever."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    if gateway is not None and gateway.proc.poll() is not None:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def java_of_this_process(conf: SparkConf, log: Path) -> subprocess.Popen[bytes]:
    """The virtual machine, started if there is none; what it prints goes to the log, not between our words.

    It gets a process session of its own, so that a signal to all of the program (of a terminal that goes away, say)
    leaves its end to the program. Its stdin is a pipe from here, and it ends with that, however the program ends.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is None:
        with log.open("ab") as words:
            gateway = launch_gateway(conf, {"stdout": words, "stderr": words, "start_new_session": True})
        SparkContext._ensure_initialized(gateway=gateway)
    java: subprocess.Popen[bytes] = SparkContext._gateway.proc
    return java


def end_java(seconds: float) -> None:
    """End this process's virtual machine and wait for it; nothing happens if it has none.

    TransientError if it has not ended in so many seconds: then it is killed.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(seconds)
    except subprocess.TimeoutExpired as error:
        gateway.proc.kill()
        gateway.proc.wait()
        raise TransientError(
            "Spark's Java did not end and was killed",
            where=f"process {gateway.proc.pid}",
            expected=f"an end within {seconds:.0f} seconds",
            remedy="Do the same again when the machine has less to do.",
        ) from error
    finally:
        forget_ended_java()


def log_broken_connections(session: SparkSession) -> None:
    """Python's server for Spark's counters would print a traceback when Java is gone; now it goes to the log."""
    log = structlog.get_logger("lean_ops.spark")
    server = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: log.warning("connection to Spark broken", reason=repr(sys.exc_info()[1]))


def way_of_ending(exit_code: int | None) -> str:
    """An exit code of Java in words."""
    if exit_code in _OUT_OF_MEMORY_CODES:
        return f"its Java ran out of memory (exit code {exit_code})"
    if exit_code is not None and exit_code < 0:
        return f"its Java was ended by signal {-exit_code}{' (killed)' if exit_code == -signal.SIGKILL else ''}"
    return f"its Java left with exit code {exit_code}"
