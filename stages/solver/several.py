"""Several labellings from one max-oracle call, for blocks at a fixed w: the vertices, and those that go into the cache only.

The first answer of `max_oracles` is that of `max_oracle`, to the bit, and alone gives hinge, gap and certificate. The others
become atoms without weight. They are labellings that w violates nearly as much, hence those that an exact pass near w
would return next; passes over the cache then need no oracle to find them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.certainty import UPPER_BOUNDED, certainty_of
from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.one_type import one_type
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import JIT, PLAIN, Problem, frozen, max_label_length
from gapwise.stages.solver.oracles import ROUNDING, Vertices, check_vertices, widest_of


class Listed(NamedTuple):
    """What the max-oracle returned for some blocks besides the vertices; no certificate reads it.

    (`loss` and `label` are taken: numba gives every named tuple the methods of a problem.)
    """

    labels: np.ndarray
    """truth's dtype, (blocks, m - 1, longest)"""
    losses: np.ndarray
    """float64, (blocks, m - 1)"""
    counts: np.ndarray
    """int64, (blocks,): how many there are"""
    most: np.ndarray
    """float64, (blocks,): the largest L_i(y) + <theta_i, m_i(y)> among them; -inf without any"""

    @classmethod
    def empty(cls, problem: Problem, size: int, m: int) -> Listed:
        """Room for the answers of `size` blocks, m each with the vertex."""
        label = np.zeros((size, m - 1, max_label_length(problem)), problem.truth.dtype)
        return cls(label, np.zeros((size, m - 1)), np.zeros(size, np.int64), np.empty(size))


@inner(**PLAIN)
def several_block(P, w, m, i, k, theta_all, rows_all, losses, scratch, h, hinge, loss, vertex, listed):
    """Compute entry k of the driver's results, for block i."""
    theta = theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
    P.scores(i, w, theta)
    first, last = P.label_ptr[i], P.label_ptr[i + 1]
    size = last - first
    rows = rows_all[: m * size].reshape((m, size))
    count = P.max_oracles(i, theta, m, rows, losses, scratch)
    for t in range(size):
        vertex[k, t] = rows[0, t]
    loss[k] = losses[0]
    h[k] = loss[k] + P.value(i, theta, rows[0])
    hinge[k] = h[k] - P.value(i, theta, one_type(P.truth[first:last]))
    listed.counts[k], listed.most[k] = count - 1, -np.inf
    for j in range(1, count):
        listed.losses[k, j - 1] = losses[j]
        listed.most[k] = max(listed.most[k], losses[j] + P.value(i, theta, rows[j]))
        for t in range(size):
            listed.labels[k, j - 1, t] = rows[j, t]


@driver
def several_driver(fingerprint: str) -> Callable[..., None]:
    """`several(P, w, m, blocks, h, hinge, loss, vertex, listed)`: entry k of the results is for blocks[k]."""

    @njit(cache=True, **JIT)
    def several(P, w, m, blocks, h, hinge, loss, vertex, listed):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch = P.max_oracles_scratch(m)
        theta_all, losses = np.empty(widest_of(P, blocks)), np.empty(m)
        rows_all = np.empty(m * vertex.shape[1], vertex.dtype)
        for k in range(blocks.size):
            several_block(P, w, m, blocks[k], k, theta_all, rows_all, losses, scratch, h, hinge, loss, vertex, listed)

    return several


@driver
def several_bounded_driver(fingerprint: str) -> Callable[..., None]:
    """`several(P, w, m, blocks, h, hinge, loss, vertex, listed, bound)`: also the bounds on the maxima."""

    @njit(cache=True, **JIT)
    def several(P, w, m, blocks, h, hinge, loss, vertex, listed, bound):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch = P.max_oracles_scratch(m)
        theta_all, losses = np.empty(widest_of(P, blocks)), np.empty(m)
        rows_all = np.empty(m * vertex.shape[1], vertex.dtype)
        for k in range(blocks.size):
            i = blocks[k]
            several_block(P, w, m, i, k, theta_all, rows_all, losses, scratch, h, hinge, loss, vertex, listed)
            theta = theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
            bound[k] = P.max_bound(i, theta, vertex[k, : P.label_ptr[i + 1] - P.label_ptr[i]], scratch)

    return several


def call_several(problem: Problem, w: np.ndarray, blocks: np.ndarray, *, m: int) -> tuple[Vertices, Listed]:
    """One oracle call for each of `blocks` at w (d,), which returns up to m labellings: a `BlockFunction`, given m."""
    answers, listed = Vertices.empty(problem, blocks.size), Listed.empty(problem, blocks.size, m)
    certainty = certainty_of(problem)
    arguments = problem, frozen(w), m, blocks, answers.h, answers.hinge, answers.loss, answers.vertex, listed
    if certainty == UPPER_BOUNDED:
        several_bounded_driver(problem)(*arguments, answers.bound)
    else:
        several_driver(problem)(*arguments)
    check_listed(answers, listed, blocks)
    check_vertices(answers, blocks, certainty)
    return answers, listed


def check_listed(answers: Vertices, listed: Listed, blocks: np.ndarray) -> None:
    """Raise ValueError, naming the block, if a further labelling is worth more than the vertex."""
    more = listed.most - answers.h
    wrong = more > ROUNDING * (np.abs(answers.loss) + np.abs(answers.h) + np.abs(listed.most))
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(
            f"max_oracles: block {blocks[k]}: one of its further labellings scores {more[k]:.3g} above the first (loss "
            "included); the first has to be the best. Check max_oracles, value and loss of this structure."
        )


def several_at(
    problem: Problem, w: np.ndarray, blocks: range | np.ndarray, m: int, spread: Spread = HERE
) -> tuple[Vertices, Listed]:
    """Up to m labellings for each of `blocks` at the same w (d,), wherever `spread` says, in the order of `blocks`."""
    if len(blocks) == 0:
        return Vertices.empty(problem, 0), Listed.empty(problem, 0, m)
    parts = spread.blocks(partial(call_several, m=m), problem, w, blocks)
    answers = Vertices(*(np.concatenate(column) for column in zip(*(part[0] for part in parts), strict=True)))
    listed = Listed(*(np.concatenate(column) for column in zip(*(part[1] for part in parts), strict=True)))
    return answers if certainty_of(problem) == UPPER_BOUNDED else answers._replace(bound=answers.h), listed


def load_several(problem: Problem, m: int) -> None:
    """Compile or load what `several_at` calls."""
    call_several(problem, np.empty(0), np.empty(0, np.int64), m=m)
