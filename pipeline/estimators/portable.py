"""The model of one lambda of a fitted estimator, in the form that `gapwise.load_model` and ``gapwise predict`` read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gapwise.pipeline.estimators.certificate import ModelCertificate
from gapwise.records import Facts, Record
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.model.calibration import Calibration
from gapwise.storage.mixture import PathInMemory

if TYPE_CHECKING:
    from gapwise.stages.model.model import Model


def portable(
    name: str, lam: float, weights: np.ndarray, facts: Facts, shared: Mapping[str, np.ndarray], solved_in: PathInMemory,
    certificate: ModelCertificate, calibration: Calibration | None, *, at_lambda: bool,
) -> Model:  # fmt: skip
    """The model of an estimator called `name`.

    Parameters
    ----------
    lam, weights : float, (d,) array
        The lambda and its w.
    facts, shared : mapping, mapping of arrays
        Of the feature map, as in a store of features.
    solved_in, certificate : PathInMemory, ModelCertificate
        What w was solved in.
    at_lambda : bool
        Whether a certificate of one lambda is that of `lam`.
    """
    from gapwise.stages.model.model import Model, versions

    attrs = solved_in.attrs
    claims: Record = {
        "gap": certificate.gap if at_lambda and certificate.lam_low == certificate.lam_high else None,
        "eps": attrs["eps"],
        "relative": bool(attrs["relative"]),
        "certainty": certificate.certainty,
        "verified": certificate.verified,
        "certified": certificate.verified and certificate.holds,
    }
    origin: Record = {"run": name, "key": attrs["key"], "rule": attrs["rule"], "versions": versions()}
    return Model(lam, weights, claims, {**facts, "d": int(weights.size)}, dict(shared), origin, calibration=calibration)


def stored_labels(classes: Sequence[object] | np.ndarray) -> list[Label]:
    """The classes of an estimator as a model's file keeps them, of the same type; ValueError for types that it cannot."""
    names: list[Any] = [name.item() if isinstance(name, np.generic) else name for name in classes]
    for given, name in zip(classes, names, strict=True):
        if type(name) not in (bool, int, float, str) or isinstance(given, np.datetime64 | np.timedelta64):
            raise ValueError(
                f"save: the class {given!r} is a {type(given).__name__}; a model keeps numbers, booleans and strings; "
                "use one of these, or pickle the estimator"
            )
    return names
