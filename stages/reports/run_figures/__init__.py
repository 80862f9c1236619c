"""Pictures of one run that are no charts, one file each, found by discovery; charts and pictures are its figures.

A file of this package draws `figures/<its name>.png` by matplotlib.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from matplotlib.figure import Figure

from gapwise.parts import with_parts
from gapwise.stages.reports.chart_files import save_charts
from gapwise.stages.reports.charts import charts_of
from gapwise.stages.reports.formats import saved_as
from gapwise.stages.reports.paint import figure_in
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.backend import Location
from gapwise.storage.features import Features

__path__ = with_parts(__path__, "run_figures")


class RunFigure(Protocol):
    """What a file of this package defines."""

    SIZE: tuple[float, float]
    """Width and height in inches."""

    def applies(self, run: StoredRun) -> bool:
        """Whether the run has what the figure shows."""

    def paint(self, figure: Figure, run: StoredRun) -> None:
        """Draw `run` into the empty `figure`."""


def draw(run_dir: Location, features: Features, formats: Sequence[str] = ("png",)) -> list[Location]:
    """Draw all figures that apply to the run in `run_dir` with its `features`, in each of `formats`: png, pdf, svg.

    Returns
    -------
    list of Path or UrlPath
        The files in ``run_dir/figures``, each replaced atomically.
    """
    run = StoredRun(run_dir, features)
    made = save_charts(charts_of(run), run_dir / "figures", formats)
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        kind = cast(RunFigure, import_module(f"{__name__}.{name}"))
        if kind.applies(run):
            made += [run_dir / "figures" / f"{name}.{form}" for form in formats]
            with saved_as(formats), figure_in(run_dir / "figures" / f"{name}.png", kind.SIZE, dpi=150) as figure:
                kind.paint(figure, run)
    return made
