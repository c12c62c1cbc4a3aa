"""Charts as SVG, made of a few shapes: a plot needs no package of its own and the same numbers make the same file."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from benchmarks.report import readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.report import Chart, Mark

_WIDTH: Final = 760
_LABELS: Final = 290
_ROW: Final = 26
_TITLE: Final = 34
_PLOT_HEIGHT: Final = 220
_COLOURS: Final = ("#2f6f9f", "#c2703d", "#4f8f4f", "#8a5a9e", "#777777")
_LIMIT: Final = "#b03030"
_FEW: Final = 10  # places whose numbers all have room


def svg(charts: Sequence[Chart]) -> str:
    """The charts below each other as one picture."""
    parts, top = [], 0
    for chart in charts:
        shapes, height = (_lines(chart) if chart.lines else _bars(chart)), _height(chart)
        parts.append(f'<g transform="translate(0 {top})">{"".join(shapes)}</g>')
        top += height
    paper = '<rect width="100%" height="100%" fill="white"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top}" viewBox="0 0 {_WIDTH} {top}"'
        f' font-family="sans-serif" font-size="13">{paper}{"".join(parts)}</svg>\n'
    )


def _height(chart: Chart) -> int:
    return _TITLE + (_PLOT_HEIGHT + 2 * _ROW if chart.lines else _ROW * (len(chart.marks) + 1))


def _text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def _title(chart: Chart) -> str:
    return _text(12, 22, f"{chart.title} ({chart.unit})", more='font-weight="bold"')


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def _bars(chart: Chart) -> Iterator[str]:
    """A bar per mark, with a whisker from the best round to the worst."""
    yield _title(chart)
    most = max([mark.highest for mark in chart.marks] + [chart.limit or 0]) or 1
    scale = (_WIDTH - _LABELS - 110) / most
    for number, mark in enumerate(chart.marks):
        yield from _bar(mark, _TITLE + number * _ROW, scale, _COLOURS[number % len(_COLOURS)])
    if chart.limit is not None:
        x, bottom = _LABELS + chart.limit * scale, _TITLE + len(chart.marks) * _ROW
        yield _line(x, _TITLE - 4, x, bottom, _LIMIT, 'stroke-dasharray="4 3"')
        yield _text(x, bottom + 14, f"bar {chart.limit:g}", "middle", f'fill="{_LIMIT}" font-size="11"')


def _bar(mark: Mark, top: float, scale: float, colour: str) -> Iterator[str]:
    middle, width, end = top + _ROW / 2, mark.value * scale, _LABELS + mark.highest * scale
    yield _text(_LABELS - 8, middle + 4, mark.label, "end")
    yield f'<rect x="{_LABELS}" y="{top + 4:.1f}" width="{width:.1f}" height="{_ROW - 9}" fill="{colour}"/>'
    yield _line(_LABELS + mark.lowest * scale, middle, end, middle, "black")
    yield _text(end + 6, middle + 4, readable(mark.value))


def _lines(chart: Chart) -> Iterator[str]:
    """Lines over the number of a cycle, with their names below."""
    yield _title(chart)
    longest = max(len(values) for _, values in chart.lines)
    most = max([value for _, values in chart.lines for value in values] + [chart.limit or 0]) or 1
    step, scale, bottom = (_WIDTH - 100) / max(1, longest - 1), (_PLOT_HEIGHT - 10) / most, _TITLE + _PLOT_HEIGHT
    yield _text(54, bottom + 4, "0", "end")
    yield _text(54, bottom - most * scale + 4, readable(most), "end")
    yield from _numbered_axis(longest, step, bottom)
    for number, (name, values) in enumerate(chart.lines):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{60 + place * step:.1f},{bottom - value * scale:.1f}" for place, value in enumerate(values))
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield _text(60 + number * 170, bottom + _ROW + 10, name, more=f'fill="{colour}"')
    if chart.limit is not None:
        y = bottom - chart.limit * scale
        yield _line(60, y, _WIDTH - 40, y, _LIMIT, 'stroke-dasharray="4 3"')


def _numbered_axis(places: int, step: float, bottom: float) -> Iterator[str]:
    """A mark for each place, a number for each or, where many are close together, for every fifth."""
    yield _line(60, bottom, _WIDTH - 40, bottom, "black")
    for place in range(places):
        x = 60 + place * step
        yield _line(x, bottom, x, bottom + 4, "black")
        if place % 5 == 0 or places <= _FEW:
            yield _text(x, bottom + 16, str(place), "middle", 'font-size="11"')
