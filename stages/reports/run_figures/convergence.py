"""The convergence: the gap over effective passes and over seconds since the start of the run, one colour per lambda."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from stages.reports.bounds import gap_label
from stages.reports.paint import BLUE, GREY
from stages.reports.stored import StoredRun
from storage.results import read_trace

SIZE = (7.0, 3.4)
COLOURS = colormaps["plasma"].resampled(256)


def applies(run: StoredRun) -> bool:
    """True if gaps were recorded during the solve."""
    return (run.place / "trace.zarr").is_dir() and bool(np.any(np.nan_to_num(read_trace(run.place)["gap"]) > 0.0))


def paint(figure: Figure, run: StoredRun) -> None:
    trace, attrs = read_trace(run.place), run.attrs
    known = np.nan_to_num(trace["gap"]) > 0.0
    lams = np.unique(trace["lambda"][known])
    norm = LogNorm(lams[0], max(lams[-1], 1.001 * lams[0]))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (over, title) in zip(
        panels, (("passes", "effective passes"), ("seconds", "seconds of solving")), strict=True
    ):
        if lams.size > 1:
            axes.plot(trace[over][known], trace["gap"][known], color=GREY, lw=0.5, alpha=0.6)
        for lam in lams[::-1]:
            at = known & (trace["lambda"] == lam)
            colour = BLUE if lams.size == 1 else COLOURS(0.9 * norm(lam))
            axes.plot(trace[over][at], trace["gap"][at], marker="o" if at.sum() <= 60 else "", ms=3, color=colour)
        axes.set(yscale="log", xlabel=title)
        if not attrs.get("relative"):
            axes.axhline(float(attrs["eps"]), color=GREY, ls="--", lw=1)
    panels[0].set_ylabel(gap_label(attrs))
    name = "ε" if attrs["kind"] in ("regpath", "heuristic") else "tolerance"
    panels[0].set_title(f"λ = {lams[0]:.3g}, {name} {attrs['eps']:g}" if lams.size == 1 else f"{name} {attrs['eps']:g}")
    if lams.size > 1:
        figure.colorbar(ScalarMappable(norm, COLOURS), ax=panels, label="λ", fraction=0.05)
