"""The figure of a cross-validation: the loss of every fold over lambda, their mean with its standard error, the choices."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gapwise.records import Facts
from gapwise.stages.choice.folds import columns_of
from gapwise.stages.choice.rules import LOSS, picked_in_words
from gapwise.stages.reports.paint import GREEN, GREY, figure_in, lambda_axis
from gapwise.storage.backend import Location

SIZE = (7.0, 3.6)


def draw(chosen: Facts, target: Location) -> None:
    """Draw a result of `stages.choice.folds.cross_validated` into the file `target`."""
    with figure_in(target, SIZE, dpi=150) as figure:
        paint(figure, chosen)


def paint(figure: Figure, chosen: Facts) -> None:
    """Draw it into an empty figure."""
    axes = figure.subplots()
    criterion, mean, values = columns_of(chosen)
    lam, error = (np.array(chosen[name]) for name in ("lambda", "standard_error"))
    is_loss, words = criterion == LOSS, criterion.replace("_", " ")
    marker = "o" if lam.size <= 3 else ""
    for k, losses in enumerate(values):
        axes.plot(lam, losses, color=GREY, lw=0.8, alpha=0.6, marker=marker, label="" if k else "one fold")
    axes.fill_between(lam, mean - error, mean + error, color=GREEN, alpha=0.2, lw=0)
    axes.plot(lam, mean, color=GREEN, marker=marker, label="mean ± one standard error")
    best, simple = chosen["best_lambda"], chosen["one_se_lambda"]
    axes.axvline(best, color=GREY, ls="--", lw=1, zorder=0)
    axes.axvline(simple, color=GREEN, ls=":", lw=1.2, zorder=0, label=f"one standard error: λ = {simple:.3g}")
    value = chosen[f"best_validation_{criterion}"]
    label = picked_in_words(chosen, f"mean {words}")
    axes.plot(best, value, marker="*", ms=15, color=GREEN, mec="white", ls="", label=label)
    axes.set_title(f"λ = {best:.3g} chosen on {chosen['folds']} folds: test loss {chosen['best_test_loss']:.3g}")
    if is_loss:
        axes.set_ylim(0, None)
    axes.set_ylabel("mean task loss" if is_loss else words)
    axes.legend(loc="best")
    lambda_axis(axes, lam)
