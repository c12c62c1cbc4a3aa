"""Checkov over infra/: every rule that fails, and every skipped rule without a reason, with its place."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.servers.checkov import INFRA, SUPPLY, judged  # noqa: E402  found by the line before
from tests.servers.supply import cache_dir, ensure  # noqa: E402

from lean_ops.model.errors import LeanOpsError  # noqa: E402


def main() -> int:
    """0 when nothing is against infra/, 1 with what is."""
    try:
        ensure(SUPPLY, cache_dir(), lambda text: print(f"policy: {text}", flush=True))
        verdict = judged(INFRA, cache_dir())
    except (LeanOpsError, OSError) as error:
        print(f"policy: {error}", file=sys.stderr)
        return 1
    for complaint in verdict.complaints:
        print(f"infra/{complaint}", file=sys.stderr)
    counts = f"{verdict.passed} rules passed, {verdict.skipped} are skipped with a reason"
    print(f"policy: {counts}, {len(verdict.complaints)} complaints")
    return int(bool(verdict.complaints))


if __name__ == "__main__":
    sys.exit(main())
