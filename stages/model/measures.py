"""The measures of a model: on a split, on new input that has its labels, and of one that has learnt nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import FeatureMap, Known, NewInput
from gapwise.stages.model.predict import losses_of, predict
from gapwise.stages.model.predictions import by_label, counts_of
from gapwise.stages.problems import build, capabilities, structure
from gapwise.stages.problems.chain.metrics import chunk_counts, encode_names
from gapwise.stages.problems.losses import BALANCED, PER_PIXEL
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.user_code import only


class Measured(NamedTuple):
    """What a model does on labelled input.

    Attributes
    ----------
    blocks, tokens : int
        Number of sequences, or examples, and of labels.
    loss : float
        Mean task loss.
    metrics : dict of float
        Those of the structure: token_error, sequence_error, and of chunks chunk_precision, chunk_recall and chunk_f1; or
        error_rate of classes.
    labels : list of dict
        label, support, predicted, right, precision, recall, f1 of each label (`predictions.by_label`).
    chunks : list of dict
        The same of each kind of chunk; empty where labels are not those of chunks.
    confusions : list of dict
        truth, predicted, count, share (of the entries with that true label): wrong predictions, the most frequent first.
    known : Known, optional
        How many attributes of the input the training data have.
    """

    blocks: int
    tokens: int
    loss: float
    metrics: Mapping[str, float]
    labels: list[Record]
    chunks: list[Record]
    confusions: list[Record]
    known: Known | None


class Measurable(Protocol):
    """What is read of a `model.Model`."""

    @property
    def weights(self) -> np.ndarray: ...
    @property
    def allowed(self) -> frozenset[str] | None: ...
    @property
    def labels(self) -> Sequence[object]: ...
    @property
    def feature_map(self) -> FeatureMap: ...


def measure(model: Measurable, new: NewInput, truth: list[str]) -> Measured:
    """The measures of `model` on new input with these labels.

    A label of a token that the model was not trained on is never predicted and counts as an error.
    """
    trained = [*map(str, model.labels)]
    names = [*trained, *sorted({*truth} - {*trained})]
    number = {name: k for k, name in enumerate(names)}
    with contextlib.nullcontext() if model.allowed is None else only(model.allowed):
        encoded = model.feature_map.encode(new.raw)
        own = np.asarray(encoded.arrays["labels"]).dtype
        labels = np.array([number[name] for name in truth], own if len(names) - 1 <= np.iinfo(own).max else np.int16)
        arrays = {**encoded.arrays, "labels": labels, "label_names": encode_names(names)}
        if len(names) > len(trained):
            arrays["decode_only"] = np.ones(1, np.uint8)
        problem = build(encoded.structure, arrays, encoded.meta)
        predicted, losses = predict(problem, model.weights)
        metrics = structure(encoded.structure).metrics(problem, arrays, predicted)
        confusion = capabilities(encoded.structure).confusion
        assert confusion is not None
        shown, matrix = confusion(problem, arrays, encoded.meta, predicted)
    chunks = []
    if "chunk_f1" in metrics:
        kinds, counts = chunk_counts(names, problem.label_ptr, problem.truth, predicted)
        chunks = by_label(kinds, *counts)
    rows = by_label(shown, *counts_of(matrix))
    wrong = confusions(shown, matrix)
    return Measured(problem.n, labels.size, float(np.mean(losses)), metrics, rows, chunks, wrong, encoded.known)


def measured(
    problem: Problem, arrays: Mapping[str, np.ndarray], meta: Facts, w: np.ndarray, split: str, spread: Spread = HERE
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Predicted labels of a split, flat, their losses (n,), and the mean loss and measures by name, such as test_loss."""
    labels, losses = predict(problem, w, spread, split)
    measures = structure(meta["structure"]).metrics(problem, arrays, labels)
    return (
        labels,
        losses,
        {f"{split}_{name}": float(value) for name, value in {"loss": np.mean(losses), **measures}.items()},
    )


def nothing_learnt(train: Problem, test: Problem, arrays: Mapping[str, np.ndarray], meta: Facts) -> Record:
    """Mean test loss of the first label everywhere; where labels have names also of the most frequent training label."""

    def everywhere(label: int) -> float:
        return float(np.mean(losses_of(test, np.full_like(test.truth, label))))

    result: Record = {"all_zero_test_loss": everywhere(0)}
    if (confusion := capabilities(meta["structure"]).confusion) is not None:
        names, _ = confusion(test, arrays, meta, test.truth)
        label = int(np.argmax(np.bincount(train.truth, minlength=len(names))[: len(names)]))
        result |= {"commonest_label": names[label], "commonest_test_loss": everywhere(label)}
    return result


def confusions(names: list[str], matrix: np.ndarray, most: int = 10) -> list[Record]:
    """The `most` frequent wrong predictions of a matrix (truth, prediction); equal counts in the order of labels."""
    support = matrix.sum(axis=1)
    wrong = matrix - np.diag(np.diag(matrix))
    order = np.argsort(-wrong, axis=None, kind="stable")
    cells = (divmod(int(cell), len(names)) for cell in islice(order, most))
    return [
        {"truth": names[a], "predicted": names[b], "count": int(wrong[a, b]), "share": float(wrong[a, b] / support[a])}
        for a, b in cells
        if wrong[a, b]
    ]


def names_of_labels(y: Iterable[Any]) -> list[str]:
    """Labels of sequences or of examples, flat, by the names that a model's file has."""
    return [str(label) for label in _flat(y)]


def share_right(y: Iterable[Any], predicted: Iterable[Any]) -> float:
    """The share of labels that are right, of sequences or of examples."""
    pairs = zip(_flat(y), _flat(predicted), strict=True)
    return float(np.mean([a == b for a, b in pairs]))


def _flat(y: Iterable[Any]) -> Iterator[Any]:
    for labels in y:
        yield from labels if isinstance(labels, list | tuple | np.ndarray) else [labels]


def picture_score(
    loss: str, areas: Iterable[np.ndarray], y: Iterable[np.ndarray], predicted: Iterable[np.ndarray]
) -> float:
    """1 minus the mean loss of `PICTURE_LOSSES`; with "per_pixel" the share of right area of all pictures together."""
    losses, sizes = [], []
    for area, true, own in zip(areas, map(np.asarray, y), predicted, strict=True):
        groups = [true == k for k in np.unique(true)] if loss == BALANCED else [np.full(true.shape, True)]
        shares = [float(np.sum(area[group & (own != true)]) / np.sum(area[group])) for group in groups]
        losses.append(np.mean(shares))
        sizes.append(float(np.sum(area)))
    return 1.0 - float(np.average(losses, weights=sizes if loss == PER_PIXEL else None))
