"""Exact passes of the audit, in which the max-oracle's answers are compared with other labellings.

A hinge rests on the max-oracle's word that no labelling is worth more, where labelling y of block i is worth
L_i(y) + <theta_i, m_i(y)>. Nothing but enumeration proves that, but one labelling that is worth more disproves it. So each
answer is compared with labellings that are at hand without a further call: the truth; at breakpoints the decoded labelling
and those of the stored dual point; and where a structure allows any row of labels, the truth of one of the next blocks and
the block's own truth with one entry changed.

Where the oracle is approximate and bounded, hinges rest on the structure's bounds instead, computed here by a call of their
own and as tight as the structure can make them; no labelling may be worth more than the bound, the oracle's answer
included. Where it is only an estimate, nothing is certified and nothing refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from numba import njit

from gapwise.stages.problems.capabilities import ESTIMATE, UPPER_BOUNDED, certainty_of, optional_of
from gapwise.stages.problems.compiled import driver, inner
from gapwise.stages.problems.moves import max_bound
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import JIT, PLAIN, Bounded, Problem, frozen, max_local_size
from gapwise.stages.problems.simd import one_type

ROUNDING = 1e-6
"""Share of the terms of two values by which the oracle's may fall behind: oracles may sum in float32."""

FOLLOWING = 8
"""Number of following blocks among which one of the same length is looked for."""

NOTHING, TRUTH, DECODED, NEIGHBOUR, CHANGED, STORED, ANSWER = range(7)
"""Which labelling is worth more than the oracle's answer, or than the bound."""

NAMES = (
    "nothing",
    "the true labelling",
    "the decoded labelling",
    "the true labelling of another block",
    "the true labelling with one entry changed",
    "a labelling of the stored dual point",
    "the max-oracle's own answer",
)

PROVEN = 1e-9
"""Share of the terms of a value by which a bound may exceed the oracle's answer that is taken for a maximiser."""


class OracleError(ValueError):
    """A max-oracle whose answer is not the maximum, or a bound that is none; says which block and labelling show it."""


class Answers(NamedTuple):
    """What the max-oracle found for some blocks at a fixed w; arrays over these blocks."""

    most: np.ndarray
    """float64: max_y L_i(y) + <theta_i, m_i(y)>, or the bound on it"""
    hinges: np.ndarray
    """float64: the same less the truth's"""
    labels: np.ndarray
    """truth's dtype, flat: the answers"""
    rival: np.ndarray
    """int8: the code of a labelling that is worth more, NOTHING if none is known"""
    worth: np.ndarray
    """float64: what that labelling is worth"""
    reached: np.ndarray
    """float64: what the answers are worth; `most` itself unless there is a bound"""

    @property
    def proven(self) -> np.ndarray:
        """bool: whether the answer attains the bound, up to rounding, and so is a maximiser."""
        size = np.abs(self.most) + np.abs(self.reached) + np.abs(self.most - self.hinges)
        return self.most - self.reached <= PROVEN * size

    @property
    def slack(self) -> float:
        """Sum over the blocks of what the bounds add to the answers' values."""
        return math.fsum(self.most - self.reached)

    @property
    def least_hinges(self) -> np.ndarray:
        """float64: lower estimates of the hinges, from the answers and the truth; the hinges where the oracle is exact."""
        return self.hinges if self.reached is self.most else np.maximum(self.hinges - (self.most - self.reached), 0.0)


@inner(**JIT)
def _terms(P, i, theta, y):
    """L_i(y) and the sum of |theta_j m_ij(y)|: the size of the numbers that y's value is summed from."""
    m = np.zeros(theta.size)
    P.add(i, y, 1.0, m)
    total = abs(P.loss(i, y))
    for j in range(theta.size):
        total += abs(theta[j] * m[j])
    return total


@inner(**PLAIN)
def _note(P, i, theta, y, most, z, value, code, rival, worth, k):
    """Note in entry k that labelling z is worth more than the oracle's answer y, if it is, by more than rounding."""
    if not value > most or rival[k] != NOTHING:
        return
    if value - most > ROUNDING * (_terms(P, i, theta, y) + _terms(P, i, theta, z)):
        rival[k] = code
        worth[k] = value


@inner(**PLAIN)
def _rival(P, i, code, theta, values, z, scratch):
    """z <- the labelling of this code for block i; returns whether there is one."""
    first, last = P.label_ptr[i], P.label_ptr[i + 1]
    if code == DECODED:
        P.decode(i, theta, z, scratch)
        return True
    source = first
    if code == NEIGHBOUR:
        source, j, n = -1, i, P.label_ptr.size - 1
        for _ in range(1, min(n, FOLLOWING + 1)):
            j = j + 1 if j + 1 < n else 0
            if P.label_ptr[j + 1] - P.label_ptr[j] == last - first:
                source = P.label_ptr[j]
                break
        if source < 0:
            return False
    for t in range(z.size):
        z[t] = P.truth[source + t]
    if code == CHANGED:
        z[i % z.size] = (np.int64(z[i % z.size]) + 1) % values
    return True


@inner(**PLAIN)
def _compare_at_hand(P, i, theta, y, most, z, decode, values, scratch, rival, worth, k):
    """`_note` with the labellings that are at hand; z is workspace."""
    for code in range(TRUTH, STORED):
        if (code == DECODED and not decode) or (code > DECODED and values == 0):
            continue
        if _rival(P, i, code, theta, values, z, scratch):
            _note(P, i, theta, y, most, z, P.loss(i, z) + P.value(i, theta, z), code, rival, worth, k)


@inner(**PLAIN)
def _largest(P, blocks):
    """Local coordinates and entries of a labelling, of the largest of some blocks: allocated for each, workspace would take
    longer than what is computed in it."""
    width = length = 0
    for i in blocks:
        width = max(width, P.local_ptr[i + 1] - P.local_ptr[i])
        length = max(length, P.label_ptr[i + 1] - P.label_ptr[i])
    return width, length


@driver
def answers_driver(fingerprint: str) -> Callable[..., None]:
    """`answers(P, w, blocks, bounded, decode, values, labels, most, hinges, rival, worth, reached)`: a call for each block.

    `decode`: also compare with the decoded labellings. `values`: labels that an entry can take if the structure is
    unconstrained, 0 otherwise. reached: what the answers are worth; most: the same, or if `bounded` the bounds of another
    call. Deliberately not the solver's code.
    """

    @njit(cache=True, **JIT)
    def answers(P, w, blocks, bounded, decode, values, labels, most, hinges, rival, worth, reached):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch, end, (width, length) = P.scratch(), 0, _largest(P, blocks)
        theta_all, z_all = np.empty(width), np.empty(length, P.truth.dtype)
        for k in range(blocks.size):
            i = blocks[k]
            theta = theta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
            truth = one_type(P.truth[P.label_ptr[i] : P.label_ptr[i + 1]])
            start, end = end, end + truth.size
            y, z = labels[start:end], z_all[: truth.size]
            P.scores(i, w, theta)
            P.max_oracle(i, theta, y, scratch)
            reached[k] = P.loss(i, y) + P.value(i, theta, y)
            rival[k] = NOTHING
            most[k] = reached[k]
            if bounded:
                most[k] = max_bound(P, i, theta, y, scratch)
                _note(P, i, theta, y, most[k], y, reached[k], ANSWER, rival, worth, k)
            hinges[k] = most[k] - P.value(i, theta, truth)
            _compare_at_hand(P, i, theta, y, most[k], z, decode, values, scratch, rival, worth, k)

    return answers


@driver
def stored_driver(fingerprint: str) -> Callable[..., None]:
    """`stored(P, w, offset, alpha, label, label_offset, compared, answer, most, rival, worth, inside, work, start, stop)`:
    for blocks start to stop - 1, inside_i <- <theta_i, mu_i> of a dual point; if `compared`, also look whether one of its
    labellings is worth more than the answer.

    answer (flat like truth) and most (n,) are the oracle's at w. work (largest p_i,) is workspace.
    """

    @njit(cache=True, **JIT)
    def stored(
        P, w, offset, alpha, label, label_offset, compared, answer, most, rival, worth, inside, work, start, stop
    ):
        fingerprint  # noqa: B018
        w, label, answer = one_type(w), one_type(label), one_type(answer)
        for i in range(start, stop):
            lo, hi = P.local_ptr[i], P.local_ptr[i + 1]
            theta = work[: hi - lo]
            P.scores(i, w, theta)
            y, total = answer[P.label_ptr[i] : P.label_ptr[i + 1]], 0.0
            for a in range(offset[i], offset[i + 1]):
                z = label[label_offset[a] : label_offset[a + 1]]
                value = P.value(i, theta, z)
                total += alpha[a] * value
                if compared:
                    _note(P, i, theta, y, most[i], z, P.loss(i, z) + value, STORED, rival, worth, i)
            inside[i] = total

    return stored


def answers(problem: Problem, w: np.ndarray, blocks: np.ndarray, *, decode: bool) -> Answers:
    """The oracle's answers for `blocks` at w (d,), one call each, compared with the decoded labellings if asked."""
    P, size = problem, blocks.size
    labels = np.empty(int(np.sum(P.label_ptr[blocks + 1] - P.label_ptr[blocks])), P.truth.dtype)
    most, reached, bounded = np.empty(size), np.empty(size), certainty_of(P) == UPPER_BOUNDED
    hinges, rival, worth = np.empty(size), np.zeros(size, np.int8), np.full(size, math.nan)
    tight = cast(Bounded, P).tightened() if bounded else P
    values = P.labels if optional_of(P, "unconstrained") else 0
    answers_driver(P)(
        tight, frozen(w), frozen(blocks), bounded, decode, values, labels, most, hinges, rival, worth, reached
    )
    return Answers(most, hinges, labels, rival, worth, reached if bounded else most)


def exact_pass(problem: Problem, w: np.ndarray, spread: Spread = HERE, *, decode: bool) -> Answers:
    """The answers of all blocks at w (d,); OracleError if one is not the maximum, or a bound is none.

    Without a bound on an approximate oracle, `most` and `hinges` are the largest values at hand.
    """
    parts = spread.blocks(partial(answers, decode=decode), problem, w, range(problem.n))
    answered = Answers(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    certainty = certainty_of(problem)
    if certainty == ESTIMATE:
        truth = answered.most - answered.hinges
        most = np.fmax(np.fmax(answered.most, truth), answered.worth)
        return answered._replace(most=most, hinges=most - truth, reached=most)
    refuse_beaten(answered, certainty)
    return answered if certainty == UPPER_BOUNDED else answered._replace(reached=answered.most)


def compare_stored(
    problem: Problem,
    w: np.ndarray,
    answered: Answers,
    supports: tuple[np.ndarray, ...],
    spread: Spread = HERE,
) -> np.ndarray:
    """float64, (n,): <theta_i, mu_i> at w (d,) of a dual point; OracleError if one of its labellings is worth more than an
    answer.

    `supports` are offset, alpha, label and label_offset as in path.zarr.
    """
    certainty, inside = certainty_of(problem), np.empty(problem.n)
    of_answers = answered.labels, answered.most, answered.rival, answered.worth
    rest = (certainty != ESTIMATE, *of_answers, inside, np.empty(max_local_size(problem)))
    run = stored_driver(problem)
    spread.in_order(lambda start, stop: run(problem, frozen(w), *supports, *rest, start, stop), problem)
    if certainty != ESTIMATE:
        refuse_beaten(answered, certainty)
    return inside


def refuse_beaten(answered: Answers, certainty: str) -> None:
    """OracleError for the first block whose answer, or bound, is beaten or no number."""
    beaten = answered.rival != NOTHING
    if certainty == UPPER_BOUNDED:
        beaten = beaten | np.isnan(answered.most)
    if not beaten.any():
        return
    i = int(np.argmax(beaten))
    name, most, worth = NAMES[answered.rival[i]], answered.most[i], answered.worth[i]
    if certainty == UPPER_BOUNDED:
        known = answered.rival[i] != NOTHING
        shown = f"{name} is worth {worth:.9g} (loss included)" if known else "it is not a number"
        raise OracleError(
            f"block {i}: the bound on the maximum is {most:.9g}, but {shown}, so it is no bound; check max_bound, value "
            "and loss of this structure"
        )
    raise OracleError(
        f"block {i}: the max-oracle's answer is worth {most:.9g} (loss included), {name} {worth:.9g}, so the answer is not "
        "the maximum; check max_oracle, decode, value and loss of this structure"
    )
