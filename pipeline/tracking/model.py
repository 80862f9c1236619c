"""The model of the best lambda under its MLflow run: an MLflow model, registered; of a sweep's runs its folder alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gapwise.storage.backend import Location

if TYPE_CHECKING:  # importing MLflow takes seconds
    from mlflow import MlflowClient


FOLDER = "model"
"""Name of the artifact folder."""


def log_model(client: MlflowClient, run_id: str, run_dir: Location, register: bool) -> None:
    """Log the model of a finished run as the artifact folder `model`, unless the features that it needs are gone.

    Parameters
    ----------
    register : bool
        Whether it is an MLflow model, and the newest version of the registered model of its experiment. That takes a second
        or two, and a sweep would register a version a run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / FOLDER
        if _exported("mlflow" if register else "gapwise", run_dir, made):
            client.log_artifacts(run_id, str(made), FOLDER)
            if register:
                _register(client, run_id)


def _exported(form: str, run_dir: Location, to: Path) -> bool:
    """Write the model of the best lambda in a form of `model_formats`; False if the run no longer has what it takes."""
    from gapwise.pipeline.model_formats import write
    from gapwise.stages.model.from_run import model_of

    try:
        write(form, model_of(run_dir, "best", trust=True), to, run_dir)  # a command may refuse it none the less
    except (ValueError, OSError, KeyError):
        return False
    return True


def _register(client: MlflowClient, run_id: str) -> None:
    """Make the run's model the newest version of the registered model of its experiment, once."""
    from mlflow.exceptions import MlflowException

    if client.search_model_versions(f"run_id = '{run_id}'"):
        return
    name = client.get_experiment(client.get_run(run_id).info.experiment_id).name
    try:
        client.get_registered_model(name)
    except MlflowException:
        client.create_registered_model(name)
    client.create_model_version(name, f"runs:/{run_id}/{FOLDER}", run_id)
