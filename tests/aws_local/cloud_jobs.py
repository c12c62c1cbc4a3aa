"""Glue jobs that run: each run is a process of its own, with the states that Glue shows.

What differs: the packages and jars that a job asks for are those of this repository's environment, and only so many
runs work at a time; others wait in STARTING, because a Spark is heavy. A script that works on AWS works here, not the
other way round.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import moto.glue.models as glue
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.glue.responses import GlueResponse
from tests.aws_local.cloud_job_arguments import seen_by_script
from tests.aws_local.cloud_place import Place

_GUARD: Final = Path(__file__).resolve().parents[1] / "servers" / "guard.py"
_AT_WORK: Final = ("STARTING", "RUNNING", "STOPPING")
_USUAL_MINUTES: Final = 480
_LAST_LINE_BYTES: Final = 4000
_LOOK_AGAIN_SECONDS: Final = 0.2
_MOTO_RUN: Final = glue.FakeJobRun
_start_job_run: Final = glue.FakeJob.start_job_run


class JobRun(_MOTO_RUN):  # type: ignore[misc, valid-type]
    """A run whose state is that of its process."""

    state = "STARTING"
    error: str | None = None
    began: float | None = None
    ended: float | None = None
    guard: subprocess.Popen[bytes] | None = None

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.is_stopped = threading.Event()

    @property
    def status(self) -> str:
        return self.state

    def advance(self) -> None:
        """Nothing moves by being looked at."""

    def end(self, state: str, error: str | None = None) -> None:
        self.error, self.ended, self.completed_on = error, time.monotonic(), utcnow()
        self.state = state  # last: whoever sees it may ask for the rest

    def as_dict(self) -> dict[str, Any]:
        worked = (self.ended or time.monotonic()) - self.began if self.began else 0
        shown = {**super().as_dict(), "ExecutionTime": int(worked), "LogGroupName": "/aws-glue/jobs"}
        if self.ended is None:
            del shown["CompletedOn"]
        if self.error is not None:
            shown["ErrorMessage"] = self.error
        return shown


@dataclass
class Jobs:
    """Runs of Glue jobs, `at_a_time` of them at work; `minute_seconds` makes a job's timeout short for tests.

    `on_end` is told of each run that is over: what EventBridge is told of it.
    """

    place: Place
    at_a_time: int
    minute_seconds: float = 60.0
    on_end: Callable[[dict[str, Any]], None] = lambda _: None
    _slots: threading.Semaphore = field(init=False)
    _one_start: threading.Lock = field(default_factory=threading.Lock)
    _runs: list[JobRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._slots = threading.Semaphore(self.at_a_time)

    def install(self) -> None:
        """Runs of moto's Glue are processes from now on."""
        jobs = self

        def start_job_run(self: glue.FakeJob, **given: Any) -> str:
            # moto looks how many runs there are and then adds one: two at once would both find room.
            with jobs._one_start:
                run_id = str(_start_job_run(self, **given))
                run = self.job_runs[-1]
                jobs._runs.append(run)
            threading.Thread(target=jobs._run, args=(self, run), daemon=True).start()
            return run_id

        def batch_stop_job_run(self: GlueResponse) -> ActionResult:
            job = self.glue_backend.get_job(self.parameters["JobName"])
            return ActionResult(jobs._stopped(job, self.parameters["JobRunIds"]))

        glue.FakeJobRun = JobRun
        glue.FakeJob.start_job_run = start_job_run
        GlueResponse.batch_stop_job_run = batch_stop_job_run

    def close(self) -> None:
        """No run is at work any more when this returns."""
        for run in list(self._runs):
            self._stop(run)
        for run in list(self._runs):
            if run.guard is not None:
                run.guard.wait(30)

    # a run

    def _run(self, job: glue.FakeJob, run: JobRun) -> None:
        while not self._slots.acquire(timeout=_LOOK_AGAIN_SECONDS):
            if run.is_stopped.is_set():
                run.end("STOPPED")
                return
        try:
            self._work(job, run)
        except Exception as error:
            run.end("FAILED", f"{type(error).__name__}: {error}")
        finally:
            self._slots.release()
            if run.guard is not None and run.guard.stdin is not None:
                run.guard.stdin.close()
        self.place.say(f"{job.name} {run.job_run_id[:10]}: {run.state} {run.error or ''}")
        severity = "INFO" if run.state == "SUCCEEDED" else "ERROR"
        detail = {"jobName": job.name, "severity": severity, "state": run.state, "jobRunId": run.job_run_id}
        self.on_end({**detail, "message": run.error or "Job run succeeded"})

    def _work(self, job: glue.FakeJob, run: JobRun) -> None:
        folder = self.place.subfolder("jobs", job.name, run.job_run_id)
        script = self._fetched(job.command["ScriptLocation"], folder)
        for file in filter(None, run.arguments.get("--extra-files", "").split(",")):
            self._fetched(file, folder)
        self._start(
            run, [sys.executable, str(script), *seen_by_script(job.name, run.job_run_id, run.arguments)], folder
        )
        assert run.guard is not None
        try:
            code = run.guard.wait(float(run.timeout or _USUAL_MINUTES) * self.minute_seconds)
        except subprocess.TimeoutExpired:
            _end(run.guard)
            run.end("TIMEOUT", "Job run exceeded its timeout.")
            return
        if run.is_stopped.is_set():
            run.end("STOPPED")
        elif code:
            run.end("FAILED", f"exit code {code}: {_last_line(folder / 'stderr')}")
        else:
            run.end("SUCCEEDED")

    def _start(self, run: JobRun, command: list[str], folder: Path) -> None:
        """Under a guard, which ends it when this process goes, in whatever way."""
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            run.guard = subprocess.Popen(
                [sys.executable, "-I", str(_GUARD), "--", *command],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=self.place.environ(),
                start_new_session=True,
            )
        run.began, run.state = time.monotonic(), "RUNNING"
        if run.is_stopped.is_set():  # asked for before there was anything to end
            _end(run.guard)

    def _fetched(self, location: str, folder: Path) -> Path:
        bucket, _, key = location.removeprefix("s3://").partition("/")
        file = folder / Path(key).name
        self.place.client("s3").download_file(bucket, key, str(file))
        return file

    # stopping

    def _stopped(self, job: glue.FakeJob, run_ids: list[str]) -> dict[str, Any]:
        by_id = {run.job_run_id: run for run in job.job_runs}
        known = [run_id for run_id in run_ids if run_id in by_id]
        for run_id in known:
            self._stop(by_id[run_id])
        errors = [
            {"JobName": job.name, "JobRunId": run_id, "ErrorDetail": {"ErrorCode": "EntityNotFoundException"}}
            for run_id in run_ids
            if run_id not in by_id
        ]
        done = [{"JobName": job.name, "JobRunId": run_id} for run_id in known]
        return {"SuccessfulSubmissions": done, "Errors": errors}

    def _stop(self, run: JobRun) -> None:
        if run.state not in _AT_WORK:
            return
        run.is_stopped.set()
        if run.guard is not None:
            _end(run.guard)


def _end(guard: subprocess.Popen[bytes]) -> None:
    """Gone when this returns, with the process that it guards."""
    guard.terminate()
    guard.wait(30)


def _last_line(file: Path) -> str:
    lines = file.read_bytes()[-_LAST_LINE_BYTES:].decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no word on stderr")
