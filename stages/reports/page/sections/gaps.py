"""The certified gap at every lambda of the path, and at the breakpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.bounds import gap_label, whole_axis
from gapwise.stages.reports.page.charts import BLUE, ORANGE, frame, lambda_axis, level, log_or_linear, tooltip
from gapwise.stages.reports.page.html import chart, paragraph, records
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term

ORDER = 20
TITLE = "How sure: the gap over λ"
MOST = 1800
"""Most points of a curve."""


def applies(run: ReportedRun) -> bool:
    """False for a single lambda, whose one gap is in the table, and where nothing has a gap."""
    return (run.arrays["lambda"].size > 1 or run.can.certifies_path) and bool(np.isfinite(run.arrays["gap"]).any())


def content(run: ReportedRun) -> Markup:
    arrays, attrs = run.arrays, run.attrs
    relative = bool(attrs.get("relative")) and run.can.certifies_path
    lam, gap, eps = arrays["lambda"], np.array(arrays["gap"], float), float(attrs["eps"])
    if relative:
        gap = np.divide(gap, arrays["primal"], out=gap, where=arrays["primal"] > 0.0)
    top = max(eps, float(np.nanmax(gap)))
    y = {"type": "quantitative", "title": gap_label(attrs, relative=relative), "field": "gap",
         "scale": log_or_linear(float(np.nanmin(gap)), top)}  # fmt: skip
    kinds = {"domain": ["between breakpoints", "at a breakpoint"], "range": [BLUE, ORANGE]}
    layers: list[dict[str, Any]] = []
    whole = run.verdict.of_path
    if whole:
        layers.append({
            "data": {"values": bound(run)}, "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {"x": lambda_axis(), "y": y, "color": {"datum": kinds["domain"][0], "scale": kinds}},
        })  # fmt: skip
    passes = arrays["effective_passes"]
    shown = {"lambda": "λ", "gap": "gap", "passes": "effective passes", "seconds": "seconds"}
    layers.append({
        "data": {"values": records(**{"lambda": lam, "gap": gap, "passes": passes, "seconds": arrays["seconds"]})},
        "mark": {"type": "point", "filled": True, "size": 60 if lam.size <= 100 else 14, "opacity": 1},
        "encoding": {
            "x": lambda_axis(), "y": y, "tooltip": tooltip(shown),
            "color": {"datum": kinds["domain"][1], "scale": kinds} if whole else {"value": ORANGE},
        },
    })  # fmt: skip
    if relative or not attrs.get("relative"):  # on a grid, a relative tolerance is another gap at each λ
        layers += level(eps, f"{'ε' if whole else 'tolerance'} = {eps:g}")
    words = "Certified duality gap at every λ of the path." if whole else "Duality gap at each λ that was solved."
    there = " Between {}, the curve is the certified gap of the model there."
    said = paragraph(
        "The ", term("duality gap"), " says how far a model can be from the optimum. On and below the dashed line it is as "
        "good as was asked for. λ falls from left to right.",
        Markup(there).format(term("breakpoint", "breakpoints")) if whole else "",
    )  # fmt: skip
    return said + chart("gaps", frame(layers), words)


def bound(run: ReportedRun) -> list[dict[str, Any]]:
    """The certified gap from above the top of the path to below its last breakpoint."""
    arrays, attrs = run.arrays, run.attrs
    lam = arrays["lambda"]
    first = 1.5 * max(float(attrs.get("lambda_top", attrs.get("lam_top", lam[0]))), float(lam[0]))
    at, gap = whole_axis(arrays, attrs, first, 0.3 * float(lam[-1]))
    edges = np.flatnonzero(np.diff(at, prepend=np.nan) != 0)
    kept = edges if edges.size <= MOST else edges[np.linspace(0, edges.size - 1, MOST).astype(int)]
    return records(**{"lambda": at[kept], "gap": gap[kept]})
