"""Margins as probabilities: how often predictions with such a margin were right on blocks that training has not seen.

A calibration is fitted only where it is asked for: to the margins of the labels of held-out blocks and to whether each was
right. So the probability is that the predicted label of an entry is right, for blocks like those held out. Both methods are
scikit-learn's: ``isotonic``, the best rising function, and ``sigmoid``, a logistic regression on the margin (Platt, 1999).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from gapwise.records import Record
from gapwise.storage.files import DamagedError

ISOTONIC, SIGMOID = "isotonic", "sigmoid"
METHODS = (ISOTONIC, SIGMOID)
FEWEST = 10
"""Predicted labels that a calibration is fitted to, at least."""


@dataclass(frozen=True)
class Calibration:
    """A map from margins to probabilities.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    split : str
        What it was fitted on, for people.
    entries : int
        Number of predicted labels there.
    margins, probabilities : tuple of float
        Of ``isotonic``: the ends of its straight lines, both rising.
    slope, intercept : float
        Of ``sigmoid``: the probability is 1 / (1 + exp(-slope margin - intercept)).
    """

    method: str
    split: str
    entries: int
    margins: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()
    slope: float = 0.0
    intercept: float = 0.0

    def __call__(self, margins: np.ndarray) -> np.ndarray:
        """Probabilities, float64, of margins >= 0; those of infinite margins are the largest."""
        if self.method == ISOTONIC:
            return np.interp(margins, self.margins, self.probabilities)
        from scipy.special import expit

        raised = self.slope * np.asarray(margins) if self.slope else np.zeros(np.shape(margins))
        probabilities: np.ndarray = expit(raised + self.intercept)
        return probabilities

    @property
    def facts(self) -> Record:
        """What a model's file holds, JSON-able."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def refuse_few(labels: int) -> None:
    """Raise ValueError if a calibration cannot be fitted to so few predicted labels."""
    if labels < FEWEST:
        raise ValueError(
            f"calibration: expected at least {FEWEST} predicted labels of held-out blocks, got {labels}; hold out more"
        )


def fitted(
    method: str, margins: np.ndarray, right: np.ndarray, split: str, weight: np.ndarray | None = None
) -> Calibration:
    """The calibration of margins, float64 (entries,), to whether these predictions were right, bool (entries,).

    A sigmoid of predictions that are all right has the slope 0 and Platt's smoothed probability, (entries + 1) / (entries +
    2); where all are wrong it is 1 / (entries + 2).

    Parameters
    ----------
    weight : float64 (entries,), optional
        How much each counts; None: all the same.

    Raises
    ------
    ValueError
        If there is no such method, or the held-out predictions are too few.
    """
    if method not in METHODS:
        raise ValueError(f"calibration: expected {' or '.join(METHODS)}, got {method!r}")
    finite = np.isfinite(margins)
    refuse_few(int(np.count_nonzero(finite)))
    x, y = np.asarray(margins, np.float64)[finite], np.asarray(right)[finite].astype(float)
    each = None if weight is None else weight[finite]
    if method == ISOTONIC:
        from sklearn.isotonic import IsotonicRegression

        steps = IsotonicRegression(y_min=0.0, y_max=1.0, increasing=True).fit(x, y, each)
        ends = tuple(steps.X_thresholds_.tolist()), tuple(steps.y_thresholds_.tolist())
        return Calibration(method, split, x.size, *ends)
    if y.min() == y.max():
        return Calibration(method, split, x.size, intercept=math.log(x.size + 1) * (1.0 if y[0] else -1.0))
    from sklearn.linear_model import LogisticRegression

    scale = float(x.max()) or 1.0
    line = LogisticRegression(C=np.inf, max_iter=1000).fit(x[:, None] / scale, y, each)
    return Calibration(
        method, split, x.size, slope=float(line.coef_[0, 0]) / scale, intercept=float(line.intercept_[0])
    )


def read(facts: object, where: object) -> Calibration | None:
    """The calibration that a model's file describes, or None; DamagedError, beginning with `where`, if it is none."""
    if facts is None:
        return None
    try:
        if not isinstance(facts, Mapping):
            raise TypeError
        calibration = Calibration(
            method=str(facts["method"]),
            split=str(facts["split"]),
            entries=int(facts["entries"]),
            margins=tuple(float(x) for x in facts["margins"]),
            probabilities=tuple(float(x) for x in facts["probabilities"]),
            slope=float(facts["slope"]),
            intercept=float(facts["intercept"]),
        )
        if not _is_sound(calibration):
            raise ValueError
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedError(
            f"{where}: calibration: expected a rising map from margins to probabilities; it was changed, or is damaged: "
            "make it again"
        ) from error
    return calibration


def _is_sound(calibration: Calibration) -> bool:
    if calibration.method == SIGMOID:
        return math.isfinite(calibration.slope) and math.isfinite(calibration.intercept)
    x, y = np.array(calibration.margins), np.array(calibration.probabilities)
    rising = x.size == y.size > 0 and np.isfinite(x).all() and (np.diff(x) > 0).all() and (np.diff(y) >= 0).all()
    return bool(calibration.method == ISOTONIC and rising and y[0] >= 0.0 and y[-1] <= 1.0)
