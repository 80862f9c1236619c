"""Weights of chains and classes by name: what speaks for a label and against it, and which labels follow one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.text.vocabulary import read_vocabulary
from gapwise.stages.model.facts import labels_of
from gapwise.stages.problems.chain.dense import emissions_of
from gapwise.stages.problems.chain.features import BIASES
from gapwise.stages.problems.multiclass.rows import class_weights

if TYPE_CHECKING:  # loading it takes longer than many a prediction
    from pandas import DataFrame

NAMED = ("chain", "multiclass")
"""Structures whose weights have names, and whose predictions are explained; not over a kernel."""


class NamedWeights(NamedTuple):
    """Weights with names: of p attributes for K labels and, of a chain, of pairs of labels."""

    labels: Sequence[Label]
    attributes: Sequence[str]
    """Those of a chain end with the biases of all, of first and of last tokens."""
    emissions: np.ndarray
    """(p, K)"""
    pairs: np.ndarray
    """(K, K), of label a (row) right before b (column); (0, K) of classes."""

    @classmethod
    def of(cls, w: np.ndarray, labels: Sequence[Label], attributes: Sequence[str], dense: bool = False) -> NamedWeights:
        """Weights w (d,) of a chain over these labels and attributes, the biases not among them.

        `dense`: whether they are stacked as those of `chain.dense`.
        """
        K = len(labels)
        return cls(labels, [*attributes, *BIASES], emissions_of(w, K, dense), w[w.size - K * K :].reshape(K, K))

    @property
    def frame(self) -> DataFrame:
        """A row for each weight: attribute, label, weight. The attribute "A →" is label A at the token before.

        So ``frame[frame.label == "B"].nlargest(10, "weight")`` is what speaks most for B.
        """
        import pandas as pd

        names = [*self.attributes, *(f"{label} →" for label in self.labels[: len(self.pairs)])]
        weights = np.concatenate([self.emissions, self.pairs])
        labels = pd.Categorical.from_codes(np.tile(np.arange(len(self.labels)), len(names)), list(self.labels))
        return pd.DataFrame(
            {
                "attribute": np.repeat(np.array(names, object), len(self.labels)),
                "label": labels,
                "weight": weights.ravel(),
            }
        )


def strongest(frame: DataFrame, column: str, k: int) -> DataFrame:
    """The `k` rows of largest value > 0 in a column and the `k` of least value < 0, by falling value."""
    import pandas as pd

    most, least = frame.nlargest(k, column), frame.nsmallest(k, column)[::-1]
    return pd.concat([most[most[column] > 0.0], least[least[column] < 0.0]])


def named_weights(meta: Facts, shared: Mapping[str, np.ndarray], w: np.ndarray) -> NamedWeights:
    """The weights w (d,) of a model or run by the facts and shared arrays of its features.

    ValueError unless it is one of `NAMED`, or if there are more weights than names, or fewer.
    """
    structure = str(meta["structure"]) + (" over a kernel" if "kernel" in meta else "")
    if structure not in NAMED:
        raise ValueError(f"weights of the structure {structure} have no names; expected {', '.join(NAMED)}")
    K = int(meta["classes"])
    if structure == "multiclass":
        arrays = meta.get("arrays") or {}
        emissions = class_weights(w, K, bool(arrays.get("sparse"))).T
        bias = [BIASES[0]] if arrays.get("bias") is not None else []
        names = arrays.get("columns") or columns(len(emissions) - len(bias))
        return NamedWeights(labels_of(meta) or [*range(K)], [*names, *bias], emissions, np.empty((0, K)))
    labels = labels_of(meta) or [*map(str, range(K))]
    if "vocabulary" not in shared:  # arrays, or pixels
        unnamed = columns(int(meta["attributes"]) - len(BIASES))
        return NamedWeights.of(w, labels, unnamed, bool(meta.get("dense", False)))
    attributes = [*read_vocabulary(shared)]
    size = (len(attributes) + len(BIASES)) * K + K * K
    if w.size != size:
        raise ValueError(f"weights: expected {size:,}, by the names of labels and attributes, got {w.size:,}")
    templates = (meta.get("text") or {}).get("templates")
    return NamedWeights.of(w, labels, [*map(readable, attributes)] if templates else attributes)


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
