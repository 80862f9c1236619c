"""The code of an exported MLflow model: MLflow copies this file into it, and runs it when the model is loaded."""

from gapwise.pipeline.model_formats._pyfunc import set_model

set_model()
