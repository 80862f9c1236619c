"""The eps that is certified at every lambda, over effective passes and over seconds, of a path whose rule lets it fall
while it is solved (`path.rule=anytime`)."""

from __future__ import annotations

import numpy as np

from gapwise.stages.reports.certified import certified_rows
from gapwise.stages.reports.charts.convergence import OVER
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.reports.vega import FALLING, Chart, Panel, Row, Spec, axis, level, records, tooltip


def applies(run: StoredRun) -> bool:
    """True if more than one eps was certified."""
    return bool(run.trace) and certified_rows(run.trace)["eps"].size > 1


def chart(run: StoredRun) -> Chart:
    rows = certified_rows(run.trace)
    least = float(np.min(rows["eps"]))
    return Chart([_panel(records(**rows), over, least) for over in OVER], f"every λ within {least:.3g}", beside=True)


def _panel(rows: list[Row], over: str, least: float) -> Panel:
    scale = {"type": "log", "nice": False, "padding": 8}
    encoding: Spec = {
        "x": axis(over, OVER[over]), "y": axis("eps", "ε certified at every λ", scale, format="~g", tickCount=4),
        "color": {"value": FALLING[0]},
    }  # fmt: skip
    shown = {"eps": "every λ within", "lambda": "solved λ", "passes": "passes so far", "seconds": "seconds so far"}
    layers: list[Spec] = [
        {"mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}, "encoding": encoding},
        {"mark": {"type": "point", "filled": True, "size": 30}, "encoding": {**encoding, "tooltip": tooltip(shown)}},
        *level(least, f"{least:.3g}"),
    ]
    words = f"Certified ε of the whole path against {OVER[over]}."
    return Panel(f"certified-{over}", words, layers, {"data": {"values": rows}}, height=240)
