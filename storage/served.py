"""Which model of a run leaves home: that of the refit on all training blocks, if there is one, or the path's own."""

from __future__ import annotations

from gapwise.records import Facts
from gapwise.storage.backend import Location

REFIT = "refit"
"""The folder of the refitted model in that of its path."""


def measures_of(result: Facts) -> Facts:
    """Losses and measures of that model, by the content of a run's result.json or what it will be; those of evaluate name
    the model before the refit."""
    measures: Facts = result.get("refit") or result["evaluate"]
    return measures


def served_at(run_dir: Location) -> Location:
    """The folder of the model that leaves home: that of the refit of a run, if it was measured, or the run's own.

    It has path.zarr, metrics.json, predictions.npz and perhaps predictions/ either way.
    """
    refitted = run_dir / REFIT
    return refitted if (refitted / "metrics.json").is_file() else run_dir
