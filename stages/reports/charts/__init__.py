"""Charts of one run, one file each, found by discovery: `figures/<its name>.png`, and what sections of the report show."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Protocol, cast

from gapwise.parts import with_parts
from gapwise.stages.reports.stored import StoredRun
from gapwise.stages.reports.vega import Chart

__path__ = with_parts(__path__, "charts")


class RunChart(Protocol):
    """What a file of this package defines."""

    def applies(self, run: StoredRun) -> bool:
        """Whether the run has what the chart shows."""

    def chart(self, run: StoredRun) -> Chart:
        """The chart of `run`."""


def charts_of(run: StoredRun) -> dict[str, Chart]:
    """All charts that apply to a run, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    parts = {name: cast(RunChart, import_module(f"{__name__}.{name}")) for name in names}
    return {name: part.chart(run) for name, part in parts.items() if part.applies(run)}
