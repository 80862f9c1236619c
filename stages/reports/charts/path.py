"""The path: the certified gap at every lambda and at the breakpoints."""

from __future__ import annotations

import numpy as np

from gapwise.stages.reports.bounds import gap_label, shown_lambdas, whole_axis
from gapwise.stages.reports.paint import BLUE, GREY, ORANGE
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

BETWEEN, SOLVED = "guaranteed in between", "gap at a solved λ"
"""What the legend calls the curve and the points."""
MOST = 1800
"""Most points of a curve."""


def applies(run: StoredRun) -> bool:
    """False for a single lambda, which `convergence` shows."""
    return run.arrays["lambda"].size > 1 or run.can.certifies_path()


def chart(run: StoredRun) -> Chart:
    return Chart((gaps(run),), title(run))


def title(run: StoredRun) -> str:
    """The conclusion, in words."""
    count, verdict = run.arrays["lambda"].size, run.verdict
    if not is_whole(run) or verdict.largest_gap is None:
        return f"{count} λ's solved"
    return f"{count} solved λ's certify a gap of {verdict.largest_gap:.3g} {verdict.lambdas}"


def is_whole(run: StoredRun) -> bool:
    """Whether the gap is certified between the breakpoints, too."""
    return run.verdict.of_path


def gaps(run: StoredRun) -> Panel:
    """The gap over lambda."""
    arrays, attrs, whole = run.arrays, run.attrs, is_whole(run)
    relative = bool(attrs.get("relative")) and run.can.certifies_path()
    lam, gap, eps = arrays["lambda"], np.array(arrays["gap"], float), float(attrs["eps"])
    if relative:
        gap = np.divide(gap, arrays["primal"], out=gap, where=arrays["primal"] > 0.0)
    known = gap[np.isfinite(gap)]
    least, top = float(np.min(known, initial=eps)), float(np.max(known, initial=eps))
    scale = log_or_linear(least, top)
    y = axis(
        "gap", gap_label(attrs, relative=relative), scale | {"domainMax": top * (1.15 if "zero" in scale else 1.5)}
    )
    x = lambda_axis(shown_lambdas(arrays, attrs))
    kinds = {"domain": [BETWEEN, SOLVED], "range": [BLUE, ORANGE]}
    layers: list[Spec] = []
    if whole:
        layers.append({
            "data": {"values": bound(run)}, "mark": {"type": "line", "strokeWidth": 1.5},
            "encoding": {"x": x, "y": y, "color": {"datum": kinds["domain"][0], "scale": kinds}},
        })  # fmt: skip
        layers += _ends(run)
    shown = {"lambda": "λ", "gap": "gap", "passes": "effective passes", "seconds": "seconds"}
    rows = records(**{"lambda": lam, "gap": gap, "passes": arrays["effective_passes"], "seconds": arrays["seconds"]})
    layers.append({
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 50 if lam.size <= 100 else 14, "opacity": 1},
        "encoding": {
            "x": x, "y": y, "tooltip": tooltip(shown),
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


def _ends(run: StoredRun) -> list[Spec]:
    """What holds beyond the left and the right end of the axis."""
    low = float(np.min(run.arrays["cell_low"], initial=np.inf))
    words: list[tuple[str, str, int, object]] = [("← and every larger λ", "left", 4, 0)]
    words += [("and every smaller λ →", "right", -4, "width")] if low == 0.0 else []
    behind = {"color": "white", "stroke": "white", "strokeWidth": 2}  # the curve may pass there
    return [
        {"data": {"values": [{"words": text}]},
         "mark": {"type": "text", "align": side, "dx": dx, "x": x, "y": "height", "dy": -8, **look},
         "encoding": {"text": {"field": "words"}}}
        for text, side, dx, x in words for look in (behind, {"color": BLUE})
    ]  # fmt: skip


def bound(run: StoredRun) -> list[Row]:
    """The certified gap from above the top of the path to below its last breakpoint."""
    arrays, attrs = run.arrays, run.attrs
    last, first = shown_lambdas(arrays, attrs)
    lams, gap = whole_axis(arrays, attrs, first, last)
    edges = np.flatnonzero(np.diff(lams, prepend=np.nan) != 0)
    shown = edges if edges.size <= MOST else edges[np.linspace(0, edges.size - 1, MOST).astype(int)]
    return records(**{"lambda": lams[shown], "gap": gap[shown]})
