"""How sure a prediction is: the margin of each predicted label, and the n best labellings of a block.

The margin of an entry is the score of the predicted labelling less that of the best labelling with another label there. The
least margin of a block is the gap to its second-best labelling. Scores are max-marginals (`problems.protocol.Scored`), so
margins are exact where the structure's are; structures without them are refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems import capabilities, structures
from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.kernel_cache import Kernel
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import JIT, Problem, frozen
from gapwise.stages.problems.simd import one_type


class Scores(NamedTuple):
    """Decoded labels with their margins.

    Attributes
    ----------
    labels : array, (entries,)
        Flat, as `stages.model.predict` gives them.
    margins : float64 array, (entries,)
        >= 0, in units of the score; infinite where no other label is possible. Weights of blocks do not count.
    table : float64 array, (entries, labels)
        Max-marginals: the score of the best labelling with each label at each entry; -inf where there is none. Without rows
        if they were not asked for.
    """

    labels: np.ndarray
    margins: np.ndarray
    table: np.ndarray


@dataclass(frozen=True)
class NBest:
    """The n best labellings of each block, as many as there are.

    Attributes
    ----------
    n : int
        Most labellings of a block.
    labels : array, (n * label_ptr[-1],)
        Flat: block i has n rows from ``n * label_ptr[i]`` on.
    scores : float64 array, (blocks, n)
        Falling; beyond the last labelling -inf.
    label_ptr : int64 array, (blocks + 1,)
    """

    n: int
    labels: np.ndarray
    scores: np.ndarray
    label_ptr: np.ndarray

    def __getitem__(self, i: int) -> np.ndarray:
        """(ranks, entries): the labellings of block i, the best first."""
        rows = self.labels[self.n * self.label_ptr[i] : self.n * self.label_ptr[i + 1]].reshape(self.n, -1)
        return np.asarray(rows[: self.count(i)])

    def count(self, i: int) -> int:
        """How many labellings block i has here."""
        return int(np.count_nonzero(self.scores[i] > -np.inf))

    def rank(self, r: int) -> np.ndarray:
        """Flat labels of all blocks: the labelling of rank r, from 0; of a block with fewer its best one."""
        rows = [self[i][r if r < self.count(i) else 0] for i in range(len(self.scores))]
        return np.concatenate(rows) if rows else self.labels[:0]


def refuse_without_margins(structure: str) -> None:
    """Raise ValueError, naming those that have some, unless a structure has margins."""
    if not capabilities(structure).margins:
        others = ", ".join(name for name in structures() if capabilities(name).margins)
        raise ValueError(
            f"margins: the structure {structure} has none, for it does not know what the best other labelling is worth; "
            f"these have: {others}"
        )


def refuse_without_lists(structure: str, n: int) -> None:
    """Raise ValueError unless a structure can list its n best labellings, and n is a number of them."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n_best: expected a whole number >= 1, got {n!r}")
    if not capabilities(structure).n_best:
        others = ", ".join(name for name in structures() if capabilities(name).n_best)
        raise ValueError(f"n_best: the structure {structure} lists no labellings but its best; these do: {others}")


@driver
def scores_driver(fingerprint: str) -> Kernel:
    """`scored(P, w, blocks, classes, labels, margins, table)`: decoded labels of `blocks`, flat, and their `Scores`."""

    @njit(cache=True, **JIT)
    def scored(P, w, blocks, classes, labels, margins, table):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch, end, longest = P.ranked_scratch(1), 0, 0
        for k in range(blocks.size):
            longest = max(longest, P.label_ptr[blocks[k] + 1] - P.label_ptr[blocks[k]])
        own = np.empty((longest, classes))
        for k in range(blocks.size):
            i = blocks[k]
            theta = np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
            P.scores(i, w, theta)
            start, end = end, end + P.label_ptr[i + 1] - P.label_ptr[i]
            y = labels[start:end]
            out = table[start:end] if table.shape[0] > 0 else own[: end - start]
            P.max_marginals(i, theta, y, out, scratch)
            for t in range(end - start):
                here, other = np.int64(y[t]), -np.inf
                for label in range(classes):
                    if label != here:
                        other = max(other, out[t, label])
                margins[start + t] = max(out[t, here] - other, 0.0)

    return scored


@driver
def n_best_driver(fingerprint: str) -> Kernel:
    """`listed(P, w, blocks, n, labels, scores)`: the n best labellings of `blocks`, as `NBest` holds them."""

    @njit(cache=True, **JIT)
    def listed(P, w, blocks, n, labels, scores):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch, end = P.ranked_scratch(n), 0
        for k in range(blocks.size):
            i = blocks[k]
            theta = np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
            P.scores(i, w, theta)
            length = P.label_ptr[i + 1] - P.label_ptr[i]
            start, end = end, end + n * length
            rows = labels[start:end].reshape((n, length))
            count = P.n_best(i, theta, n, rows, scores[k], scratch)
            for r in range(count, n):
                scores[k, r] = -np.inf
                for t in range(length):
                    rows[r, t] = 0

    return listed


def _entries(problem: Problem, blocks: np.ndarray) -> int:
    return int(np.sum(problem.label_ptr[blocks + 1] - problem.label_ptr[blocks]))


def _scored(problem: Problem, w: np.ndarray, blocks: np.ndarray, with_table: bool) -> Scores:
    size, classes = _entries(problem, blocks), problem.labels
    scored = Scores(np.empty(size, problem.truth.dtype), np.empty(size), np.empty((size if with_table else 0, classes)))
    scores_driver(problem)(problem, frozen(w), blocks, classes, *scored)
    weight = optional_of(problem, "block_weight")
    if weight is not None and (weight[blocks] != 1.0).any():
        by_entry = np.repeat(weight[blocks], problem.label_ptr[blocks + 1] - problem.label_ptr[blocks])
        return scored._replace(
            margins=scored.margins / by_entry, table=scored.table / by_entry[: len(scored.table), None]
        )
    return scored


def _listed(problem: Problem, w: np.ndarray, blocks: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    labels, scores = np.empty(n * _entries(problem, blocks), problem.truth.dtype), np.empty((blocks.size, n))
    n_best_driver(problem)(problem, frozen(w), blocks, n, labels, scores)
    return labels, scores


def scores_of(problem: Problem, w: np.ndarray, spread: Spread = HERE, *, table: bool = False) -> Scores:
    """Decoded labels, margins and, if asked for, max-marginals of all blocks at weights w (d,)."""
    parts = spread.blocks(partial(_scored, with_table=table), problem, w, range(problem.n))
    return Scores(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def n_best_of(problem: Problem, w: np.ndarray, n: int, spread: Spread = HERE) -> NBest:
    """The n best labellings of all blocks at weights w (d,), without the loss."""
    parts = spread.blocks(partial(_listed, n=n), problem, w, range(problem.n))
    labels, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return NBest(n, labels, scores, problem.label_ptr)
