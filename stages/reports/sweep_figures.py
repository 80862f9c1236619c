"""Figures of sweeps: methods side by side (O16 Fig. 3, 5), staleness (Fig. 1), cache regimes (Fig. 2), work of a grid.

Lines are medians over seeds, bands reach from the least to the most. Colour and dash of a method follow its name: the
colour says step and cache, the dash says how blocks are sampled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from stages.reports.comparison import Curves, band, value_at
from stages.reports.run_figures import LOOK
from storage.files import aside, publish
from storage.places import Place

COLOURS = {
    "bcfw": "#2b6cb0", "bcfw cache": "#4fd1c5", "bcpfw": "#c53030", "bcpfw cache": "#f6ad55",
    "bcafw": "#805ad5", "bcbfw": "#2f855a", "accelerated": "#000000", "multiplane": "#718096",
}  # fmt: skip
SPARE = ("#2b6cb0", "#dd6b20", "#2f855a", "#c53030", "#805ad5", "#718096", "#00a3c4", "#b7791f")
AXES = {"passes": "effective passes", "seconds": "seconds"}


@contextmanager
def figure_in(folder: Place, name: str, size: tuple[float, float], made: list[Place]) -> Iterator[Figure]:
    """A figure that is saved when the block ends well."""
    with rc_context(LOOK):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        target = folder / "figures" / f"{name}.png"
        figure.savefig(aside(target), dpi=130, format="png", metadata={"Software": None})
        publish(target)
        made.append(target)


def style(variant: str, number: int) -> dict[str, Any]:
    """Colour and dash of a method by its name (`bcpfw_gap_cache`), or by its place among the others."""
    words = variant.split("_")
    base = f"{words[0]} cache" if "cache" in words else words[0]
    colour = COLOURS.get(base, SPARE[number % len(SPARE)])
    solid = "gap" in words or words[0] in ("accelerated", "multiplane")
    dash = "-" if solid else (":" if "permutation" in words else "--")
    return {"color": colour, "ls": dash if words[0] in COLOURS else "-"}


def _grouped(curves: Curves) -> dict[str, dict[str, Any]]:
    """lambda to variant to traces."""
    out: dict[str, dict[str, Any]] = {}
    for (variant, lam), traces in curves.items():
        out.setdefault(lam, {})[variant] = traces
    return out


def _title(lam: str, traces: Sequence[Mapping[str, np.ndarray]]) -> str:
    value = f"{float(traces[0]['lambda'][0]):.3g}"
    return f"λ = {lam} = {value}" if "/" in lam else f"λ = {value}"


def _lines(
    axes: Axes, variants: Mapping[str, Any], over: str, what: str, look: Callable[[str, int], dict[str, Any]]
) -> None:
    for number, (variant, traces) in enumerate(variants.items()):
        x, middle, least, most = band(traces, over, what)
        axes.plot(x, middle, label=variant.replace("_", " "), lw=1.5, **look(variant, number))
        if len(traces) > 1:
            axes.fill_between(x, least, most, color=look(variant, number)["color"], alpha=0.12, lw=0)
    axes.set_yscale("log")
    axes.set_xlabel(AXES[over])
    if over == "seconds":
        axes.set_xscale("log")


def methods(curves: Curves, folder: Place) -> list[Place]:
    """`gaps.png`: a column a lambda; above over effective passes, below over seconds."""
    made: list[Place] = []
    by_lambda = _grouped(curves)
    with figure_in(folder, "gaps", (4.4 * len(by_lambda) + 1.8, 7.6), made) as figure:
        grid = figure.subplots(2, len(by_lambda), squeeze=False)
        for j, (lam, variants) in enumerate(by_lambda.items()):
            for i, over in enumerate(AXES):
                _lines(grid[i, j], variants, over, "gap", style)
            grid[0, j].set_title(_title(lam, next(iter(variants.values()))))
        for row in grid:
            row[0].set_ylabel("duality gap")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", handlelength=2.6)
    return made


def staleness(curves: Curves, folder: Place) -> list[Place]:
    """`staleness.png`: a row a lambda; the gap over passes, and the ratio of the stale gap sum to the true gap."""
    made: list[Place] = []
    by_lambda = _grouped(curves)

    def look(variant: str, number: int) -> dict[str, Any]:
        if variant.startswith("uniform"):
            return {"color": "black", "ls": "--"}
        return {"color": colormaps["viridis"](min(0.18 * number, 0.95)), "ls": "-"}

    with figure_in(folder, "staleness", (10.5, 3.9 * len(by_lambda)), made) as figure:
        grid = figure.subplots(len(by_lambda), 2, squeeze=False)
        for row, (lam, variants) in zip(grid, by_lambda.items(), strict=True):
            _lines(row[0], variants, "passes", "gap", look)
            _lines(row[1], variants, "passes", "stale_ratio", look)
            row[1].axhline(1.0, color="black", lw=0.8)
            row[0].set_ylabel("duality gap")
            row[1].set_ylabel("ratio")
            row[0].set_title(_title(lam, next(iter(variants.values()))))
            row[1].set_yscale("linear")
            row[1].set_title("sum of last known block gaps / true gap, at each snapshot")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper")
    return made


def regimes(curves: Curves, folder: Place) -> list[Place]:
    """`regimes.png`: gap over F and nu at equal passes and at equal seconds; a row a lambda.

    Variants named `F=<number> nu=<number>` fill the grid; any other is a reference, given in the title.
    """
    made: list[Place] = []
    by_lambda = _grouped(curves)
    with figure_in(folder, "regimes", (10.5, 4.2 * len(by_lambda)), made) as figure:
        grid = figure.subplots(len(by_lambda), 2, squeeze=False)
        for row, (lam, variants) in zip(grid, by_lambda.items(), strict=True):
            for axes, over in zip(row, AXES, strict=True):
                at = min(float(trace[over][-1]) for traces in variants.values() for trace in traces)
                _regime(axes, variants, over, at)
                axes.set_title(f"{_title(lam, next(iter(variants.values())))}: {axes.get_title(loc='left')}")
    return made


def _regime(axes: Axes, variants: Mapping[str, Any], over: str, at: float) -> None:
    found = {}
    others = []
    for variant, traces in variants.items():
        match = re.fullmatch(r"F=(\S+) nu=(\S+)", variant)
        if match:
            found[float(match[1]), float(match[2])] = value_at(traces, over, at)
        else:
            others.append(f"{variant} {value_at(traces, over, at):.2g}")
    many_F, many_nu = sorted({F for F, _ in found}), sorted({nu for _, nu in found})
    values = np.array([[found.get((F, nu), np.nan) for F in many_F] for nu in many_nu])
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
    axes.set_title(f"gap after {at:.3g} {AXES[over]} ({', '.join(others)})" if others else f"gap after {at:.3g} {over}")


def work(paths: Sequence[tuple[str, Mapping[str, np.ndarray]]], folder: Place) -> Place:
    """`work.png`: effective passes and seconds spent down to each lambda, a line a run."""
    made: list[Place] = []
    names = list(dict.fromkeys(name for name, _ in paths))
    with figure_in(folder, "work", (10.0, 4.0), made) as figure:
        for axes, (column, title) in zip(
            figure.subplots(1, 2),
            (("effective_passes", "effective passes"), ("seconds", "seconds of solving")),
            strict=True,
        ):
            for name, arrays in paths:
                total = np.cumsum(arrays[column])
                axes.plot(arrays["lambda"], total, "o-", color=SPARE[names.index(name) % len(SPARE)], label=name)
            axes.set(xscale="log", yscale="log", xlabel="λ", title=f"cumulative {title}")
            axes.invert_xaxis()
        handles, labels = axes.get_legend_handles_labels()
        chosen = dict(zip(labels, handles, strict=True))
        axes.legend(chosen.values(), chosen.keys())
    return made[0]
