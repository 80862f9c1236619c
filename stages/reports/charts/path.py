"""The path: the certified gap at every lambda and at the breakpoints; below, the number of breakpoints so far."""

from __future__ import annotations

import numpy as np

from gapwise.stages.reports.bounds import gap_label, whole_axis
from gapwise.stages.reports.paint import BLUE, GREEN, GREY, ORANGE
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.reports.vega import (
    Chart,
    Panel,
    Row,
    Spec,
    axis,
    lambda_axis,
    level,
    log_or_linear,
    records,
    tooltip,
)

MOST = 1800
"""Most points of a curve."""


def applies(run: StoredRun) -> bool:
    """False for a single lambda, which `convergence` shows."""
    return run.arrays["lambda"].size > 1 or run.can.certifies_path


def chart(run: StoredRun) -> Chart:
    return Chart((gaps(run), breakpoints(run)), same_x=True)


def is_whole(run: StoredRun) -> bool:
    """Whether the gap is certified between the breakpoints, too."""
    return run.verdict.of_path


def gaps(run: StoredRun) -> Panel:
    """The gap over lambda."""
    arrays, attrs, whole = run.arrays, run.attrs, is_whole(run)
    relative = bool(attrs.get("relative")) and run.can.certifies_path
    lam, gap, eps = arrays["lambda"], np.array(arrays["gap"], float), float(attrs["eps"])
    if relative:
        gap = np.divide(gap, arrays["primal"], out=gap, where=arrays["primal"] > 0.0)
    known = gap[np.isfinite(gap)]
    least, top = float(np.min(known, initial=eps)), float(np.max(known, initial=eps))
    y = axis("gap", gap_label(attrs, relative=relative), log_or_linear(least, top))
    kinds = {"domain": ["certified between breakpoints", "at a breakpoint"], "range": [BLUE, ORANGE]}
    layers: list[Spec] = []
    if whole:
        layers.append({
            "data": {"values": bound(run)}, "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {"x": lambda_axis(), "y": y, "color": {"datum": kinds["domain"][0], "scale": kinds}},
        })  # fmt: skip
    shown = {"lambda": "λ", "gap": "gap", "passes": "effective passes", "seconds": "seconds"}
    rows = records(**{"lambda": lam, "gap": gap, "passes": arrays["effective_passes"], "seconds": arrays["seconds"]})
    layers.append({
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 50 if lam.size <= 100 else 14, "opacity": 1},
        "encoding": {
            "x": lambda_axis(), "y": y, "tooltip": tooltip(shown),
            "color": {"datum": kinds["domain"][1], "scale": kinds} if whole else {"value": ORANGE},
        },
    })  # fmt: skip
    if relative or not attrs.get("relative"):  # on a grid, a relative tolerance is another gap at each λ
        layers += level(eps, f"{'ε' if run.can.finds_lambdas else 'tolerance'} = {eps:g}")
    if not known.size:
        layers.append({
            "data": {"values": [{"words": "the method certifies no gap"}]},
            "mark": {"type": "text", "x": {"expr": "width / 2"}, "y": {"expr": "height / 2"}, "color": GREY},
            "encoding": {"text": {"field": "words"}},
        })  # fmt: skip
    words = "Certified duality gap at every λ of the path." if whole else "Duality gap at each λ that was solved."
    return Panel("gaps", words, layers, {})


def bound(run: StoredRun) -> list[Row]:
    """The certified gap from above the top of the path to below its last breakpoint."""
    arrays, attrs = run.arrays, run.attrs
    lam = arrays["lambda"]
    first = 1.5 * max(float(attrs.get("lambda_top", attrs.get("lam_top", lam[0]))), float(lam[0]))
    lams, gap = whole_axis(arrays, attrs, first, 0.3 * float(lam[-1]))
    edges = np.flatnonzero(np.diff(lams, prepend=np.nan) != 0)
    shown = edges if edges.size <= MOST else edges[np.linspace(0, edges.size - 1, MOST).astype(int)]
    return records(**{"lambda": lams[shown], "gap": gap[shown]})


def breakpoints(run: StoredRun) -> Panel:
    """How many lambdas were solved down to each."""
    lam = run.arrays["lambda"]
    steps = records(**{"lambda": lam, "count": np.arange(1, lam.size + 1)})
    y = axis("count", "λ's solved", {"zero": True, "nice": True}, tickCount=4, format="d", tickMinStep=1)
    axes: Spec = {"x": lambda_axis(), "y": y}
    line = {"type": "line", "interpolate": "step-after", "color": GREEN, "strokeWidth": 2}
    end = {"data": {"values": steps[-1:]}}
    words = {"type": "text", "dy": -8, "dx": -2, "align": "right", "color": GREEN}
    layers: list[Spec] = [
        {"mark": line, "encoding": axes},
        {**end, "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1, "color": GREEN}, "encoding": axes},
        {**end, "mark": words, "encoding": {**axes, "text": {"field": "count", "type": "quantitative"}}},
    ]
    return Panel("breakpoints", "Number of λ's solved so far.", layers, {"data": {"values": steps}}, height=130)
