"""A model that ``mlflow.pyfunc.load_model`` loads: the folder of the form `gapwise` and code that reads it.

Input is a table with one column, ``input``, one raw input a row, in the form that the data set's encoder documents: the
text of a sequence, a row of numbers, the contents of a picture file. If the columns of the training data have names,
the table has these columns instead, in any order. Output is a table with the column ``labels``: of each input the labels by
name, of a picture those of its pixels, row by row. Where the model is loaded, Gapwise must be installed.
"""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from pathlib import Path

from gapwise.stages.model.from_run import example_of
from gapwise.stages.model.model import VERSIONS, Model
from gapwise.stages.problems.user_code import UntrustedError
from gapwise.storage.backend import Location
from gapwise.storage.files import refuse_others, replaced

CODE = "from gapwise.pipeline.model_formats._pyfunc import set_model\n\nset_model()\n"
"""The code of an exported model, which MLflow runs when the model is loaded."""
FILE = "MLmodel"
log = logging.getLogger("gapwise")


def write_mlflow(model: Model, target: Location, run: Location) -> None:
    """Write the folder of an MLflow model, with a signature and an input example; anything there but one is refused."""
    refuse_others(target, FILE, "an MLflow model", lambda name: True)  # MLflow chooses the names
    with replaced(target) as made, tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hints of MLflow's about types and environments
        model.save(Path(folder) / "model")
        _save(model, Path(folder) / "model", made, example_of(run))


def _save(model: Model, folder: Path, made: Path, example: object) -> None:
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    import mlflow.pyfunc
    from mlflow.models import infer_signature

    from gapwise.pipeline.model_formats._pyfunc import labelled, table

    described: dict[str, object] = {}
    if example is not None:
        given = table([example])
        try:
            described = {"signature": infer_signature(given, labelled(model, given)), "input_example": given}
        except UntrustedError:
            log.warning("the MLflow model gets no input example: to label one would run %r", model.code)
    logging.getLogger("mlflow").setLevel(logging.WARNING)
    versions, code = model.origin["versions"], folder.with_name("model.py")
    code.write_text(CODE, encoding="utf-8")
    mlflow.pyfunc.save_model(
        str(made),
        python_model=str(code),
        artifacts={"model": str(folder)},
        pip_requirements=[f"{name}=={versions[name]}" for name in VERSIONS if name in versions],
        metadata={"lambda": model.lambda_, "certificate": model.certificate, "run": model.origin["run"]},
        **described,
    )
