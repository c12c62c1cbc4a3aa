"""Which of a Glue job's arguments its script sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Glue takes these for itself.
_TAKEN: Final = frozenset(
    {
        "--additional-python-modules",
        "--class",
        "--conf",
        "--continuous-log-conversionPattern",
        "--continuous-log-logGroup",
        "--continuous-log-logStreamPrefix",
        "--customer-driver-env-vars",
        "--customer-executor-env-vars",
        "--datalake-formats",
        "--disable-proxy-v2",
        "--enable-auto-scaling",
        "--enable-continuous-cloudwatch-log",
        "--enable-continuous-log-filter",
        "--enable-glue-datacatalog",
        "--enable-job-insights",
        "--enable-metrics",
        "--enable-observability-metrics",
        "--enable-rename-algorithm-v2",
        "--enable-s3-parquet-optimized-committer",
        "--enable-spark-ui",
        "--encryption-type",
        "--executor-cores",
        "--extra-files",
        "--extra-jars",
        "--extra-py-files",
        "--job-bookmark-from",
        "--job-bookmark-option",
        "--job-bookmark-to",
        "--job-language",
        "--python-modules-installer-option",
        "--scriptLocation",
        "--security-configuration",
        "--spark-event-logs-path",
        "--TempDir",
        "--user-jars-first",
    }
)


def seen_by_script(job_name: str, run_id: str, arguments: Mapping[str, str]) -> list[str]:
    """The arguments that are not Glue's own, and how Glue calls the job and its run."""
    named = {"--JOB_NAME": job_name, "--JOB_RUN_ID": run_id}
    seen = {name: value for name, value in arguments.items() if name not in _TAKEN}
    return [part for name, value in {**named, **seen}.items() for part in (name, value)]
