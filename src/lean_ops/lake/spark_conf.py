"""Spark's settings: where the lake's catalog is, what holds everywhere, and what a Spark of our own is started with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from lean_ops.lake.catalog import CATALOG_NAME
from lean_ops.lake.cloud_place import rest_login
from lean_ops.lake.kernel_jar import (
    EXTENSIONS_CLASS,
    FILE_IO_CLASS,
    FILE_SYSTEM_CLASS,
    FUNCTIONS_CATALOG,
    FUNCTIONS_CLASS,
)
from lean_ops.lake.object_store import region_of, store_address
from lean_ops.model.pattern_cost import STACK_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from lean_ops.settings import Settings

# Code is generated for every plan of every topic; a full cache ends in an error of the virtual machine.
_CODE_CACHE: Final = "-XX:ReservedCodeCacheSize=512m"
# A virtual machine that ran out of memory has lost threads that others wait for: it must end, not linger.
_END_WITHOUT_MEMORY: Final = "-XX:+ExitOnOutOfMemoryError"
# Work that is done within minutes, in small batches, ends before the second compiler has paid off: with the
# first one alone, hundreds of topics take half the processor time. What a plan leaves behind is gone when the next one
# is made, so half of the memory is for what is young. What is at work survives a collection, then dies soon: without
# room among the young it would grow old, Spark would keep what it has handed out for it, and look through all of that
# whenever it forgets something. A table with few files is planned in the thread that asks: Iceberg hands it to others
# and looks every ten milliseconds whether they are done.
_BRIEF_WORK: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:NewRatio=1 -XX:SurvivorRatio=3 -XX:MetaspaceSize=256m -Xms{memory}"
    " -Diceberg.scan.plan-in-worker-pool=false"
)
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


def session_conf(settings: Settings, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """What every session needs, whoever started Spark."""
    catalog = f"spark.sql.catalog.{CATALOG_NAME}"
    place = _home(settings) if settings.profile == "embedded" else _cloud(settings, environ)
    local_files = {"spark.hadoop.fs.file.impl": FILE_SYSTEM_CLASS} if settings.profile == "embedded" else {}
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{catalog}.{key}": value for key, value in place.items()},
        # pyiceberg commits to the same tables: a cached table would be a stale one.
        f"{catalog}.cache-enabled": "false",
        **local_files,
        f"spark.sql.catalog.{FUNCTIONS_CATALOG}": FUNCTIONS_CLASS,
        "spark.sql.extensions": f"org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,{EXTENSIONS_CLASS}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
        # Refused payloads, which come back as Arrow, may be megabytes each: batches are bounded by bytes too.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(32 * 1024 * 1024),
    }


def _home(settings: Settings) -> dict[str, str]:
    return {
        "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "uri": f"jdbc:sqlite:{settings.catalog_file}?busy_timeout=30000",
        "jdbc.schema-version": "V1",
        "warehouse": f"file://{settings.warehouse_dir}",
        "io-impl": FILE_IO_CLASS,
    }


def _cloud(settings: Settings, environ: Mapping[str, str] | None) -> dict[str, str]:
    """The same catalog, region and addresses that pyiceberg and boto3 use."""
    environ = os.environ if environ is None else environ
    store = store_address(environ)
    return {
        **(_rest(settings) if settings.catalog == "rest" else _glue(environ)),
        "warehouse": settings.given("warehouse"),
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "client.region": region_of(environ),
        # A store that is not AWS' own has no name of its own for each bucket.
        **({"s3.endpoint": store, "s3.path-style-access": "true"} if store else {}),
    }


def _glue(environ: Mapping[str, str]) -> dict[str, str]:
    address = environ.get("AWS_ENDPOINT_URL_GLUE") or environ.get("AWS_ENDPOINT_URL")
    return {
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        **({"glue.endpoint": address} if address else {}),
    }


def _rest(settings: Settings) -> dict[str, str]:
    uri = settings.given("catalog_uri").rstrip("/")
    return {"catalog-impl": "org.apache.iceberg.rest.RESTCatalog", "uri": uri, **rest_login(settings)}


def start_conf(
    settings: Settings, jars: tuple[Sequence[Path], Sequence[Path]], is_brief: bool, classes: str = ""
) -> dict[str, str]:
    """What a Spark of our own is started with; where others start it, these are their affair.

    `jars` are those before and those after Spark's own; `classes` tells Java where it finds classes ready for use.
    """
    settings.logs_dir.mkdir(parents=True, exist_ok=True)
    log4j = settings.logs_dir / "log4j2.properties"
    log4j.write_text(_LOG4J.format(folder=settings.logs_dir), encoding="utf-8")
    brief = _BRIEF_WORK.format(memory=settings.spark_driver_memory) if is_brief else ""
    return {
        **_jar_conf(settings.spark_master, *jars),
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A plan is written down for the UI, with all its columns, each time it runs; here nobody has a UI open.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.debug.maxToStringFields": "4",
        # Spark proves after every rule that the plan is still one: for whoever writes rules.
        "spark.sql.lightweightPlanChangeValidation": "false",
        "spark.driver.extraJavaOptions": f'-Dlog4j2.configurationFile="{log4j.as_uri()}" {_CODE_CACHE} '
        f"{_END_WITHOUT_MEMORY} {_STACK} {brief} {classes} {settings.spark_java_options}",
        "spark.executor.extraJavaOptions": _STACK,  # where the master is another machine
    }


def _jar_conf(master: str, before: Sequence[Path], after: Sequence[Path]) -> dict[str, str]:
    """On one machine the jars go on the class path, which starts faster than handing them out to executors."""
    if master.startswith("local"):
        return {"spark.driver.extraClassPath": os.pathsep.join(map(str, before))}
    return {"spark.jars": ",".join(map(str, (*before, *after)))}


def class_path_after(jars: Sequence[Path], environ: Mapping[str, str]) -> str:
    """What Spark's launcher puts behind Spark's own jars: these, once, and what is there already.

    Classes that are kept ready (lake/class_archive.py) serve every class path that begins as theirs.
    """
    there = environ.get("SPARK_DIST_CLASSPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys(part for part in (*there, *map(str, jars)) if part))
