"""The losses: mean task loss on training, test and validation blocks, with the lambda that was chosen marked.

Without validation blocks that is the lambda of least test loss; with them, there is also a band of one standard error around
their loss, and the choice of the one-standard-error rule.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gapwise.stages.choice import choose
from gapwise.stages.reports.paint import BLUE, GREEN, GREY, ORANGE, lambda_axis
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.layout import EVALUATED

SIZE = (7.0, 3.6)


def applies(run: StoredRun) -> bool:
    """False before evaluation, and for a single lambda, whose losses would be two dots."""
    return "test_loss" in run.arrays and run.arrays["lambda"].size > 1


def paint(figure: Figure, run: StoredRun) -> None:
    arrays = run.arrays
    prefix = EVALUATED if f"{EVALUATED}lambda" in arrays else ""
    lam, axes = arrays[f"{prefix}lambda"], figure.subplots()
    marker = "o" if lam.size <= 60 else ""
    for name, colour in (("train", BLUE), ("validation", GREEN), ("test", ORANGE)):
        if f"{prefix}{name}_loss" in arrays:
            axes.plot(lam, arrays[f"{prefix}{name}_loss"], marker=marker, color=colour, label=name)
    test = arrays[f"{prefix}test_loss"]
    if f"{prefix}validation_loss" in arrays:
        loss, error = arrays[f"{prefix}validation_loss"], arrays[f"{prefix}validation_standard_error"]
        axes.fill_between(lam, loss - error, loss + error, color=GREEN, alpha=0.15, lw=0)
        best, simple = choose(lam, loss, error)
        axes.axvline(
            lam[simple], color=GREEN, ls=":", lw=1.2, zorder=0, label=f"one standard error: λ = {lam[simple]:.3g}"
        )
        axes.plot(
            lam[best], loss[best], marker="*", ms=15, color=GREEN, mec="white", ls="", label="least validation loss"
        )
        axes.set_title(f"λ = {lam[best]:.3g} chosen on validation blocks: test loss {test[best]:.3g}")
    else:
        best = int(np.argmin(test))
        axes.plot(lam[best], test[best], marker="*", ms=15, color=ORANGE, mec="white", ls="", label="least test loss")
        axes.set_title(f"least test loss {test[best]:.3g} at λ = {lam[best]:.3g}")
    axes.axvline(lam[best], color=GREY, ls="--", lw=1, zorder=0)
    axes.set_ylim(0, None)
    axes.set_ylabel("mean task loss")
    figure.legend(loc="outside lower center", ncols=3)
    lambda_axis(axes, lam)
