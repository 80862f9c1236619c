"""The two figures of the frontier: accuracy against its price, and the certified gap over the whole axis of lambda."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from stages.reports.frontier import PathRun, Row, lambda_name
from stages.reports.run_figures import BLUE, GREY, ORANGE, certified_gap, gap_of_cells
from stages.reports.sweep_figures import AXES, figure_in, style
from stages.solver.path.cells import Pair, Point, zero
from storage.places import Place


def paint_prices(table: Sequence[Row], folder: Place) -> Place:
    """`frontier.png`: a column a lambda; certified relative gap against exact passes above, against seconds below.

    Lines are medians, bands reach from the least to the most over seeds; an open triangle is where a limit came first.
    """
    made: list[Place] = []
    lams = list(dict.fromkeys(row["lambda"] for row in table))
    names = list(dict.fromkeys(row["variant"] for row in table))
    with figure_in(folder, "frontier", (4.2 * len(lams) + 1.8, 7.6), made) as figure:
        grid = figure.subplots(2, len(lams), squeeze=False, sharex="row", sharey=True)
        for j, lam in enumerate(lams):
            for i, over in enumerate(AXES):
                for number, name in enumerate(names):
                    rows = [row for row in table if (row["variant"], row["lambda"]) == (name, lam)]
                    _price_line(grid[i, j], rows, over, name, style(name, number))
                grid[i, j].set(xscale="log", yscale="log", xlabel="exact passes" if over == "passes" else over)
                grid[i, j].xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                grid[i, j].xaxis.set_major_formatter("{x:g}")
                grid[i, j].xaxis.set_minor_formatter(NullFormatter())
            grid[0, j].set_title(lambda_name(next(row for row in table if row["lambda"] == lam)))
        for axes in grid[:, 0]:
            axes.set_ylabel("certified (P − D) / D")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", handlelength=2.6)
    return made[0]


def _price_line(axes: Axes, rows: Sequence[Row], over: str, name: str, look: Mapping[str, Any]) -> None:
    there = sorted((row for row in rows if np.isfinite(row[over])), key=lambda row: -row["tolerance"])
    at = [row["tolerance"] for row in there]
    axes.plot([row[over] for row in there], at, marker="o", ms=3.5, lw=1.5, label=name.replace("_", " "), **look)
    if any(row["seeds"] > 1 for row in there):
        most = [row[f"{over} most"] if np.isfinite(row[f"{over} most"]) else row[over] for row in there]
        axes.fill_betweenx(at, [row[f"{over} least"] for row in there], most, color=look["color"], alpha=0.12, lw=0)
    missed = [row for row in rows if not np.isfinite(row[over])]
    spent = [row[f"spent_{over}"] for row in missed]
    axes.plot(spent, [row["tolerance"] for row in missed], ls="", marker=">", mfc="none", color=look["color"])


def paint_certified(paths: Sequence[PathRun], folder: Place) -> Place:
    """`certified.png`: the certified gap at every lambda, a panel a path, exact gaps at sampled lambdas as dots."""
    made: list[Place] = []
    first = 1.2 * max(max(float(path.attrs["lam_top"]), float(path.arrays["lambda"][0])) for path in paths)
    last = 0.1 * min(float(path.arrays["lambda"][-1]) for path in paths)
    curves = [whole_axis(path.arrays, path.attrs, first, last) for path in paths]
    with figure_in(folder, "certified", (8.6, 2.1 * len(paths) + 0.7), made) as figure:
        panels = figure.subplots(len(paths), 1, sharex=True, squeeze=False)[:, 0]
        for axes, path, (lam, bound) in zip(panels, paths, curves, strict=True):
            eps, price = float(path.attrs["eps"]), path.price
            axes.plot(lam, bound, color=BLUE, lw=1.2, label="certified")
            axes.plot(
                path.arrays["lambda"], np.zeros(path.arrays["lambda"].size), "|", color=GREY, ms=7, label="solved"
            )
            samples = path.verified["samples"]
            at, gaps = [s["lambda"] for s in samples], [s["gap"] for s in samples]
            axes.plot(at, gaps, "o", ms=4, color=ORANGE, label="exact, at sampled λ's")
            axes.axhline(eps, color=GREY, ls="--", lw=1)
            count = path.arrays["lambda"].size
            axes.set_title(
                f"{price.variant.replace('_', ' ')}: {count} λ{'s' * (count > 1)} solved, {price.passes:.0f} exact passes"
            )
            axes.set(ylim=(-0.04 * eps, 1.12 * eps), ylabel="gap / primal" if _relative(path.attrs) else "duality gap")
        panels[-1].set(xscale="log", xlabel="λ")
        panels[-1].set_xlim(first, last)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return made[0]


def _relative(attrs: Mapping[str, Any]) -> bool:
    return bool(attrs["relative"]) and attrs["rule"] == "two_sided"


def whole_axis(
    arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any], first: float, last: float
) -> tuple[np.ndarray, np.ndarray]:
    """(lambda, bound) from `first`, above the top, down to `last`, or to where the path ends, in path order."""
    end = last / float(arrays["lambda"][-1])
    cells = attrs["rule"] == "two_sided"
    below = gap_of_cells(arrays, attrs, end) if cells else certified_gap(arrays, str(attrs["rule"]), end)
    above = above_first(arrays, attrs, first)
    return np.append(above[0], below[0]), np.append(above[1], below[1])


def above_first(
    arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any], first: float
) -> tuple[np.ndarray, np.ndarray]:
    """The bound from `first` down to the first breakpoint: of w = 0, of the first w scaled, or of cells.

    paper has no top: above its first lambda w^1 is scaled for ever, and the gap is convex in the scale.
    """
    lam, gap, hinge, ell, N = (float(arrays[name][0]) for name in ("lambda", "gap", "hinge", "loss_dual", "norm2"))
    hinge_zero, psi_norm2, rule = float(attrs["hinge_at_zero"]), float(attrs["psi_norm2"]), attrs["rule"]
    top = max(float(attrs["lam_top"]), lam)
    x = np.geomspace(max(first, lam), lam, 200)
    if rule == "paper":
        s = lam / x
        return x, s * gap + (1.0 - s) * (hinge_zero - ell)
    zero_gap = psi_norm2 / (2.0 * x) / (hinge_zero if _relative(attrs) else 1.0)
    if rule == "one_sided":
        t = np.clip((hinge_zero - hinge) / (x * N), 0.0, 1.0) if N > 0.0 else np.ones_like(x)
        scaled = 0.5 * x * t**2 * N + t * hinge + (1.0 - t) * hinge_zero - ell + lam**2 * N / (2.0 * x)
        return x, np.where(x >= top, zero_gap, scaled)
    point, bound = Point(lam, gap, hinge, ell, N, lam**2 * N), zero_gap.copy()
    for c in np.flatnonzero(arrays["cell_interval"] == 0):
        pair = Pair(zero(hinge_zero, psi_norm2), point, 0.0, float(arrays["cell_dual_inner"][c]), hinge_zero)
        (t_a, t_b), (tau_a, tau_b) = arrays["cell_primal"][c], arrays["cell_dual"][c]
        for k in np.flatnonzero((x < top) & (x >= arrays["cell_low"][c]) & (x <= arrays["cell_high"][c])):
            primal = pair.primal(x[k], (t_a, t_b))
            bound[k] = (primal - pair.dual(x[k], (tau_a, tau_b))) / (primal if _relative(attrs) else 1.0)
    return x, bound
