"""A model of Gapwise behind MLflow's interface; what `mlflow.CODE` runs."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

INPUT, OUTPUT = "input", "labels"


def table(inputs: list[object]) -> Any:
    """A table of inputs, one a row; inputs with named values have a column for each."""
    import pandas as pd

    if all(isinstance(x, dict) for x in inputs):
        return pd.DataFrame(inputs)
    return pd.DataFrame({INPUT: [x.tolist() if isinstance(x, np.ndarray) else x for x in inputs]})


def labelled(model: Any, given: Any) -> Any:
    """The labels of a table of inputs, one row a block: of a picture by pixels, of anything else by name."""
    import pandas as pd

    predictions = model.answer(given if model.columns else list(given[INPUT]))
    blocks = range(len(predictions))
    return pd.DataFrame(
        {OUTPUT: [predictions.mask(i).tolist() if predictions.has_masks else predictions.named(i) for i in blocks]}
    )


def set_model() -> None:
    """Tell MLflow what the model is."""
    from mlflow.models import set_model
    from mlflow.pyfunc import PythonModel, PythonModelContext

    with contextlib.redirect_stderr(io.StringIO()):  # MLflow asks for type hints, and refuses those of tables

        class Gapwise(PythonModel):
            """Loads the model's folder, which is one of its artifacts."""

            def load_context(self, context: PythonModelContext) -> None:
                from gapwise.stages.model.folders import load_model

                # whoever loads an MLflow model runs its code, so what its artifacts name is no less trusted
                self.model = load_model(context.artifacts["model"], trust=True)

            def predict(
                self, context: PythonModelContext, model_input: object, params: dict[str, object] | None = None
            ) -> Any:
                return labelled(self.model, model_input)

    set_model(Gapwise())
