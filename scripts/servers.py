"""Fetches and builds, once, what the servers for tests need; with --lock, makes lock/servers.txt again."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.servers import asl, checkov, dynamodb, elasticmq, pubsub  # noqa: E402  found by the line before
from tests.servers.jars import LOCK, lock_lines  # noqa: E402
from tests.servers.supply import WITHOUT_SERVERS, cache_dir, ensure  # noqa: E402

from lean_ops.model.errors import LeanOpsError  # noqa: E402

JARS = (elasticmq.SUPPLY, dynamodb.SUPPLY)
SUPPLIES = (*JARS, pubsub.SUPPLY, asl.SUPPLY, checkov.SUPPLY)


def main(arguments: list[str]) -> int:
    """0 when every server can start; else 1, with what is missing on stderr."""
    if arguments == ["--lock"]:
        return lock()
    if arguments:
        print(f"servers: unknown {' '.join(arguments)}; --lock or nothing", file=sys.stderr)
        return 2
    return supply()


def supply() -> int:
    """Make what is not there, all of it: a failure does not keep the next one from being made."""
    failed = False
    for each in SUPPLIES:
        try:
            ensure(each, cache_dir(), say)
        except (LeanOpsError, OSError) as error:
            failed = True
            print(f"servers: {each.name} is missing: {error}", file=sys.stderr)
    if failed and os.environ.get(WITHOUT_SERVERS) == "1":
        print(f"servers: {WITHOUT_SERVERS}=1, so the tests that need them will be skipped", file=sys.stderr)
        return 0
    if failed:
        print(f"servers: to test without them, and to know that you do: {WITHOUT_SERVERS}=1 make test", file=sys.stderr)
    return int(failed)


def lock() -> int:
    """Pin what Maven Central has for the versions that the sources name."""
    with tempfile.TemporaryDirectory() as place:
        lines = lock_lines(JARS, Path(place), cache_dir())
    LOCK.write_text("\n".join(lines) + "\n", encoding="ascii")
    say(f"wrote {LOCK.relative_to(ROOT)}, {len(lines)} lines")
    return 0


def say(text: str) -> None:
    """A line of progress."""
    print(f"servers: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
