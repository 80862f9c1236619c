"""The version of everything on disk and of every key, and where a run has the model that leaves home.

Results of another version are refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from gapwise.records import Facts
from gapwise.storage.backend import Location

FORMAT_VERSION = 4
"""Raise it when the meaning or the form of what a stage writes changes."""

MEASURES = ("train_*", "test_*", "validation_*", "evaluated_*")
"""Names of all arrays that evaluate adds to a path.zarr: `layout.LOSSES` and a structure's own."""


def check_format(attrs: Mapping[str, object], where: object) -> None:
    """ValueError unless `attrs`, read from `where`, say the present version."""
    version = attrs.get("format_version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{where}: format version {version}, expected {FORMAT_VERSION}; read it with the version of Gapwise that wrote "
            "it, or delete it and repeat the command"
        )


REFIT = "refit"
"""The folder of the model that was trained again on all training blocks, in that of its path."""


def model_folder(run_dir: Location) -> Location:
    """The folder of the model that leaves home: that of the refit of a run, if it was measured, or the run's own.

    It has path.zarr, metrics.json, predictions.npz and perhaps predictions/ either way.
    """
    refitted = run_dir / REFIT
    return refitted if (refitted / "metrics.json").is_file() else run_dir


def measures_of(result: Facts) -> Facts:
    """Losses and measures of that model, by the content of a run's result.json or what it will be; those of evaluate name
    the model before the refit."""
    measures: Facts = result.get("refit") or result["evaluate"]
    return measures
