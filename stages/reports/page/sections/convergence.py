"""Convergence: the gap against effective passes and against seconds, for each lambda, from the trace of the solve."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.page.charts import FALLING, GREY, axis, frame, level, tooltip
from gapwise.stages.reports.page.html import chart, joined, number, paragraph, records
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term

ORDER = 40
TITLE = "How fast: convergence"
LAMBDAS = 40
"""Most lambdas that are shown, evenly spaced among those there are."""
ROWS = 200
"""Most certificates that are shown of one lambda."""


def applies(run: ReportedRun) -> bool:
    """True if a positive gap was recorded during the solve."""
    return bool(run.trace) and bool(np.any(np.nan_to_num(run.trace["gap"]) > 0.0))


def content(run: ReportedRun) -> Markup:
    lams, rows = by_lambda(run)
    fresh = len(rows) >= 3 * len(lams)
    charts = joined(
        chart(f"convergence-{over}", spec(run, rows, len(lams), over, title, fresh), f"Duality gap against {title}.")
        for over, title in (("passes", "effective passes"), ("seconds", "seconds of solving"))
    )
    many = "; one colour per λ. Each λ starts from the solution of the one before, so most of them need little work."
    said = paragraph(
        "Each point is a ", term("duality gap"), " that the solver computed with a pass over all ", term("block", "blocks"),
        many if len(lams) > 1 else ".",
    )  # fmt: skip
    return said + controls(lams, fresh) + Markup('<div class="pair">{}</div>').format(charts)


def by_lambda(run: ReportedRun) -> tuple[list[float], list[dict[str, Any]]]:
    """The lambdas that are shown, falling, and their certificates with the work since the start of each."""
    trace = run.trace
    lams = np.unique(trace["lambda"])[::-1]
    if lams.size > LAMBDAS:
        lams = lams[np.linspace(0, lams.size - 1, LAMBDAS).round().astype(int)]
    before = {name: np.concatenate([[0.0], trace[name][:-1]]) for name in ("passes", "seconds")}
    rows = []
    for k, lam in enumerate(lams):
        (at,) = np.nonzero((trace["lambda"] == lam) & (np.nan_to_num(trace["gap"]) > 0.0))
        if at.size > ROWS:
            at = at[np.linspace(0, at.size - 1, ROWS).round().astype(int)]
        own = {f"own_{name}": trace[name][at] - before[name][at[:1]] if at.size else [] for name in before}
        rows += records(
            k=np.full(at.size, k), **{name: trace[name][at] for name in ("lambda", "gap", "passes", "seconds")}, **own
        )
    return lams.tolist(), rows


def spec(
    run: ReportedRun, rows: list[dict[str, Any]], count: int, over: str, title: str, fresh: bool
) -> dict[str, Any]:
    """The chart over `over`; the page sets its parameters `fresh`, whether to count from the start of each λ, and `chosen`,
    the number of the only λ to show, or -1."""
    many = {"field": "lambda", "type": "quantitative", "scale": {"type": "log", "range": [*FALLING[::-1]]},
            "legend": {"title": "λ", "format": "~g", "type": "gradient", "direction": "horizontal",
                       "gradientLength": 180, "tickCount": 3}}  # fmt: skip
    encoding: dict[str, Any] = {
        "x": axis("x", title),
        "y": axis("gap", gap_label(run.attrs), {"type": "log", "nice": False, "padding": 8}, format="~g", tickCount=4),
        "color": many if count > 1 else {"value": FALLING[0]},
        "detail": {"field": "k"},
        "opacity": {"condition": {"test": "chosen < 0 || datum.k == chosen", "value": 1}, "value": 0.08},
    }  # fmt: skip
    points = {
        **encoding,
        "tooltip": tooltip({"lambda": "λ", "gap": "gap", "passes": "passes so far", "seconds": "seconds so far"}),
    }
    whole = {
        "x": encoding["x"], "y": encoding["y"], "order": {"field": "passes"},
        "opacity": {"condition": {"test": "fresh || chosen >= 0", "value": 0}, "value": 0.35},
    }  # fmt: skip
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "strokeWidth": 1, "color": GREY}, "encoding": whole},
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": encoding},
        {"mark": {"type": "point", "filled": True, "size": 36}, "encoding": points},
    ]
    if not run.attrs.get("relative"):
        name = "ε" if run.can.finds_lambdas else "tolerance"
        layers += level(float(run.attrs["eps"]), f"{name} = {run.attrs['eps']:g}", at_left=True)
    return frame(
        layers, height=240, data={"values": rows},
        transform=[{"calculate": f"fresh ? datum.own_{over} : datum.{over}", "as": "x"}],
        params=[{"name": "fresh", "value": fresh}, {"name": "chosen", "value": -1}],
    )  # fmt: skip


def controls(lams: list[float], fresh: bool) -> Markup:
    """What to count from and which λ to pick out; nothing for a single λ."""
    if len(lams) < 2:
        return Markup("")
    choices = joined(
        Markup('<option value="{}">λ = {}</option>').format(k, number(lam, ".4g")) for k, lam in enumerate(lams)
    )
    text = Markup(
        '<p class="controls"><label>Show <select data-signal="chosen"><option value="-1">every λ</option>{}</select>'
        "</label> "
        '<label><input type="checkbox" data-signal="fresh"{}> count from the start of each λ</label></p>'
    )
    return text.format(choices, Markup(" checked") if fresh else "")
