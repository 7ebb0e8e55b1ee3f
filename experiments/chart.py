# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of the experiments as SVG, readable on light and dark ground. Same input, same bytes."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 800, 400
LEFT, RIGHT, TOP, BOTTOM = 76, 220, 48, 62
# Okabe and Ito's palette, which colour-blind readers can tell apart; dashes tell lines apart without colour.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#8a6d3b", "#7f7f7f"]
DASHES = ["", "7 4", "2 4", "10 3 2 3", "5 2", "1 3", "12 4", "3 3"]
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #222 } .title { font-size: 16px; font-weight: 600 }
.grid { stroke: #ccc } .axis { stroke: #555 } .ground { fill: #fff } .hollow { fill: #fff }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .grid { stroke: #444 } .axis { stroke: #aaa } .ground { fill: #1b1b1b } .hollow { fill: #1b1b1b }
}
</style>"""


def lines(title: str, x_label: str, y_label: str, x: Sequence[object],
          series: Mapping[str, Sequence[float | None]], *, hollow: Mapping[str, Sequence[bool]] | None = None,
          y_from_zero: bool = True, hollow_means: str = "does not fit") -> str:
    """Lines over evenly spaced places `x`. None leaves a gap; points where `hollow` is true are drawn as rings."""
    values = [value for row in series.values() for value in row if value is not None]
    axis = _Axis(0 if y_from_zero else min(values), max(values))
    parts = _frame(title, x_label, y_label, x, axis)
    for number, (name, row) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        points = [(_x(i, len(x)), axis.y(value)) for i, value in enumerate(row) if value is not None]
        path = " ".join(f"{'L' if i else 'M'}{px:.1f} {py:.1f}" for i, (px, py) in enumerate(points))
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.5" '
                     f'stroke-dasharray="{DASHES[number % len(DASHES)]}"/>')
        rings = (hollow or {}).get(name, [False] * len(row))
        for i, value in enumerate(row):
            if value is not None:
                fill = 'class="hollow"' if rings[i] else f'fill="{colour}"'
                parts.append(f'<circle cx="{_x(i, len(x)):.1f}" cy="{axis.y(value):.1f}" r="4.5" {fill} '
                             f'stroke="{colour}" stroke-width="2"><title>{escape(name)}, {escape(str(x[i]))}: '
                             f'{_short(value)}</title></circle>')
        y = TOP + 8 + 20 * number
        parts.append(f'<path d="M{WIDTH - RIGHT + 14} {y}h26" stroke="{colour}" stroke-width="2.5" '
                     f'stroke-dasharray="{DASHES[number % len(DASHES)]}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 46}" y="{y + 4}">{escape(name)}</text>')
    if any(any(rings) for rings in (hollow or {}).values()):
        y = TOP + 16 + 20 * len(series)
        parts.append(f'<circle cx="{WIDTH - RIGHT + 27}" cy="{y}" r="4.5" class="hollow" stroke="#888" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 46}" y="{y + 4}">{escape(hollow_means)}</text>')
    return _document(title, parts)


def bars(title: str, y_label: str, labels: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """One stacked bar per label."""
    axis = _Axis(0, max(sum(column) for column in zip(*series.values())))
    parts = _frame(title, "", y_label, labels, axis)
    width = 0.62 * (WIDTH - LEFT - RIGHT) / len(labels)
    base = [0.0] * len(labels)
    for number, (name, row) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        for i, value in enumerate(row):
            top, bottom = axis.y(base[i] + value), axis.y(base[i])
            parts.append(f'<rect x="{_x(i, len(labels)) - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
                         f'height="{bottom - top:.1f}" fill="{colour}"><title>{escape(name)}, {escape(labels[i])}: '
                         f'{_short(value)}</title></rect>')
            base[i] += value
        y = TOP + 2 + 20 * (len(series) - 1 - number)
        parts.append(f'<rect x="{WIDTH - RIGHT + 14}" y="{y}" width="14" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 36}" y="{y + 11}">{escape(name)}</text>')
    return _document(title, parts)


class _Axis:
    """The vertical axis, with round marks."""

    def __init__(self, low: float, high: float) -> None:
        step = 10 ** math.floor(math.log10((high - low) or 1))
        while (high - low) / step < 4:
            step /= 2
        self.step = step
        self.low = step * math.floor(low / step)
        self.high = step * math.ceil(high / step)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - self.low) / (self.high - self.low)

    def marks(self) -> list[float]:
        return [self.low + i * self.step for i in range(round((self.high - self.low) / self.step) + 1)]


def _x(index: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / count


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _frame(title: str, x_label: str, y_label: str, x: Sequence[object], axis: _Axis) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>']
    for mark in axis.marks():
        y = axis.y(mark)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_short(mark)}</text>')
    for i, label in enumerate(x):
        parts.append(f'<text x="{_x(i, len(x)):.1f}" y="{bottom + 20}" text-anchor="middle">{escape(str(label))}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {bottom}H{right}"/>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 16}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text transform="translate(18 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
                 f'{escape(y_label)}</text>')
    return parts


def _document(title: str, parts: Sequence[str]) -> str:
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(title)}">')
    ground = f'<rect class="ground" width="{WIDTH}" height="{HEIGHT}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, ground, *parts, "</svg>"]) + "\n"
