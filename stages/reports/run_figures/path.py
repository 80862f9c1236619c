"""The path: above, the gap at every breakpoint and the bound between them; below, the number of breakpoints so far."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gapwise.stages.reports.bounds import between, gap_label
from gapwise.stages.reports.paint import BLUE, GREEN, GREY, ORANGE, lambda_axis
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.solver.path.rules import capabilities

SIZE = (7.0, 4.6)


def applies(run: StoredRun) -> bool:
    """False for a single lambda, which `convergence` shows."""
    return run.arrays["lambda"].size > 1 or capabilities(run.attrs["rule"]).certifies_path


def paint(figure: Figure, run: StoredRun) -> None:
    arrays, attrs = run.arrays, run.attrs
    lam, gap, eps = arrays["lambda"], arrays["gap"], float(attrs["eps"])
    relative = bool(attrs.get("relative")) and capabilities(attrs["rule"]).certifies_path
    if relative:
        gap = np.divide(gap, arrays["primal"], out=np.array(gap), where=arrays["primal"] > 0.0)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    is_path = capabilities(attrs["rule"]).finds_lambdas
    if run.verdict.of_path:
        upper.plot(*between(arrays, attrs), color=BLUE, lw=1, label="certified between breakpoints")
    many = lam.size > 200
    upper.plot(lam, gap, ls="", marker="." if many else "o", ms=2 if many else 4, color=ORANGE, label="at a breakpoint")
    upper.axhline(eps, color=GREY, ls="--", lw=1)
    upper.annotate(f"{'ε' if is_path else 'tolerance'} = {eps:g}", (1, eps), xycoords=("axes fraction", "data"),
                   xytext=(-2, 3), textcoords="offset points", ha="right", color=GREY)  # fmt: skip
    if not np.isfinite(gap).any():
        upper.text(0.5, 0.5, "the method certifies no gap", transform=upper.transAxes, ha="center", color=GREY)
    top = max(eps, float(np.max(gap)))
    if float(np.min(gap)) > 0.02 * top or np.min(gap) <= 0:
        upper.set_ylim(min(0.0, float(np.min(gap))), 1.15 * top)
    else:
        upper.set_yscale("log")
    upper.set_ylabel(gap_label(attrs, relative=relative))
    figure.legend(loc="outside upper left", ncols=2)
    lower.step(lam, np.arange(1, lam.size + 1), where="post", color=GREEN)
    lower.plot(lam[-1:], [lam.size], "o", color=GREEN)
    lower.annotate(f"{lam.size}", (lam[-1], lam.size), xytext=(0, 5), textcoords="offset points", ha="center",
                   color=GREEN)  # fmt: skip
    lower.set_ylim(0, 1.3 * lam.size)
    lower.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    lower.set_ylabel("breakpoints")
    lambda_axis(lower, lam)
