"""The job from RAW to Standardized: `python -m lean_ops.entrypoints.jobs.standardized --topics events`."""

from __future__ import annotations

from lean_ops.entrypoints.jobs import job
from lean_ops.model.batch import Zone


def main() -> None:
    """The job, with the arguments of this process."""
    job.main(Zone.STANDARDIZED)


if __name__ == "__main__":
    main()
