"""Weights of a chain by name: what speaks for a label and against it, and which labels follow one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.text.vocabulary import read_vocabulary
from gapwise.stages.model.facts import labels_of
from gapwise.stages.problems.chain.dense import emissions_of
from gapwise.stages.problems.chain.features import BIASES


class Feature(NamedTuple):
    """The weight of an attribute for a label."""

    attribute: str
    label: Label
    weight: float


class Transition(NamedTuple):
    """The weight of a label right before another."""

    before: Label
    after: Label
    weight: float


@dataclass(frozen=True)
class NamedWeights:
    """The weights of a chain, with names.

    Attributes
    ----------
    labels : sequence of str or int, K of them
    attributes : sequence of str, p of them
        The last three are the biases of all, of first and of last tokens.
    emissions : array, shape (p, K)
    pairs : array, shape (K, K)
        Of label a (row) before b (column).
    """

    labels: Sequence[Label]
    attributes: Sequence[str] = field(repr=False)
    emissions: np.ndarray = field(repr=False)
    pairs: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, w: np.ndarray, labels: Sequence[Label], attributes: Sequence[str], dense: bool = False) -> NamedWeights:
        """Weights w (d,) of a chain over these labels and attributes, the biases not among them.

        `dense`: whether they are stacked as those of `chain.dense`.
        """
        K = len(labels)
        return cls(labels, [*attributes, *BIASES], emissions_of(w, K, dense), w[w.size - K * K :].reshape(K, K))

    def top_features(self, label: Label, k: int = 10, *, against: bool = False) -> list[Feature]:
        """The `k` attributes that speak most for a label, by falling weight; or most against it, by rising weight.

        Only attributes with a weight above 0, or below it, so there may be fewer. ValueError if there is no such label.
        """
        if label not in self.labels:
            raise ValueError(f"label: there is no {label!r}; known: {', '.join(map(str, self.labels))}")
        column = self.emissions[:, self.labels.index(label)]
        sign = 1.0 if against else -1.0
        order = np.argsort(sign * column, kind="stable")[:k]
        return [Feature(self.attributes[a], label, float(column[a])) for a in order.tolist() if sign * column[a] < 0.0]

    def transitions(self) -> list[Transition]:
        """All pairs of neighbouring labels, by falling weight."""
        order = np.argsort(-self.pairs, axis=None, kind="stable").tolist()
        cells = (divmod(cell, len(self.labels)) for cell in order)
        return [Transition(self.labels[a], self.labels[b], float(self.pairs[a, b])) for a, b in cells]


def named_weights(meta: Facts, shared: Mapping[str, np.ndarray], w: np.ndarray) -> NamedWeights:
    """The weights of a model or run by the facts and shared arrays of its features; ValueError unless it is a chain,
    or if there are more weights than names, or fewer."""
    if meta["structure"] != "chain":
        raise ValueError(
            f"weights: only chains have weights by name, this is a model of the structure {meta['structure']}"
        )
    K = int(meta["classes"])
    labels = labels_of(meta) or [*map(str, range(K))]
    templates = (meta.get("text") or {}).get("templates")
    if "vocabulary" not in shared:  # arrays, or pixels
        unnamed = columns(int(meta["attributes"]) - len(BIASES))
        return NamedWeights.of(w, labels, unnamed, bool(meta.get("dense", False)))
    attributes = [*read_vocabulary(shared)]
    size = (len(attributes) + len(BIASES)) * K + K * K
    if w.size != size:
        raise ValueError(f"weights: expected {size:,}, by the names of labels and attributes, got {w.size:,}")
    names_of_all = [*map(readable, attributes)] if templates else attributes
    return NamedWeights.of(w, labels, names_of_all)


def columns(width: int) -> list[str]:
    """Names of the columns of arrays, as scikit-learn has them."""
    return [f"x{k}" for k in range(width)]


def readable(name: str) -> str:
    r"""An attribute of a template, which the vocabulary stores as ``U01:%x/%x\tthe\tNN``, in CRF++'s form: U01:the/NN."""
    skeleton, *values = name.split("\t")
    words = [value.strip(" ") for value in values]
    if skeleton.count("%x") != len(words):
        return f"{skeleton} {' '.join(words)}"
    pieces = skeleton.split("%x")
    return "".join(part for pair in zip(pieces, [*words, ""], strict=True) for part in pair)
