"""Gapwise as a library: ``import gapwise``.

>>> import gapwise
>>> model = gapwise.ChainSVM().fit(X, y)  # doctest: +SKIP

Estimators with scikit-learn's interface: `ChainSVM`, `SegmentationSVM`, `MulticlassSVM`, and `StructuredSVM` over a
`StructuredModel` of one's own; all parameters they share are documented in `GapwiseEstimator`. Functions: `solve`, `path`,
`open_path` of a run, and `load_model` and `save_model`: folders with the model of one lambda, which need no run. `Oracle`:
what a max-oracle in Python has to offer. `__version__`: as installed.

Installed as the package ``gapwise``; everything is loaded at first use from the modules that define it, so importing this
file under two names does no harm.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapwise.pipeline.estimators.base import GapwiseEstimator
    from gapwise.pipeline.estimators.certificate import ModelCertificate
    from gapwise.pipeline.estimators.chain import ChainSVM
    from gapwise.pipeline.estimators.functions import path, solve
    from gapwise.pipeline.estimators.multiclass import MulticlassSVM
    from gapwise.pipeline.estimators.segmentation import SegmentationSVM
    from gapwise.pipeline.estimators.structured import StructuredSVM
    from gapwise.pipeline.estimators.structured_model import StructuredModel
    from gapwise.stages.model.folders import load_model, save_model
    from gapwise.stages.problems.oracle import Oracle
    from gapwise.storage.paths import open_path

    __version__: str

HOME = {
    "ChainSVM": "gapwise.pipeline.estimators.chain",
    "GapwiseEstimator": "gapwise.pipeline.estimators.base",
    "ModelCertificate": "gapwise.pipeline.estimators.certificate",
    "MulticlassSVM": "gapwise.pipeline.estimators.multiclass",
    "Oracle": "gapwise.stages.problems.oracle",
    "SegmentationSVM": "gapwise.pipeline.estimators.segmentation",
    "StructuredModel": "gapwise.pipeline.estimators.structured_model",
    "StructuredSVM": "gapwise.pipeline.estimators.structured",
    "load_model": "gapwise.stages.model.folders",
    "open_path": "gapwise.storage.paths",
    "save_model": "gapwise.stages.model.folders",
    "path": "gapwise.pipeline.estimators.functions",
    "solve": "gapwise.pipeline.estimators.functions",
}
"""The module of each name."""

__all__ = [
    "ChainSVM",
    "GapwiseEstimator",
    "ModelCertificate",
    "MulticlassSVM",
    "Oracle",
    "SegmentationSVM",
    "StructuredModel",
    "StructuredSVM",
    "__version__",
    "load_model",
    "open_path",
    "path",
    "save_model",
    "solve",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("gapwise")
    if name in HOME:
        return getattr(import_module(HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
