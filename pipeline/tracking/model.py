"""The model of the best lambda under its MLflow run: an MLflow model, registered; of a sweep's runs its folder alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.certify.verdict import verdict_of
from gapwise.storage.backend import Location
from gapwise.storage.format import model_folder
from gapwise.storage.mixture import model_at

if TYPE_CHECKING:  # importing MLflow takes seconds
    from mlflow import MlflowClient


FOLDER = "model"
"""Name of the artifact folder."""
DESCRIPTION = """\
# Model of λ = {lam:.6g}

The model that the {chosen} of the run `{name}` chooses. {how}

- problem: {problem}, {blocks}
- test loss {test_loss:.6g}, train loss {train_loss:.6g}
- {gap}
"""
WHOLE = "This folder needs nothing else: `gapwise predict` and `gapwise.load_model` take it."
LOADABLE = "`mlflow.pyfunc.load_model` loads it; `artifacts/model` is the folder that `gapwise predict` takes."
BARE = "`weights.npz` holds w as `weights` and `lambda`; the features that say what the weights belong to are gone."


def log_model(client: MlflowClient, run_id: str, run_dir: Location, result: Facts, register: bool) -> None:
    """Log the model of a finished run as the artifact folder `model`.

    Parameters
    ----------
    result : mapping
        The content of result.json.
    register : bool
        Whether it is an MLflow model, and the newest version of the registered model of its experiment. That takes a second
        or two, and a sweep would register a version a run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / FOLDER
        loadable = register and _exported("mlflow", run_dir, made)
        if loadable:
            how = LOADABLE
        else:
            how = WHOLE if _exported("gapwise", run_dir, made) else _weights_alone(run_dir, made, result)
        (made / "README.md").write_text(description(run_dir.name, result, how), encoding="utf-8")
        client.log_artifacts(run_id, str(made), FOLDER)
    if loadable:
        _register(client, run_id)


def _exported(form_name: str, run_dir: Location, to: Path) -> bool:
    """Write the model of the best lambda in a form of `model_formats`; False if the run no longer has what it takes."""
    from gapwise.pipeline.model_formats import form
    from gapwise.stages.model.from_run import model_of

    try:
        form(form_name).write(
            model_of(run_dir, "best", trust=True), to, run_dir
        )  # a command may refuse it none the less
    except (ValueError, OSError, KeyError):
        return False
    return True


def _weights_alone(run_dir: Location, to: Path, result: Facts) -> str:
    """Write weights.npz of the best lambda; returns what to say of it."""
    lam = float(result["evaluate"]["best_lambda"])
    weights = model_at(model_folder(run_dir) / "path.zarr", lam, as_solved=True).weights
    to.mkdir(exist_ok=True)
    arrays: Record = {"weights": weights, "lambda": np.array(lam)}
    np.savez(to / "weights.npz", **arrays)
    return BARE


def description(name: str, result: Facts, how: str) -> str:
    """README.md of a run's model; `how` says what reads it."""
    best, problem, refit = result["evaluate"], result["problem"], result.get("refit")
    verdict = verdict_of((refit or result)["verdict"])
    if verdict.largest_gap is not None:
        gap = f"duality gap at most {verdict.largest_gap:.3g} ({verdict.sense})"
    else:
        gap = "no duality gap is known: the method has no dual point"
    return DESCRIPTION.format(
        lam=refit["lambda"] if refit else best["best_lambda"], name=name, how=how, problem=problem["name"],
        blocks=f"{problem['n']:,} training blocks" + (" and the validation blocks" if refit else ""),
        test_loss=(refit or best)["test_loss"], train_loss=best["train_loss"], gap=gap,
        chosen=f"{'validation' if 'validation_loss' in best else 'test'} {best.get('criterion', 'loss').replace('_', ' ')}",
    )  # fmt: skip


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
