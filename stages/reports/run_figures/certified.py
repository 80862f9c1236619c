"""The eps that is certified at every lambda, over effective passes and over seconds, of a path whose rule lets it fall
while it is solved (`path.rule=anytime`)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gapwise.stages.reports.certified import certified_rows
from gapwise.stages.reports.paint import BLUE, GREY
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.results import read_trace

SIZE = (7.0, 3.2)


def applies(run: StoredRun) -> bool:
    """True if more than one eps was certified."""
    return (run.place / "trace.zarr").is_dir() and certified_rows(read_trace(run.place))["eps"].size > 1


def paint(figure: Figure, run: StoredRun) -> None:
    rows = certified_rows(read_trace(run.place))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, over, title in zip(
        panels, ("passes", "seconds"), ("effective passes", "seconds of solving"), strict=True
    ):
        axes.step(rows[over], rows["eps"], where="post", color=BLUE)
        axes.plot(rows[over], rows["eps"], ls="", marker="o" if rows["eps"].size <= 60 else "", ms=3, color=BLUE)
        axes.axhline(float(np.min(rows["eps"])), color=GREY, ls="--", lw=1)
        axes.set(yscale="log", xlabel=title)
    panels[0].set_ylabel("ε certified at every λ")
    panels[0].set_title(f"every λ within {np.min(rows['eps']):.3g}")
