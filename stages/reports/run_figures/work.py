"""The work: effective passes and seconds spent from the start of the path down to lambda (the shape of O16 Fig. 4)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gapwise.stages.reports.paint import BLUE, ORANGE, lambda_axis, plain_ticks
from gapwise.stages.reports.stored import StoredRun

SIZE = (7.0, 3.6)


def applies(run: StoredRun) -> bool:
    """False for a single lambda, which `convergence` shows."""
    return run.arrays["lambda"].size > 1


def paint(figure: Figure, run: StoredRun) -> None:
    lam = run.arrays["lambda"]
    panels = (("effective_passes", "effective passes", BLUE), ("seconds", "seconds of solving", ORANGE))
    for axes, (name, title, colour) in zip(figure.subplots(1, 2), panels, strict=True):
        total = np.cumsum(run.arrays[name])
        axes.step(lam, total, where="post", color=colour)
        axes.plot(lam, total, ls="", marker="o" if lam.size <= 60 else "", ms=3, color=colour)
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        axes.set_title(f"total {title}")
        axes.annotate(f"{total[-1]:,.3g}", (lam[-1], total[-1]), xytext=(0, 6), textcoords="offset points",
                      ha="right", color=colour)  # fmt: skip
        axes.margins(y=0.12)
        lambda_axis(axes, lam)
