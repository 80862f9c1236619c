"""Figures over all runs of a sweep; `sweep.figure` names one of `FIGURES`.

Importing this file loads neither numpy nor matplotlib, so that checking a configuration is fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gapwise.records import Record
from gapwise.storage.backend import Location

if TYPE_CHECKING:
    from gapwise.stages.reports.curves import Runs
    from gapwise.stages.reports.tables import Compared

FIGURES = ("frontier", "methods", "multiplane", "paths", "regimes", "solvers", "staleness", "work")
"""Functions of `sweep_charts`."""


def compare_parts(name: str, parts: Mapping[str, Runs], folder: Location, formats: Sequence[str] = ("png",)) -> Record:
    """The same for a sweep over several data sets: the runs of each are drawn into a folder of their own.

    The folder is ``folder/<data set>``. Figures are then named ``<data set>/<file>``, see `figure_file`, and rows of the
    table have a column `dataset`. A sweep over one data set names it "" and has everything in `folder`.
    """
    if [*parts] in ([], [""]):
        return {**compare(name, parts[""], folder, formats)} if parts else {}
    result: Record = {"figures": [], "table": [], "text": []}
    for dataset, runs in parts.items():
        part: Record = {**compare(name, runs, folder / dataset, formats)}
        result["figures"] += [f"{dataset}/{file}" for file in part.pop("figures", ())]
        result["table"] += [{"dataset": dataset, **row} for row in part.pop("table", ())]
        result["text"] += [f"{dataset}:", *part.pop("text", ())]
        for key, value in part.items():
            result.setdefault(key, {})[dataset] = value
    return result


def figure_file(folder: Location, name: str) -> Location:
    """Where a figure lies that `compare` or `compare_parts` returned."""
    dataset, _, file = name.rpartition("/")
    return (folder / dataset if dataset else folder) / "figures" / file


def compare(name: str, runs: Runs, folder: Location, formats: Sequence[str] = ("png",)) -> Compared:
    """Draw the figure `name` of the runs into ``folder/figures``.

    Parameters
    ----------
    runs : sequence of (variant, lambda as the sweep names it, seed, run directory)
        Those that are complete, in the order of the sweep.
    folder : Path or UrlPath
        The sweep's own directory.
    formats : sequence of str
        Of the files: png, pdf, svg.

    Returns
    -------
    dict
        figures: names of the files, as PNG; table: JSON-able rows, one per variant and lambda; text: the table as lines.
        Other entries go into summary.json unchanged.
    """
    from gapwise.stages.reports import sweep_charts

    (folder / "figures").mkdir(parents=True, exist_ok=True)
    compared: Compared = getattr(sweep_charts, name)(runs, sweep_charts.Out(folder, tuple(formats)))
    return compared
