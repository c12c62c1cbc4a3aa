"""The shape of a result: what a bar says, what the document holds, what the summary shows, what the plot draws."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

from benchmarks.measure import Usage
from benchmarks.plot import svg
from benchmarks.report import Bar, Chart, Mark, Result, Table, as_text, crashed, document, summary_rows, write_document
from benchmarks.rounds import Measurement, Ratio

RUN = {"command": "lean-ops bench it", "seed": 1, "repeats": 3, "sizes": {"events": 10}}
RESULT = Result(
    bars=(Bar("a < b", 1.5, 2.0, goal=1.6), Bar("rate", 50_000, 60_000, "bodies/s", at_least=True)),
    tables=(Table("numbers", ("what", "CPU s"), (("floor", 1.0), ("hop", 1.5))),),
    charts=(
        Chart("bars", "times", (Mark("a < b & c", 1.5, 1.4, 1.7),), limit=2.0),
        Chart("lines", "MB", lines=(("memory", (100.0, 110.0, 105.0)),), limit=200.0),
    ),
    measurements=(Measurement("hop", 1, Usage(2.0, 1.5, 1000, ("java", "python"))),),
    ratios=(Ratio("hop", "floor", "cpu_seconds", (1.4, 1.5, 1.7)),),
)


def test_a_bar_is_met_at_its_limit_and_on_the_right_side_of_it() -> None:
    assert Bar("x", 2.0, 2.0).met
    assert not Bar("x", 2.01, 2.0).met
    assert Bar("x", 60_001, 60_000, at_least=True).met
    assert not Bar("x", 59_999, 60_000, at_least=True).met
    assert Bar("x", 1, 2.0, goal=1.6).limit_words == "at most 2 times (goal 1.6)"


def test_the_document_says_how_it_was_measured_and_what_was_found(tmp_path: Path) -> None:
    file = write_document(tmp_path, document("it", "how much?", RESULT, RUN))
    found = json.loads(file.read_text(encoding="utf-8"))
    assert file.name == "it.json"
    assert found["run"] == RUN
    assert found["machine"]["cores"] >= 1
    assert {"python", "iceberg", "pyspark"} <= found["versions"].keys()
    assert [bar["met"] for bar in found["bars"]] == [True, False]
    assert found["ratios"][0]["median"] == 1.5
    assert found["measurements"][0]["usage"]["peak_bytes"] == 1000
    assert found["tables"][0]["rows"] == [["floor", 1.0], ["hop", 1.5]]


def test_the_summary_has_a_line_for_each_bar_and_for_each_crash() -> None:
    rows = summary_rows([document("it", "?", RESULT, RUN), crashed("bad", "?", "Traceback\nKeyError: 'x'", RUN)])
    assert [row[4] for row in rows[1:]] == ["met", "MISSED", "CRASHED"]
    assert rows[-1][1] == "KeyError: 'x'"
    lines = as_text(rows).splitlines()
    assert len({line.find("at most") for line in lines if "at most" in line}) == 1


def test_the_plot_is_a_picture_with_every_mark_and_line() -> None:
    picture = ET.fromstring(svg(RESULT.charts))  # noqa: S314  our own text
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b & c" in texts
    assert {"memory", "0", "1", "2"} <= set(texts)
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 1
