"""`python -m benchmarks.docs build/bench docs/performance.md`: the documents' numbers into the page's marked places.

A place is what stands between `<!-- numbers: NAME -->` and `<!-- end -->`; a benchmark without a document keeps
what its place has.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PLACE: Final = re.compile(r"(<!-- numbers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str, documents: Mapping[str, Mapping[str, Any]]) -> str:
    """The page with the numbers of every document that there is."""

    def place(found: re.Match[str]) -> str:
        name = found[2]
        return f"{found[1]}{section(documents[name])}{found[3]}" if name in documents else found[0]

    return _PLACE.sub(place, page)


def section(document: Mapping[str, Any]) -> str:
    """A benchmark's command, bars, tables and notes as Markdown."""
    return "\n".join(_parts(document)) + "\n"


def _parts(document: Mapping[str, Any]) -> Iterator[str]:
    run = document["run"]
    yield f"`{run['command']}` (seed {run['seed']})\n"
    if "crashed" in document:
        yield f"It crashed: `{document['crashed'].splitlines()[-1]}`\n"
    if document.get("bars"):
        rows = [
            (bar["words"], f"{bar['value']:.4g} {bar['unit']}", bar["limit_words"], "yes" if bar["met"] else "**no**")
            for bar in document["bars"]
        ]
        yield _table(("bar", "measured", "promised", "met"), rows)
    for table in document.get("tables", ()):
        yield f"{table['title']}:\n"
        yield _table(table["columns"], table["rows"])
    for note in document.get("notes", ()):
        yield f"{note}\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text.replace("|", "\\|")


def machine_line(documents: Mapping[str, Mapping[str, Any]]) -> str:
    """What the numbers were measured on."""
    document = next(found for found in documents.values() if "versions" in found)
    machine, versions = document["machine"], ", ".join(f"{name} {text}" for name, text in document["versions"].items())
    return f"{machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}; {versions}.\n"


def main() -> None:
    """Fill the page in place."""
    folder, page = Path(sys.argv[1]), Path(sys.argv[2])
    files = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}
    found = {name: document for name, document in files.items() if "machine" in document}  # else it did not end yet
    text = filled(page.read_text(encoding="utf-8"), found)
    if found:
        text = re.sub(
            r"(<!-- machine -->\n).*?(<!-- end -->)",
            lambda place: place[1] + machine_line(found) + place[2],
            text,
            flags=re.DOTALL,
        )
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
