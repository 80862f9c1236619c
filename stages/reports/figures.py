"""The figures of one run: its charts, and test pictures, poses or alignments with what is predicted for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gapwise.stages.reports import alignments, pictures, poses
from gapwise.stages.reports.charts import CHARTS
from gapwise.stages.reports.paint import Draw, Size, save
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.backend import Location
from gapwise.storage.features import Features

PICTURES: Mapping[str, Callable[[StoredRun], tuple[Draw, Size] | None]] = {
    "alignments": alignments.figure, "pictures": pictures.figure, "poses": poses.figure,
}  # fmt: skip
"""Figures that are no charts, by the names of their files: how to draw them and their size, or None."""


def draw(run_dir: Location, features: Features, formats: Sequence[str] = ("png",)) -> list[Location]:
    """Draw all figures that apply to the run in `run_dir` with its `features`, in each of `formats`: png, pdf, svg.

    Returns
    -------
    list of Path or UrlPath
        The files in ``run_dir/figures``, each replaced atomically.
    """
    run = StoredRun(run_dir, features)
    drawn = {name: made.file() for name, chart in CHARTS.items() if (made := chart(run)) is not None}
    drawn |= {name: drawing for name, figure in PICTURES.items() if (drawing := figure(run)) is not None}
    files = []
    for name, (how, size) in drawn.items():
        files += save(how, run_dir / "figures" / f"{name}.png", size, formats)
    return files
