"""The losses: mean task loss on training and test blocks, with the lambda of least test loss marked."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from stages.reports.paint import BLUE, GREY, ORANGE, lambda_axis
from stages.reports.stored import StoredRun
from storage.layout import EVALUATED

SIZE = (7.0, 3.6)


def applies(run: StoredRun) -> bool:
    """False before evaluation."""
    return "test_loss" in run.arrays


def paint(figure: Figure, run: StoredRun) -> None:
    arrays = run.arrays
    prefix = EVALUATED if f"{EVALUATED}lambda" in arrays else ""
    lam, axes = arrays[f"{prefix}lambda"], figure.subplots()
    marker = "o" if lam.size <= 60 else ""
    for name, colour in (("train", BLUE), ("test", ORANGE)):
        axes.plot(lam, arrays[f"{prefix}{name}_loss"], marker=marker, color=colour, label=name)
    best = int(np.argmin(arrays[f"{prefix}test_loss"]))
    loss = float(arrays[f"{prefix}test_loss"][best])
    axes.axvline(lam[best], color=GREY, ls="--", lw=1, zorder=0)
    axes.plot(lam[best], loss, marker="*", ms=15, color=ORANGE, mec="white", ls="", label="least test loss")
    axes.set_title(f"least test loss {loss:.3g} at λ = {lam[best]:.3g}")
    axes.set_ylim(0, None)
    axes.set_ylabel("mean task loss")
    axes.legend(loc="best")
    lambda_axis(axes, lam)
