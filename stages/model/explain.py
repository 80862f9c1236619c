"""Why one label was predicted: what spoke for it and against it.

The *rival* is the best labelling with another label at the entry, or with one that is given. The margin, the score of the
prediction less that of its rival, is a sum over the features in which the two differ: each attribute of a token with two
labels has its value times the difference of its two weights, and each place where the neighbouring labels differ has the
difference of two weights of transitions. These are the *parts*; they sum to the margin exactly, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from gapwise.records import Record
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.model.named_weights import NamedWeights, strongest
from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.chain import Chain
from gapwise.stages.problems.chain.costs import BLOCKED
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.kernel_cache import Kernel
from gapwise.stages.problems.multiclass import Multiclass
from gapwise.stages.problems.multiclass.rows import Csr, Dense
from gapwise.stages.problems.protocol import JIT, Problem, frozen
from gapwise.stages.problems.simd import one_type

if TYPE_CHECKING:  # loading it takes longer than many a prediction
    from pandas import DataFrame

EXCLUDED = 1e10 * BLOCKED
"""Score of a label that a rival must not have: where no other is possible, the rival breaks a constraint instead."""
COLUMNS = ["entry", "attribute", "predicted", "rival", "score"]


@dataclass(frozen=True)
class Explanation:
    """Why an entry has its label; printed, the margin and the parts that speak most for the label and against it.

    Attributes
    ----------
    entry : int
        The token, from 0.
    predicted, rival : list
        Labels of the whole block: those predicted, and the best with another label at the entry.
    margin : float
        By how much the prediction scores more.
    parts : DataFrame
        By falling score, which is > 0 for what speaks for the prediction; none is 0 and their sum is the margin. Each has
        its entry, its attribute (of neighbouring labels "A → B, not C → B"), and the labels there, predicted and rival.
    """

    entry: int
    predicted: list[Label]
    rival: list[Label]
    margin: float
    parts: DataFrame = field(compare=False)

    @property
    def facts(self) -> Record:
        """All of it, JSON-able."""
        return {**vars(self), "parts": self.parts.to_dict("records")}

    def text(self, k: int = 10) -> str:
        """In lines: the margin, and the `k` parts that speak most for the label and the `k` most against it."""
        t, shown = self.entry, strongest(self.parts, "score", k)
        head = f"entry {t}: {self.predicted[t]}, not {self.rival[t]}: margin {self.margin:.4f}"
        left = len(self.parts) - len(shown)
        rest = [f"{left} more: {self.margin - shown['score'].sum():+.4f}"] if left else []
        return "\n".join([head, shown.to_string(index=False, float_format="{:+.4f}".format), *rest])

    def __str__(self) -> str:
        return self.text()


@driver
def rival_driver(fingerprint: str) -> Kernel:
    """`rival(P, w, i, entry, given, classes, y, z)`: y <- decoded labels of block i, z <- the best that differ at `entry`.

    With `given` >= 0, z has that label there. Local coordinates begin with `classes` scores of labels for each entry.
    """

    @njit(cache=True, **JIT)
    def rival(P, w, i, entry, given, classes, y, z):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch, theta = P.scratch(), np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
        P.scores(i, w, theta)
        P.decode(i, theta, y, scratch)
        for k in range(classes):
            if k == y[entry] if given < 0 else k != given:
                theta[entry * classes + k] = EXCLUDED
        P.decode(i, theta, z, scratch)

    return rival


def explain(
    problem: Problem, w: np.ndarray, names: NamedWeights, i: int, entry: int, rival: Label | None = None
) -> Explanation:
    """Why block i has its label at `entry`, both from 0.

    Parameters
    ----------
    problem, w
        New blocks, and the model's weights (d,).
    names : NamedWeights
        Of these weights.
    rival : str or int, optional
        The other label; None: the one whose best labelling scores most.

    Raises
    ------
    ValueError
        If there is no such block, entry or label, or w is of another problem; if the label is the predicted one, or
        constraints allow no other there.
    """
    import pandas as pd

    if not 0 <= i < problem.n:
        raise ValueError(f"there is no block {i}; expected 0 to {problem.n - 1}")
    length = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
    if not 0 <= entry < length:
        raise ValueError(f"block {i} has no entry {entry}; expected 0 to {length - 1}")
    if rival is not None and rival not in names.labels:
        raise ValueError(f"there is no label {rival!r}; known: {', '.join(map(str, names.labels))}")
    if w.shape != (problem.d,):
        raise ValueError(f"weights have shape {w.shape}, expected ({problem.d},) for this problem")
    y, z = np.empty((2, length), problem.truth.dtype)
    given = -1 if rival is None else names.labels.index(rival)
    rival_driver(problem)(problem, frozen(w), i, entry, given, problem.labels, y, z)
    if given == y[entry]:
        raise ValueError(f"block {i}, entry {entry}: {rival!r} is the predicted label; expected another one")
    breaks = optional_of(problem, "forbidden")
    if breaks is not None and breaks(np.array([i]), z, np.array([0, length])).any():
        which = "no other label" if rival is None else f"no {rival!r}"
        raise ValueError(f"block {i}, entry {entry}: the constraints allow {which} there")
    parts = pd.DataFrame(_parts(problem, names, i, y.tolist(), z.tolist()), columns=COLUMNS)
    parts = parts.sort_values("score", ascending=False, kind="stable", ignore_index=True)
    predicted, other = ([names.labels[k] for k in row.tolist()] for row in (y, z))
    return Explanation(entry, predicted, other, float(parts["score"].sum()), parts)


def _parts(
    problem: Problem, names: NamedWeights, i: int, y: list[int], z: list[int]
) -> Iterator[tuple[int, str, Label, Label, float]]:
    """All parts that are not 0, token by token."""
    labels, pairs = names.labels, names.pairs
    for t, (a, b) in enumerate(zip(y, z, strict=True)):
        if a != b:
            ids, values = _row(problem, i, t)
            scores = values * (names.emissions[ids, a] - names.emissions[ids, b])
            for k, score in zip(ids.tolist(), scores.tolist(), strict=True):
                if score != 0.0:
                    yield t, names.attributes[k], labels[a], labels[b], score
    for t, (two, other) in enumerate(zip(pairwise(y), pairwise(z), strict=True), 1):
        score = float(pairs[two] - pairs[other])
        if score != 0.0:
            said = ", not ".join(f"{labels[a]} → {labels[b]}" for a, b in (two, other))
            yield t, said, labels[two[1]], labels[other[1]], score


def _row(problem: Problem, i: int, entry: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the features of an entry that are not 0, and their values."""
    if isinstance(problem, Multiclass) and isinstance(problem.rows, Dense):
        x = problem.rows.x[i]
        ids = np.flatnonzero(x)
        return ids, np.asarray(x[ids], np.float64)
    if isinstance(problem, Multiclass):
        assert isinstance(problem.rows, Csr)
        own = slice(*problem.rows.ptr[i : i + 2].tolist())
        return np.asarray(problem.rows.ids[own], np.int64), np.asarray(problem.rows.values[own], np.float64)
    assert isinstance(problem, Chain)
    first, end = problem.label_ptr[i : i + 2].tolist()
    return problem.tokens.row(i, first, end - first, entry)
