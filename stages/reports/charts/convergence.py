"""The convergence: the gap over effective passes and over seconds, one colour per lambda, from the trace of the solve.

Of a method without a dual point, the primal objective.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.paint import GREY
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.reports.vega import FALLING, Chart, Panel, Row, Spec, axis, level, records, tooltip

LAMBDAS = 40
"""Most lambdas that are shown, evenly spaced among those there are."""
NAMED = 8
"""Most lambdas that the legend names all; of more it has four."""
ROWS = 200
"""Most certificates that are shown of one lambda."""
OVER = {"passes": "effective passes", "seconds": "seconds of solving"}


def applies(run: StoredRun) -> bool:
    """True if gaps were recorded during the solve, or primal values where there are no gaps."""
    return bool(run.trace) and quantity(run.trace) != ""


def quantity(trace: Mapping[str, np.ndarray]) -> str:
    """The column that is drawn; empty if there is nothing to draw."""
    if np.any(np.nan_to_num(trace["gap"]) > 0.0):
        return "gap"
    return "primal" if trace["gap"].size and np.isnan(trace["gap"]).all() else ""


def chart(run: StoredRun) -> Chart:
    column = quantity(run.trace)
    lams, rows = by_lambda(run)
    fresh = is_fresh(lams, rows)
    name = "ε" if run.can.finds_lambdas else "tolerance"
    words = [f"λ = {lams[0]:.3g}"] if len(lams) == 1 else []
    words += [f"{name} {run.attrs['eps']:g}"] if column == "gap" else []
    panels = [_panel(run, column, rows, lams, over, fresh) for over in OVER]
    return Chart(panels, ", ".join(words), beside=True)


def is_fresh(lams: list[float], rows: list[Row]) -> bool:
    """Whether work is counted from the start of each lambda: where most of them have a curve of their own."""
    return len(lams) > 1 and len(rows) >= 3 * len(lams)


def by_lambda(run: StoredRun) -> tuple[list[float], list[Row]]:
    """The lambdas that are shown, falling, and their certificates with the work since the start of each."""
    trace = run.trace
    column = quantity(trace)
    lams = np.unique(trace["lambda"])[::-1]
    if lams.size > LAMBDAS:
        lams = lams[np.linspace(0, lams.size - 1, LAMBDAS).round().astype(int)]
    before = {name: np.concatenate([[0.0], trace[name][:-1]]) for name in OVER}
    rows: list[Row] = []
    for k, lam in enumerate(lams):
        (shown,) = np.nonzero((trace["lambda"] == lam) & (np.nan_to_num(trace[column]) > 0.0))
        if shown.size > ROWS:
            shown = shown[np.linspace(0, shown.size - 1, ROWS).round().astype(int)]
        own = {f"own_{name}": trace[name][shown] - before[name][shown[:1]] if shown.size else [] for name in before}
        rows += records(
            k=np.full(shown.size, k),
            **{name: trace[name][shown] for name in ("lambda", column, "passes", "seconds")},
            **own,
        )
    return lams.tolist(), rows


def _panel(run: StoredRun, column: str, rows: list[Row], lams: list[float], over: str, fresh: bool) -> Panel:
    """The chart over `over`; a page sets its parameters `fresh`, see `is_fresh`, and `chosen`, the number of the only λ to
    show, or -1."""
    title = gap_label(run.attrs) if column == "gap" else "primal objective"
    named = lams if len(lams) <= NAMED else lams[:: max(len(lams) // 3, 1)]
    many = {"field": "lambda", "type": "quantitative", "scale": {"type": "log", "range": [*FALLING[::-1]]},
            "legend": {"title": "λ", "format": ".2~g", "values": named, "type": "symbol", "direction": "horizontal",
                       "columns": 4}}  # fmt: skip
    encoding: Spec = {
        "x": axis("x", OVER[over] + (" at each λ" if fresh else "")),
        "y": axis(column, title, {"type": "log", "nice": False, "padding": 8}, format="~g", tickCount=4),
        "color": many if len(lams) > 1 else {"value": FALLING[0]},
        "detail": {"field": "k"},
        "opacity": {"condition": {"test": "chosen < 0 || datum.k == chosen", "value": 1}, "value": 0.08},
    }  # fmt: skip
    shown = {"lambda": "λ", column: title, "passes": "passes so far", "seconds": "seconds so far"}
    whole = {
        "x": encoding["x"], "y": encoding["y"], "order": {"field": "passes"},
        "opacity": {"condition": {"test": "fresh || chosen >= 0", "value": 0}, "value": 0.35},
    }  # fmt: skip
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 1, "color": GREY}, "encoding": whole},
        {"mark": {"type": "line", "strokeWidth": 1.5}, "encoding": encoding},
        {"mark": {"type": "point", "filled": True, "size": 30}, "encoding": {**encoding, "tooltip": tooltip(shown)}},
    ]
    if column == "gap" and not run.attrs.get("relative"):
        name = "ε" if run.can.finds_lambdas else "tolerance"
        layers += level(float(run.attrs["eps"]), f"{name} = {run.attrs['eps']:g}", at_left=True)
    return Panel(
        f"convergence-{over}", f"{title[:1].upper()}{title[1:]} against {OVER[over]}.", layers,
        {"data": {"values": rows}, "transform": [{"calculate": f"fresh ? datum.own_{over} : datum.{over}", "as": "x"}]},
        params=({"name": "fresh", "value": fresh}, {"name": "chosen", "value": -1}), height=240,
    )  # fmt: skip
