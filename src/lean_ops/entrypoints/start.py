"""The first line of `lean-ops`: loads the commands, and ends in words if it is interrupted before they are there.

Nothing heavy is imported above `main`: what is asked to stop while packages load is asked within it.
"""

from __future__ import annotations

import os
import sys

INTERRUPTED = 130
"""What a shell shows for a program that Ctrl-C ended, and what typer leaves with."""


def main() -> None:
    """Run a command; interrupted where no command could say so, leave with 130 and one line."""
    # Else pydantic looks through every installed package for plugins, each time a command starts.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from lean_ops.entrypoints import cli

        cli.main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
