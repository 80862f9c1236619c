"""Forms in which a model leaves a run: ``gapwise export RUN --format NAME``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapwise.stages.model.model import Model
    from gapwise.storage.backend import Location

ENDINGS = {"gapwise": "model", "mlflow": "mlflow"}
"""What ends the name of a target, by form: a folder with model.json and .npy files, which `predict` and `load_model` read;
a folder that ``mlflow.pyfunc.load_model`` loads."""


def write(form: str, model: Model, target: Location, run: Location) -> None:
    """Write a model of `run` to `target`, whole or not at all; what is there and no model of this form is refused."""
    if form == "mlflow":
        from gapwise.pipeline.model_formats.mlflow import write_mlflow

        write_mlflow(model, target, run)
    else:
        model.save(target)
