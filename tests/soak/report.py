"""The report of a soak, for machines and for people."""

from __future__ import annotations

import json
import os
import platform
import shlex
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.soak.decisions import ROUNDS_PER_COMPARISON
from tests.soak.stage import Soak

from lean_ops.lake.jars import JARS
from lean_ops.lake.java import find_java
from lean_ops.settings import load_settings


def document_of(soak: Soak, command: list[str], seconds: float) -> dict[str, Any]:
    """All of it for a machine."""
    return {
        "command": shlex.join(command),
        "seed": soak.seed,
        "passed": not soak.tally.failures,
        "seconds": round(seconds, 1),
        "machine": _machine(),
        **vars(soak.tally),
        "runs_killed": soak.tally.runs_killed,
        "batches_recovered": sum(soak.journal.recovered.values()),
        "recovered_from": soak.journal.recovered,
        "longest_recovery_seconds": round(soak.journal.longest_recovery, 1),
    }


def _machine() -> dict[str, Any]:
    settings = load_settings({}).settings
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "python": platform.python_version(),
        "java": find_java(settings.cache_dir, os.environ).version,
        "spark": version("pyspark"),
        "iceberg": JARS[0].version,
        "pyiceberg": version("pyiceberg"),
    }


def write_report(folder: Path, document: dict[str, Any]) -> str:
    """Both files; the second one's text."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    text = "\n".join(_lines(document)) + "\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    return text


def _lines(found: dict[str, Any]) -> Iterator[str]:
    machine = found["machine"]
    verdict = "passed" if found["passed"] else "FAILED"
    yield f"# Soak: {verdict}\n"
    yield f"    {found['command']}\n"
    yield (
        f"Seed {found['seed']}, {found['seconds']:.0f} s, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}, Java {machine['java']}, Spark {machine['spark']}, "
        f"Iceberg {machine['iceberg']}, pyiceberg {machine['pyiceberg']}.\n"
    )
    yield from _table(_numbers(found))
    yield from _counts("How runs were ended", found["runs_ended"])
    yield from _counts("How ingestion was ended", found["ingests_ended"])
    yield from _counts("Where batches stood when a run was ended", found["stood"])
    yield from _counts("Where batches stood that were taken up again and finished", found["recovered_from"])
    for failure in found["failures"]:
        yield f"\n## Failure\n\n```\n{failure}\n```"


def _numbers(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "rounds": found["rounds"],
        "runs": found["runs"],
        "runs ended by a signal": found["runs_killed"],
        "runs that finished": found["runs_finished"],
        "ingestions": found["ingests"],
        "ingestions ended by a signal": sum(found["ingests_ended"].values()),
        "files sent again": found["files_sent_again"],
        "bodies sent": found["bodies_sent"],
        "redelivered copies in the lake": found["bodies_redelivered"],
        f"comparisons (every {ROUNDS_PER_COMPARISON} rounds and at the end)": found["comparisons"],
        "messages compared, all comparisons": found["messages_compared"],
        "messages compared, the last time": found["messages_at_the_end"],
        "differences": found["differences"],
        "recounts": found["recounts"],
        "batches taken up again and finished": found["batches_recovered"],
        "longest such recovery, Spark's start included": f"{found['longest_recovery_seconds']} s",
        "commands that read, beside runs": found["asides"],
        "schemas submitted": found["schemas_submitted"],
        "pauses by hand": found["pauses"],
        "topics resumed after failures in a row": found["resumed_after_failures"],
        "failures": len(found["failures"]),
    }


def _table(rows: dict[str, Any], names: tuple[str, str] = ("what", "number")) -> Iterator[str]:
    yield f"| {names[0]} | {names[1]} |"
    yield "|---|---|"
    for name, value in rows.items():
        yield f"| {name} | {value} |"


def _counts(title: str, counts: dict[str, int]) -> Iterator[str]:
    yield f"\n## {title}\n"
    if counts:
        yield from _table(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))
    else:
        yield "Never."
