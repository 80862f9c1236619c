"""Models in folders: written from a run, read again, and compared with the run that they came from.

save_model("runs/…", "best", "chunker")
model = load_model("chunker")
model.predict("He PRP\\nreckons VBZ\\n")
"""

from __future__ import annotations

import json
import logging

import numpy as np

from gapwise.stages.model.from_run import BEST, model_of
from gapwise.stages.model.model import Model, allowing
from gapwise.storage.backend import DamagedError, Location, location
from gapwise.storage.models import is_model, read_model

log = logging.getLogger("gapwise")


def load_model(
    folder: str | Location, *, trust: bool = False, oracle: str | type | None = None, run: str | Location | None = None
) -> Model:
    """The model in a folder, given as a path or URL; needs neither its run nor raw data, writes nothing and runs nothing.

    Parameters
    ----------
    folder : str or Location
        What `save_model`, an estimator's ``save`` or ``gapwise export`` wrote.
    trust : bool
        Whether predicting may run the class or program of the user's own that the folder names, if it names any.
    oracle : str or type, optional
        The class, ``module:Class``, or the command to predict with instead of the one that the folder names.
    run : str or Location, optional
        The run that the model was exported from: ValueError if the model is not what the run gives.

    Returns
    -------
    Model
        With ``predict`` and ``score``, which answer as the estimator does, ``lambda_`` and ``certificate``.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If it is damaged, or another version of Gapwise wrote it; says which file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from gapwise import MulticlassSVM
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> MulticlassSVM(lam=0.01).fit(*load_iris(return_X_y=True)).save(folder)
    >>> load_model(folder).lambda_
    0.01
    """
    where = location(folder)
    model = Model.of(read_model(where), where / "model.json")
    if run is not None:
        compare(model, location(run), where)
    return allowing(model, trust, oracle)


def compare(model: Model, run: Location, where: Location) -> None:
    """Raise DamagedError unless the model at `where` is what the run gives; a run that has changed since is only logged."""
    asked = model.origin.get("asked")
    try:
        theirs = model_of(run, BEST if asked == BEST else model.lambda_)
    except (ValueError, OSError) as error:
        log.warning("%s: not compared with its run: %s", where, error)
        return
    if theirs.origin["digest"] != model.origin.get("digest"):
        log.warning(
            "%s: not compared with its run: %s has changed since, or is another one; export it again", where, run
        )
        return
    same = {
        "lambda": theirs.lambda_ == model.lambda_,
        "weights": np.array_equal(theirs.weights, model.weights),
        "certificate": theirs.certificate == model.certificate,
        "features": json.loads(json.dumps(theirs.meta)) == model.meta
        and theirs.shared.keys() == model.shared.keys()
        and all(np.array_equal(array, model.shared[name]) for name, array in theirs.shared.items()),
    }
    for name, is_same in same.items():
        if not is_same:
            raise DamagedError(f"{where}: its {name} is not what {run} gives; it was changed, export it again")


def save_model(run: str | Location, lam: float | str, folder: str | Location) -> Model:
    """Write the model of a run at one lambda into a folder, which needs neither the run nor its data.

    Parameters
    ----------
    run : str or Location
        The run directory, or its URL.
    lam : float or "best"
        Any lambda that the run certifies; "best": the chosen one, of the refitted model where there is one.
    folder : str or Location
        Where `load_model` finds it.

    Returns
    -------
    Model
        What was written.

    Raises
    ------
    FileNotFoundError
        If the run is not there, or not complete.
    ValueError
        If the run has no model at `lam`.

    Examples
    --------
    >>> save_model("runs/my-run", "best", "model")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    model = model_of(run, lam)
    model.save(folder)
    return model


def open_model(where: str | Location, lam: float | str | None = None, *, trust: bool = False) -> Model:
    """The model in a folder, or that of a run at `lam` (None: the best); ValueError if a model has another lambda."""
    folder = location(where)
    if not is_model(folder):
        return model_of(folder, BEST if lam is None else lam, trust=trust)
    model = load_model(folder, trust=trust)
    if lam not in (None, BEST, model.lambda_):
        raise ValueError(f"{folder}: a model of lambda {model.lambda_:g} only; give the run for lambda {lam:g}")
    return model
