"""`bench`: what the product costs, measured; the benchmarks themselves are in the repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import lean_ops
from lean_ops.entrypoints.context import app_of
from lean_ops.model.errors import WrongUseError


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("bench")(bench)


def bench(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Benchmarks to run; all when none is given.")] = None,
    full: Annotated[bool, typer.Option("--full", help="The sizes of the bars; takes hours.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds, the warm-up not counted.")] = 3,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("build/bench"),
    strict: Annotated[bool, typer.Option("--strict", help="A missed bar is exit code 1, too.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the homes that were measured in OUT/work.")] = False,
    sizes: Annotated[list[str] | None, typer.Option("--set", metavar="SIZE=N", help="Another size.")] = None,
) -> None:
    """Measure CPU, time and memory against floors and other tools; a JSON document and a plot for each."""
    import subprocess

    flags = {"--full": full, "--strict": strict, "--keep": keep, "--json": app_of(ctx).console.as_json}
    given = [flag for flag, is_set in flags.items() if is_set]
    given += [word for size in sizes or () for word in ("--set", size)]
    command = [sys.executable, "-m", "benchmarks", *(names or ()), *given]
    command += ["--repeats", str(repeats), "--out", str(out.absolute())]
    done = subprocess.run(command, cwd=repository(), check=False)  # noqa: S603  our own module
    raise typer.Exit(done.returncode)


def repository() -> Path:
    """The checkout that this package runs from; WrongUseError if it was installed without one."""
    root = Path(lean_ops.__file__).resolve().parent.parent.parent
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise WrongUseError(
            "the benchmarks are not part of an installed package",
            where="lean-ops bench",
            found=f"no benchmarks/ beside {Path(lean_ops.__file__).parent.parent}",
            remedy="They are in the repository: clone it and run `make bench` there.",
        )
    return root
