"""HTML for notebooks, without scripts or external files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from . import _native

_CELL = "padding:1px 8px;text-align:right;font-family:monospace"
_TEXT = "padding:1px 8px;text-align:left;font-family:monospace"
_BAR = "display:inline-block;height:0.7em;background:#4878a8"
_MOST = 12


def size(count: int) -> str:
    """Formats bytes in units of 1024, with about three digits."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{count} B" if unit == "B" else f"{amount:.4g} {unit}"
        amount /= 1024
    return f"{amount:.4g} TiB"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> str:
    """A table of HTML cells; the first `numbers` columns are right-aligned."""
    styles = [_CELL if i < numbers else _TEXT for i in range(len(head))]
    top = "".join(f'<th style="{style}">{escape(one)}</th>' for style, one in zip(styles, head))
    body = "".join(_row(zip(styles, row)) for row in rows)
    return f'<table style="border-collapse:collapse"><tr>{top}</tr>{body}</table>'


def _row(cells: Iterable[tuple[str, str]]) -> str:
    return "<tr>" + "".join(f'<td style="{style}">{cell}</td>' for style, cell in cells) + "</tr>"


def _bar(part: int, whole: int) -> str:
    width = 0 if whole <= 0 else max(0, min(100, round(100 * part / whole)))
    return f'<span style="{_BAR};width:{width}px"></span>'


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _some(count: int) -> list[int | None]:
    """The indices of the rows to show; None in place of those left out."""
    if count <= _MOST:
        return list(range(count))
    half = _MOST // 2
    return [*range(half), None, *range(count - half, count)]


def tensor_html(t: Any) -> str:
    """A tensor or variable: type, shape, bytes, and its first and last elements as a table."""
    what = escape(f"{t.dtype.name}{tuple(t.shape)}, {size(t.nbytes)}")
    title = f"<b>{escape(type(t).__name__)}</b> {what}"
    if t.is_symbolic:
        return f"<div>{title}, traced</div>"
    value = np.asarray(t)
    if value.dtype.kind not in "biuf":
        value = value.astype(np.float32)
    if not value.size or value.ndim > 2:
        text = np.array2string(value, threshold=_MOST, edgeitems=2, precision=4)
        return f"<div>{title}<pre>{escape(text)}</pre></div>"
    rows = value.reshape(1, -1) if value.ndim < 2 else value
    columns = _some(rows.shape[1])

    def cell(i: int | None, j: int | None) -> tuple[str, str]:
        return _CELL, "…" if i is None or j is None else escape(_number(rows[i, j]))

    body = "".join(_row(cell(i, j) for j in columns) for i in _some(rows.shape[0]))
    return f'<div>{title}<table style="border-collapse:collapse">{body}</table></div>'


def plan_html(plan: _native.Plan) -> str:
    """A plan: its bytes, and the buffers that are live at the peak, with reason and remedy."""
    whole = max(plan.total_bytes, 1)
    parts = [
        ("peak of a call", plan.peak_bytes),
        ("arena", plan.arena_bytes),
        ("lower bound", plan.lower_bound),
        ("results", plan.output_bytes),
        ("arguments", plan.input_bytes),
        ("variables", plan.variable_bytes),
        ("constants", plan.constant_bytes),
    ]
    sizes = ((size(count), _bar(count, whole), escape(name)) for name, count in parts)
    bars = _table(["bytes", "", ""], sizes, 1)
    _, alive = plan._explain_peak()
    rows = (
        (
            size(count),
            _bar(count, plan.peak_bytes),
            *(escape(one or "") for one in (op, line, why, remedy)),
        )
        for count, op, line, why, remedy in alive
    )
    peak = _table(["bytes", "", "op", "line", "why", "what would free it"], rows, 1)
    return f"<div><b>Plan</b> of {len(plan.steps)} steps{bars}<b>At the peak</b>{peak}</div>"


def report_html(report: Any) -> str:
    """A snapshot of the ledger: bytes by category, and by line if lines were recorded."""
    whole = max((peak for _, _, peak in report.categories), default=1)
    used = [row for row in report.categories if row[1] or row[2]]
    rows = ((size(live), _bar(live, whole), size(peak), escape(name)) for name, live, peak in used)
    parts = [_table(["live", "", "peak", "category"], rows, 3)]
    if report.lines:
        most = max(count for count, *_ in report.lines)
        lines = (
            (size(count), _bar(count, most), str(buffers), escape(category), escape(line or ""))
            for count, buffers, category, line in sorted(report.lines, key=lambda one: -one[0])
        )
        parts.append(_table(["bytes", "", "buffers", "category", "line"], lines, 3))
    return f"<div><b>Memory</b>{''.join(parts)}</div>"
