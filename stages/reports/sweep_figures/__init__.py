"""Figures over all runs of a sweep, one file each, found by discovery; `sweep.figure` names the file.

Importing this package loads neither numpy nor matplotlib, so that checking a configuration is fast.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any, Protocol

from stages.reports.formats import saved_as
from storage.backend import Location

if TYPE_CHECKING:
    from stages.reports.curves import Runs

__path__ = extend_path(__path__, __name__)  # a folder on PYTHONPATH with the same tree adds parts


class SweepFigure(Protocol):
    """What a file of this package defines."""

    def make(self, runs: Runs, folder: Location) -> dict[str, Any]:
        """Draw the runs into ``folder/figures`` and return what they cost, see `compare`."""


def names() -> list[str]:
    """The possible values of `sweep.figure`."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def compare(name: str, runs: Runs, folder: Location, formats: Sequence[str] = ("png",)) -> dict[str, Any]:
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
    part: Any = import_module(f"{__name__}.{name}")
    kind: SweepFigure = part
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    with saved_as(formats):
        return kind.make(runs, folder)
