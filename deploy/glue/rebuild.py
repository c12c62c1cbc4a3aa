"""What Glue, EMR or `spark-submit` start; the job itself is in the wheel."""

from lean_ops.entrypoints.jobs.rebuild import main

main()
