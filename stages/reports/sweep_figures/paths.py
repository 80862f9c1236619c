"""Paths and grids compared (O16 Fig. 4, 7, 8). `paths.png`: passes, seconds and lambdas solved so far, and the test loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapwise.stages.reports.costs import path_costs, path_lines
from gapwise.stages.reports.curves import Runs
from gapwise.stages.reports.paint import SPARE, Style, figure_in, legend_beside
from gapwise.stages.reports.stored import read_numbers
from gapwise.stages.reports.tables import Compared
from gapwise.storage.backend import Location

PANELS = {
    "effective_passes": "effective passes so far",
    "seconds": "seconds of solving so far",
    "breakpoints": "λ's solved so far",
    "test_loss": "test loss",
}
PLAIN = "_bcfw"
"""How variants end whose steps are those of BCFW without pairwise moves."""
DASHES = ("-", "--", ":", "-.")


def make(runs: Runs, folder: Location) -> Compared:
    paths = {name: read_numbers(run_dir)[0] for name, _, _, run_dir in runs}
    styles = line_styles([*paths])
    with figure_in(folder / "figures" / "paths.png", (10.5, 7.4)) as figure:
        grid = figure.subplots(2, 2, sharex=True).ravel()
        for axes, (quantity, label) in zip(grid, PANELS.items(), strict=True):
            for name, arrays in paths.items():
                values = _so_far(arrays, quantity)
                if values is not None:
                    axes.plot(arrays["lambda"], values, label=name.replace("_", " "), lw=1.4, **styles[name])
            axes.set(xscale="log", yscale="linear" if quantity == "test_loss" else "log", ylabel=label)
        grid[0].invert_xaxis()
        for axes in grid[2:]:
            axes.set_xlabel("λ")
        legend_beside(figure, grid[0])
    table = path_costs({name: run_dir for name, _, _, run_dir in runs}.items())
    return {"figures": ["paths.png"], "table": table, "text": path_lines(table)}


def line_styles(names: Sequence[str]) -> dict[str, Style]:
    """A colour for each rule or κ, a dash for each kind of line (`_parts`); no two lines look alike."""
    parts = {name: _parts(name) for name in names}
    kinds, hues = ([*dict.fromkeys(part[k] for part in parts.values())] for k in range(2))
    return {
        name: {"color": SPARE[hues.index(hue) % len(SPARE)], "ls": DASHES[kinds.index(kind) % len(DASHES)]}
        for name, (kind, hue) in parts.items()
    }


def _parts(name: str) -> tuple[str, str]:
    """The kind of a line, and what tells it from others of its kind: `solver kappa=0.5`, `grid...`, `..._bcfw`."""
    before, _, setting = name.rpartition(" ")
    if before:
        return before, setting
    return ("grid" if name.startswith("grid") else "") + (PLAIN if name.endswith(PLAIN) else ""), name.removesuffix(
        PLAIN
    )


def _so_far(arrays: dict[str, np.ndarray], quantity: str) -> np.ndarray | None:
    if quantity == "breakpoints":
        return np.arange(1, arrays["lambda"].size + 1)
    if quantity not in arrays:
        return None
    return arrays[quantity] if quantity == "test_loss" else np.cumsum(arrays[quantity])
