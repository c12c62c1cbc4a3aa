"""`python -m lean_ops` is `lean-ops`."""

from lean_ops.entrypoints.start import main

main()
