"""Methods that a structure may have, and what serves where it has none: moves between two labellings, inner products.

A pairwise step moves along m_i(y) - m_i(z), which touches few local coordinates where y and z agree. A structure may define
methods with the names below (`self` in place of P); where it does not, the functions use `add`, `norm2`, `push` and
`scores`. Both ways must agree up to rounding, which tests/problems/test_contract.py checks.

A structure over kernels has weights in a space of any dimension and represents them by other numbers
(`stages.problems.multiclass.kernel`). It has a method ``inner(a, b)``, which whatever needs ||w||^2 goes through.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numba.extending import overload

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.compiled import LINKED
from gapwise.stages.problems.kernel_cache import Kernel
from gapwise.stages.problems.protocol import PLAIN, Problem, dot, own_function


def optional(*, instead: str = "") -> Callable[[Kernel], Kernel]:
    """Decorate a default: the result calls the structure's method of that name, else its method `instead`, else the default.

    It does so compiled or not.
    """

    def decorate(default: Kernel) -> Kernel:
        name = default.__name__

        def method_of(structure: type) -> Kernel:
            other: Kernel = getattr(structure, instead, default) if instead else default
            method: Kernel = getattr(structure, name, other)
            return method

        @functools.wraps(default)
        def call(P, *arguments):
            return method_of(type(P))(P, *arguments)

        register: Kernel = overload  # its stub lacks jit_options
        register(call, jit_options={**PLAIN, **LINKED}, strict=False)(own_function(default, method_of))
        return call

    return decorate


@optional()
def pair_norm2(P, i, y, z, delta):
    """||B_i (m_i(y) - m_i(z))||^2; delta (p_i,) is workspace."""
    delta[:] = 0.0
    P.add(i, y, 1.0, delta)
    P.add(i, z, -1.0, delta)
    return P.norm2(i, delta)


@optional()
def pair_move(P, i, c, y, z, delta, w):
    """w += c B_i (m_i(y) - m_i(z)); delta (p_i,) is workspace."""
    delta[:] = 0.0
    P.add(i, y, 1.0, delta)
    P.add(i, z, -1.0, delta)
    P.push(i, c, delta, w)


@optional()
def touch(P, i, stage):
    """Fetch what a step on block i will read of the structure's own arrays (`stages.problems.simd`); changes nothing.

    Called with stage 0, 1, 2 some visits before: 0 for what is found by i alone, 1 for what that points to, 2 for the rest
    of what scores and pushes read; and with 3, after 0, for what only the oracle and norms read. Visits that compare cached
    labellings by their distances leave out 3.
    """


@optional()
def score_labels(P, i, w, labels, slots, theta, scores):
    """scores[k] <- <B_i^T w, m_i(y_k)> for the labellings y_k = labels[slots[k]]; theta (p_i,) is workspace.

    Terms common to all may be left out or replaced by a constant: only differences of `scores` matter.
    """
    P.scores(i, w, theta)
    length = P.label_ptr[i + 1] - P.label_ptr[i]
    for k in range(slots.size):
        scores[k] = P.value(i, theta, labels[slots[k], :length])


@optional()
def max_bound(P, i, theta, y, scratch):
    """`protocol.Bounded.max_bound`; inf of a structure without bounds."""
    return np.inf


@optional()
def inner(P, a, b):
    """<a, b> of two weight vectors (d,) in compiled code."""
    return dot(a, b)


def own_metric(problem: object) -> bool:
    """Whether the structure represents weight vectors by other numbers than the weights."""
    return optional_of(problem, "inner") is not None


def norm2_of(problem: Problem, w: np.ndarray) -> float:
    """||w||^2; summed pairwise where numbers are weights: the same bits wherever the array is in memory, which BLAS does not
    promise."""
    if own_metric(problem):
        return max(float(inner(problem, w, w)), 0.0)
    return float(np.sum(w * w))


def product_of(problem: Problem, a: np.ndarray, b: np.ndarray) -> float:
    """<a, b> of two weight vectors."""
    return float(inner(problem, a, b)) if own_metric(problem) else float(np.sum(a * b))
