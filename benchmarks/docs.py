"""`python -m benchmarks.docs RESULTS PAGE`: keep results beside the page, and put their numbers into it.

What a benchmark left in RESULTS goes to the folder `benchmarks` beside the page; one that was not run keeps what is
there. The page's marked places are then made of that folder alone, so that no number is put in by hand: `numbers:
NAME` gets a benchmark's command, bars, tables and plot, `bars` every bar in a line, `machine` what it was measured on.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.report import readable
from benchmarks.suite import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Documents = Mapping[str, Mapping[str, Any]]

KEPT: Final = "benchmarks"
_PLACE: Final = re.compile(r"(<!-- (?:(bars|machine)|numbers: (\w+)) -->\n).*?(<!-- end -->)", re.DOTALL)


def keep(results: Path, kept: Path) -> None:
    """Copy the documents and plots of benchmarks that have ended."""
    kept.mkdir(exist_ok=True)
    for name in documents_in(results):
        for file in (results / f"{name}.json", results / f"{name}.svg"):
            if file.exists():
                shutil.copyfile(file, kept / file.name)


def documents_in(folder: Path) -> dict[str, dict[str, Any]]:
    """The documents of a folder in the order of the suite; without those of benchmarks that still run."""
    files = [file for name in NAMES if (file := folder / f"{name}.json").exists()]
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
    return {name: document for name, document in found.items() if "machine" in document}


def filled(page: str, documents: Documents) -> str:
    """The page with the numbers of every document that there is; other places keep what they have."""
    whole: dict[str, Callable[[Documents], str]] = {"bars": all_bars, "machine": machines}

    def place(found: re.Match[str]) -> str:
        kind, name = found[2], found[3]
        if not documents or (name and name not in documents):
            return found[0]
        return f"{found[1]}{section(name, documents[name]) if name else whole[kind](documents)}{found[4]}"

    return _PLACE.sub(place, page)


def section(name: str, document: Mapping[str, Any]) -> str:
    """A benchmark's command, bars, tables, plot and notes as Markdown."""
    return "\n".join(_parts(name, document)) + "\n"


def _parts(name: str, document: Mapping[str, Any]) -> Iterator[str]:
    run = document["run"]
    yield f"`{run['command']}` (seed {run['seed']})\n"
    if "crashed" in document:
        yield f"It crashed: `{document['crashed'].splitlines()[-1]}`\n"
        return
    if document["bars"]:
        yield _table(("bar", "measured", "promised", "met"), [_bar(bar) for bar in document["bars"]])
    for table in document["tables"]:
        yield f"{table['title']}:\n"
        yield _table(table["columns"], table["rows"])
    yield f"![{document['question']}]({KEPT}/{name}.svg)\n"
    for note in document["notes"]:
        yield f"{note}\n"


def _bar(bar: Mapping[str, Any]) -> tuple[str, str, str, str]:
    measured = f"{readable(bar['value'])} {bar['unit']}"
    return bar["words"], measured, bar["limit_words"], "yes" if bar["met"] else "**no**"


def all_bars(documents: Documents) -> str:
    """Every bar of every benchmark in a line."""
    rows = [(name, *_bar(bar)) for name, document in documents.items() for bar in document.get("bars", ())]
    return _table(("benchmark", "bar", "measured", "promised", "met"), rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text.replace("|", "\\|")


def machines(documents: Documents) -> str:
    """What the numbers were measured on; a line for each machine and set of versions."""
    lines = [_machine(document) for document in documents.values() if "versions" in document]
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _machine(document: Mapping[str, Any]) -> str:
    machine, versions = document["machine"], ", ".join(f"{name} {text}" for name, text in document["versions"].items())
    return f"{machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}; {versions}."


def main() -> None:
    """Keep the results and fill the page in place."""
    results, page = Path(sys.argv[1]), Path(sys.argv[2])
    kept = page.parent / KEPT
    keep(results, kept)
    page.write_text(filled(page.read_text(encoding="utf-8"), documents_in(kept)), encoding="utf-8")


if __name__ == "__main__":
    main()
