"""Models that leave home: the weights of one lambda with all that it takes to predict, and what they answer.

They come from a run (`from_run`) or from a folder (`folders`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, FeatureMap, Known, MapBlocks, NewInput, Predicted, reader_of, tell_known
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.model.calibration import Calibration
from gapwise.stages.model.calibration import read as read_calibration
from gapwise.stages.model.confidence import NBest, n_best_of, refuse_without_lists, refuse_without_margins, scores_of
from gapwise.stages.model.facts import check_features, fitting, labels_of, refuse
from gapwise.stages.model.named_weights import NamedWeights, named_weights
from gapwise.stages.problems import build, capabilities
from gapwise.stages.problems.user_code import only
from gapwise.storage.backend import Location, location
from gapwise.storage.models import StoredModel, write_model

if TYPE_CHECKING:
    from pandas import DataFrame

    from gapwise.stages.model.explain import Explanation
    from gapwise.stages.model.measures import Measured

VERSIONS = ("gapwise", "numpy", "scipy", "numba", "scikit-image", "opencv-python-headless")


@dataclass(frozen=True)
class Prediction(Predicted):
    """Labels of the blocks of new input.

    Attributes
    ----------
    known : Known, optional
        How many attributes of the input the training data have, of how many; None where there are no attributes.
    names : list
        The labels as they were in training: strings, numbers or booleans.
    margins : float64 array, (entries,), optional
        If asked for: of each label how much better the predicted labelling scores than the best with another label there.
    calibration : Calibration, optional
        Of the model, if it has one; `calibration.split` says what it was fitted on.
    n_best : NBest, optional
        If asked for: the best labellings of each block, with their scores.
    """

    names: list[Any] = field(default_factory=list)
    known: Known | None = None
    margins: np.ndarray | None = None
    calibration: Calibration | None = None
    n_best: NBest | None = None

    @property
    def probabilities(self) -> np.ndarray | None:
        """(entries,): the calibrated probability that each predicted label is right; None without margins or calibration."""
        return None if self.margins is None or self.calibration is None else self.calibration(self.margins)

    @property
    def gaps(self) -> np.ndarray | None:
        """(n,): how much better each block's labelling scores than its second best; None without margins."""
        if self.margins is None:
            return None
        return np.array([self.margins[a:b].min(initial=np.inf) for a, b in pairwise(self.label_ptr.tolist())])

    def named(self, i: int) -> list[Any]:
        """Labels of block i as they were in training, or as integers where they have no names."""
        return Predicted.named(self, i)


@dataclass(frozen=True)
class Model:
    """Weights at one lambda, and the feature map they belong to.

    Attributes
    ----------
    lambda_ : float
    weights : float64 array, shape (d,)
    certificate : dict
        ``gap`` at this lambda if it was solved itself, else None; ``eps``, which the gap of a certified lambda is at most
        (times the primal value if ``relative``); ``certainty``: exact, upper-bounded or estimate; ``verified``: whether
        independent code has recomputed the certificates of the run; ``certified``: whether this lambda has one; ``checked``:
        what was compared when the model was written (`CHECKED`), or nothing.
    meta : dict
        Facts of the features: ``dataset``, ``structure``, ``d``, names of labels.
    shared : dict
        Arrays of the feature map: vocabularies, codebooks.
    origin : dict
        Name, key and `digest` of the run, the lambda that was asked for, and the versions of what made it.
    allowed : frozenset of str, optional
        Code of one's own that `predict` may run, ``module:Class`` or a command; None: whatever the files name.
    calibration : Calibration, optional
        Turns margins into probabilities, if it was asked for.
    source : str
        The file that says all this, for messages.
    """

    lambda_: float
    weights: np.ndarray = field(repr=False)
    certificate: Record
    meta: Record = field(repr=False)
    shared: dict[str, np.ndarray] = field(repr=False)
    origin: Record = field(repr=False)
    allowed: frozenset[str] | None = field(default=frozenset(), repr=False)
    source: str = field(default="model", repr=False)
    calibration: Calibration | None = field(default=None, repr=False)

    @property
    def code(self) -> str | None:
        """The user's own class or command that made the features, and that predicting runs; None if it takes none."""
        key = reader_of(self.meta["dataset"]).code
        return None if key is None else str(self.meta[key])

    @property
    def labels(self) -> list[Label]:
        """The labels as they were in training; empty if they have no names."""
        return labels_of(self.meta)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the training data, by which tables are read; empty if they have none."""
        return list(self.meta.get("arrays", {}).get("columns") or ())

    @cached_property
    def feature_map(self) -> FeatureMap:
        """The feature map of the training data."""
        return FeatureMap(self.meta, self.shared)

    @property
    def named_weights(self) -> DataFrame:
        """A row for each weight of a chain or of classes: attribute, label, weight (`NamedWeights.frame`)."""
        return self._named.frame

    @property
    def _named(self) -> NamedWeights:
        with fitting(self.source):
            return named_weights(self.meta, self.shared, self.weights)

    def explain(self, raw: Any, block: int = 0, entry: int = 0, rival: Label | None = None) -> Explanation:
        """What spoke for the label of one entry of new inputs, and against it: `explain.explain`, with `predict`'s inputs.

        `block`: number of the sequence or example, from 0; `entry`: that of the token. `rival`: the label to compare with.
        """
        from gapwise.stages.model.explain import explain

        names = self._named
        with fitting(self.source), contextlib.nullcontext() if self.allowed is None else only(self.allowed):
            encoded = self.feature_map.encode(raw)
            problem = build(encoded.structure, encoded.arrays, encoded.meta)
            return explain(problem, self.weights, names, block, entry, rival)

    def predict(self, X: Any, lam: float | None = None) -> list[Any] | np.ndarray:
        """What an estimator's `predict` answers: labels as they were in training, of new inputs as `answer` takes them.

        Of sequences a list each, of classes an array, of pictures masks, otherwise a row of integers each. `lam`: this
        model's, if it is given; ValueError for others.
        """
        if lam not in (None, self.lambda_):
            raise ValueError(f"lam: this model is that of lambda {self.lambda_:g}, got {lam!r}; its run has the others")
        answer = self.answer(X)
        if answer.has_masks:
            return [answer.mask(i).astype(np.uint8) for i in range(len(answer))]
        if self.meta["structure"] == "multiclass":
            beyond = any(type(label) is int and label >= 1 << 63 for label in answer.names)
            return np.array([answer.named(i)[0] for i in range(len(answer))], np.uint64 if beyond else None)
        return [answer.named(i) if answer.names else answer[i] for i in range(len(answer))]

    def score(self, X: Any, y: Any) -> float:
        """What an estimator's `score` answers: the share of right tokens or classes; of pictures 1 minus the mean loss."""
        from gapwise.stages.model.measures import picture_score, share_right

        predicted = self.predict(X)
        masks = [mask for mask in predicted if np.ndim(mask) == 2]
        if not masks:
            return share_right(y, predicted)
        return picture_score(str(self.meta["loss"]), [np.ones(mask.shape) for mask in masks], y, masks)

    def measures(self, X: Any, y: Any) -> Measured:
        """Loss, measures of the field, F1 of each label and kind of chunk, confusions: `gapwise evaluate` in Python."""
        from gapwise.stages.model.measures import measure, names_of_labels

        if self.meta["structure"] not in ("chain", "multiclass"):
            raise ValueError(f"measures: expected a model of sequences or classes, got one of {self.meta['dataset']}")
        return measure(self, NewInput(X), names_of_labels(y))

    def answer(
        self, raw: Any, map_blocks: MapBlocks | None = None, *, margins: bool = False, n_best: int | None = None
    ) -> Prediction:
        """Labels of new inputs, in the form that the reader of the data set documents for its encoder.

        With `margins` also `Prediction.margins`, and `probabilities` if the model is calibrated; with `n_best` also the best
        labellings of each block, `Prediction.n_best`.

        Attributes that do not occur in training count for nothing: `Prediction.known` says how many do, and if none does, a
        warning says so. A label in the input is ignored. A model that an estimator saved takes what its `predict` takes.

        Raises
        ------
        DataError
            If the input cannot be used; says where.
        UntrustedError
            If it takes code that only the model's files name; `load_model` says how to allow it.
        ValueError
            If the structure has no margins, or does not list its best labellings.
        """
        structure = str(self.meta["structure"])
        if margins:
            refuse_without_margins(structure)
        if n_best is not None:
            refuse_without_lists(structure, n_best)
        with fitting(self.source), contextlib.nullcontext() if self.allowed is None else only(self.allowed):
            return self._predict(raw, map_blocks, margins, n_best)

    def _predict(self, raw: Any, map_blocks: MapBlocks | None, margins: bool, n_best: int | None) -> Prediction:
        encoded = self.feature_map.encode(raw, map_blocks)
        decoded = capabilities(encoded.structure).decoded
        known_margins, listed = None, None
        if decoded is not None:
            labels, label_ptr = decoded(encoded.arrays, encoded.meta, self.weights)
        else:
            from gapwise.stages.model.predict import predict

            problem = build(encoded.structure, encoded.arrays, encoded.meta)
            label_ptr = problem.label_ptr
            if margins:
                labels, known_margins, _ = scores_of(problem, self.weights)
            else:
                labels, _ = predict(problem, self.weights)
            if n_best is not None:
                listed = n_best_of(problem, self.weights, int(n_best))
        tell_known(encoded.known)
        return Prediction(
            labels, label_ptr, self.labels, encoded.arrays, encoded.known, known_margins, self.calibration, listed
        )

    @property
    def facts(self) -> Record:
        """All but the arrays, JSON-able."""
        fitted = {} if self.calibration is None else {"calibration": self.calibration.facts}
        return {
            "dataset": self.meta["dataset"],
            "structure": self.meta["structure"],
            "lambda": self.lambda_,
            "labels": self.labels,
            "certificate": self.certificate,
            "origin": self.origin,
            "features": self.meta,
            **fitted,
        }

    @classmethod
    def of(cls, stored: StoredModel, where: object) -> Model:
        """The model that a folder holds, whose `facts` these are; DamagedError, beginning with `where`, if they are not."""
        facts, weights, shared = stored
        lam = facts.get("lambda")
        fits = isinstance(lam, int | float) and not isinstance(lam, bool) and 0.0 < lam < math.inf
        refuse(where, "lambda", lam, fits, "a number > 0")
        for name in ("certificate", "origin", "features"):
            refuse(where, name, facts.get(name), isinstance(facts.get(name), Mapping), "an object")
        check_features(facts["features"], weights.size, where)
        return cls(
            float(facts["lambda"]), weights, facts["certificate"], dict(facts["features"]), shared, facts["origin"],
            source=str(where), calibration=read_calibration(facts.get("calibration"), where),
        )  # fmt: skip

    def save(self, folder: str | Location) -> None:
        """Write the model into a folder of its own; `storage.models.write_model` says what it refuses."""
        write_model(location(folder), self.facts, self.weights, self.shared)


def allowing(model: Model, trust: bool, oracle: str | type | None) -> Model:
    """`model` with the code of one's own that the user allows, or with his own in its place."""
    if oracle is not None:
        name = oracle if isinstance(oracle, str) else f"{oracle.__module__}:{oracle.__qualname__}"
        key = reader_of(model.meta["dataset"]).code
        if key is None:
            raise DataError(f"oracle: {name} is not needed: {model.meta['dataset']} has no code of your own")
        return replace(model, meta={**model.meta, key: name}, allowed=frozenset([name]))
    return replace(model, allowed=None if trust else frozenset())


def versions() -> dict[str, str]:
    """Versions of the packages that a model's numbers rest on, as far as they are installed."""
    from importlib.metadata import PackageNotFoundError, version

    installed = {}
    for name in VERSIONS:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed
