"""The work: effective passes and seconds spent from the start of the path down to lambda (the shape of O16 Fig. 4)."""

from __future__ import annotations

import numpy as np

from gapwise.stages.reports.paint import BLUE, ORANGE
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.reports.vega import Chart, Panel, Spec, axis, lambda_axis, records, tooltip

TITLES = {"effective_passes": ("total effective passes", BLUE), "seconds": ("total seconds of solving", ORANGE)}


def applies(run: StoredRun) -> bool:
    """False for a single lambda, which `convergence` shows."""
    return run.arrays["lambda"].size > 1


def chart(run: StoredRun) -> Chart:
    return Chart([_panel(run, column) for column in TITLES], beside=True, same_x=True)


def _panel(run: StoredRun, column: str) -> Panel:
    title, colour = TITLES[column]
    rows = records(**{"lambda": run.arrays["lambda"], "total": np.cumsum(run.arrays[column])})
    scale = {"type": "log", "nice": False, "padding": 12} if float(np.min(run.arrays[column][:1])) > 0.0 else {}
    axes: Spec = {"x": lambda_axis(), "y": axis("total", title, scale, format="~g", tickCount=5)}
    mark = {"type": "line", "interpolate": "step-after", "color": colour, "strokeWidth": 2}
    point = {"type": "point", "filled": True, "opacity": 1, "size": 30 if len(rows) <= 60 else 0, "color": colour}
    words = {"type": "text", "dy": -9, "align": "right", "color": colour}
    layers: list[Spec] = [
        {"mark": mark, "encoding": axes},
        {"mark": point, "encoding": {**axes, "tooltip": tooltip({"lambda": "λ", "total": title})}},
        {"data": {"values": rows[-1:]}, "mark": words,
         "encoding": {**axes, "text": {"field": "total", "type": "quantitative", "format": ",.3~r"}}},
    ]  # fmt: skip
    said = f"{title[0].upper()}{title[1:]} from the start of the path down to λ."
    return Panel(f"work-{column}", said, layers, {"data": {"values": rows}})
