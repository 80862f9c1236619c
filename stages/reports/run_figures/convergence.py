"""The convergence: the gap over effective passes and over seconds since the start of the run, one colour per lambda.

Of a method without a dual point, the primal objective.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from gapwise.stages.reports.bounds import gap_label
from gapwise.stages.reports.paint import BLUE, GREY
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.solver.path.rules import capabilities
from gapwise.storage.results import read_trace

SIZE = (7.0, 3.4)
COLOURS = colormaps["plasma"].resampled(256)


def applies(run: StoredRun) -> bool:
    """True if gaps were recorded during the solve, or primal values where there are no gaps."""
    return (run.place / "trace.zarr").is_dir() and quantity(read_trace(run.place)) != ""


def quantity(trace: Mapping[str, np.ndarray]) -> str:
    """The column that is drawn; empty if there is nothing to draw."""
    if np.any(np.nan_to_num(trace["gap"]) > 0.0):
        return "gap"
    return "primal" if trace["gap"].size and np.isnan(trace["gap"]).all() else ""


def paint(figure: Figure, run: StoredRun) -> None:
    trace, attrs = read_trace(run.place), run.attrs
    what = quantity(trace)
    known = np.nan_to_num(trace[what]) > 0.0
    lams = np.unique(trace["lambda"][known])
    norm = LogNorm(lams[0], max(lams[-1], 1.001 * lams[0]))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (over, title) in zip(
        panels, (("passes", "effective passes"), ("seconds", "seconds of solving")), strict=True
    ):
        if lams.size > 1:
            axes.plot(trace[over][known], trace[what][known], color=GREY, lw=0.5, alpha=0.6)
        for lam in lams[::-1]:
            at = known & (trace["lambda"] == lam)
            colour = BLUE if lams.size == 1 else COLOURS(0.9 * norm(lam))
            axes.plot(trace[over][at], trace[what][at], marker="o" if at.sum() <= 60 else "", ms=3, color=colour)
        axes.set(yscale="log", xlabel=title)
        if what == "gap" and not attrs.get("relative"):
            axes.axhline(float(attrs["eps"]), color=GREY, ls="--", lw=1)
    panels[0].set_ylabel(gap_label(attrs) if what == "gap" else "primal objective")
    name = "ε" if capabilities(attrs["rule"]).finds_lambdas else "tolerance"
    words = [f"λ = {lams[0]:.3g}"] if lams.size == 1 else []
    words += [f"{name} {attrs['eps']:g}"] if what == "gap" else []
    panels[0].set_title(", ".join(words))
    if lams.size > 1:
        figure.colorbar(ScalarMappable(norm, COLOURS), ax=panels, label="λ", fraction=0.05)
