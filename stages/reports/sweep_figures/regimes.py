"""Cache regimes (O16 Fig. 2). `regimes.png`: the gap over F and nu at equal passes and at equal seconds; one row per lambda.

Variants named `F=<number> nu=<number>` fill the grid; any other variant is a reference, given in the title.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from gapwise.stages.reports.costs import summary
from gapwise.stages.reports.curves import AXES, Runs, Trace, by_lambda, lambda_title, value_at
from gapwise.stages.reports.paint import figure_in
from gapwise.stages.reports.suboptimality import read_suboptimality
from gapwise.stages.reports.tables import Compared
from gapwise.storage.backend import Location


def make(runs: Runs, folder: Location) -> Compared:
    curves = read_suboptimality(runs)
    rows = by_lambda(curves)
    with figure_in(folder / "figures" / "regimes.png", (10.5, 4.2 * len(rows))) as figure:
        grid = figure.subplots(len(rows), 2, squeeze=False)
        for row, (lam, variants) in zip(grid, rows.items(), strict=True):
            for axes, over in zip(row, AXES, strict=True):
                budget = min(float(trace[over][-1]) for traces in variants.values() for trace in traces)
                _regime(axes, variants, over, budget)
                axes.set_title(f"{lambda_title(lam, variants)}: {axes.get_title(loc='left')}")
    return {"figures": ["regimes.png"], **summary(curves)}


def _regime(axes: Axes, variants: Mapping[str, Sequence[Trace]], over: str, budget: float) -> None:
    gap_of = {}
    others = []
    for variant, traces in variants.items():
        match = re.fullmatch(r"F=(\S+) nu=(\S+)", variant)
        if match:
            gap_of[float(match[1]), float(match[2])] = value_at(traces, over, budget)
        else:
            others.append(f"{variant} {value_at(traces, over, budget):.2g}")
    many_F, many_nu = sorted({F for F, _ in gap_of}), sorted({nu for _, nu in gap_of})
    values = np.array([[gap_of.get((F, nu), np.nan) for F in many_F] for nu in many_nu])
    image = np.log10(values)
    axes.imshow(image, origin="lower", cmap="viridis_r", aspect="auto")
    middle = 0.5 * (np.nanmin(image) + np.nanmax(image))
    for i, j in np.ndindex(*values.shape):
        axes.text(
            j, i, f"{values[i, j]:.2g}", ha="center", va="center", color="black" if image[i, j] < middle else "white"
        )
    axes.set_xticks(range(len(many_F)), [f"{F:g}" for F in many_F])
    axes.set_yticks(range(len(many_nu)), [f"{nu:g}" for nu in many_nu])
    axes.set_xlabel("F")
    axes.set_ylabel("ν")
    axes.grid(False)
    axes.set_title(
        f"gap after {budget:.3g} {AXES[over]} ({', '.join(others)})" if others else f"gap after {budget:.3g} {over}"
    )
