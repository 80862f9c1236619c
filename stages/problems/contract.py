"""The contract of every structure (`protocol.Problem`), as checks of one block against given labellings.

Tests give all labellings of tiny instances; ``gapwise check`` gives samples of a user's own structure. Each check raises a
`ContractError` that names method and block and says what came and what was expected. Methods are called as plain Python,
with work arrays full of junk, because nothing may depend on what these held.

B_i is never formed: `scores`, `push` and `norm2` belong together if for random w, c and delta

    <B_i^T w, delta> = <w, B_i delta>   and   ||B_i delta||^2 = <B_i delta, B_i delta>.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from gapwise.stages.problems.capabilities import EXACT, UPPER_BOUNDED, certainty_of, lists_several, optional_of
from gapwise.stages.problems.moves import pair_move, pair_norm2, score_labels
from gapwise.stages.problems.protocol import Listing, Problem, Ranked, Scored, Scratch, frozen

ROUNDING = 1e-6
"""Share of the size of its terms by which a number may be off: features may be float32."""
JUNK = 1e9
"""What work arrays hold before a call."""


class ContractError(ValueError):
    """A structure that does not keep its promise; names method and block."""


def checked_shapes(problem: Problem) -> None:
    """Raise ContractError unless sizes, offsets, truths and bounds are what `protocol.Problem` says."""
    P, name = problem, type(problem).__name__
    for attribute in ("local_ptr", "label_ptr"):
        ptr = getattr(P, attribute)
        if ptr.dtype != np.int64 or ptr.shape != (P.n + 1,) or ptr[0] != 0 or (np.diff(ptr) < 0).any():
            got = f"{ptr.dtype} of shape {ptr.shape}"
            raise ContractError(f"{name}.{attribute}: expected int64 offsets from 0, shape ({P.n + 1},), got {got}")
    if P.truth.dtype not in (np.uint8, np.int16) or P.truth.shape != (P.label_ptr[-1],):
        got = f"{P.truth.dtype} of shape {P.truth.shape}"
        raise ContractError(f"{name}.truth: expected uint8 or int16, shape ({P.label_ptr[-1]},), got {got}")
    if P.truth.size and not 0 <= P.truth.min() <= P.truth.max() < P.labels:
        raise ContractError(f"{name}.truth: expected entries 0, ..., {P.labels - 1}, got one of {P.truth.max()}")
    cost = optional_of(P, "oracle_cost")
    if not (isinstance(cost, int | float) and 0.0 < cost < math.inf):
        raise ContractError(f"{name}.oracle_cost: expected a finite number > 0, got {cost!r}")
    if P.lower.shape != P.upper.shape or P.lower.shape not in ((0,), (P.d,)) or (P.lower > P.upper).any():
        got = f"{P.lower.shape} and {P.upper.shape}"
        raise ContractError(f"{name}.lower, upper: expected lower <= upper, shapes ({P.d},) or (0,), got {got}")


def losses_are_sound(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """Task loss 0 at the truth, finite and >= 0 elsewhere, and nowhere else below `least_loss`."""
    truth = truth_of(P, i)
    least = P.least_loss(i)
    if not least >= 0.0:
        raise ContractError(f"{_where(P, 'least_loss', i)}: must be >= 0, is {least:g}")
    for y in [truth, *labellings]:
        loss, same = P.loss(i, y), np.array_equal(y, truth)
        if same and loss != 0.0:
            raise ContractError(f"{_where(P, 'loss', i)}: the loss of the truth must be 0, is {loss:g}")
        if not 0.0 <= loss < math.inf:
            raise ContractError(f"{_where(P, 'loss', i)}: must be finite and >= 0, is {loss:g} for {y.tolist()}")
        if loss == 0.0:  # rows that say what the truth says are the truth
            same = same or np.array_equal(local(P, i, y), local(P, i, truth))
        if not same and loss < least * (1.0 - ROUNDING):
            raise ContractError(
                f"{_where(P, 'least_loss', i)}: {least:g} is no lower bound, the loss of {y.tolist()} is {loss:g}"
            )


def features_are_linear(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """`scores`, `push` and `norm2` are B_i^T, B_i and its norm; `value` and `add` know the same m_i(y)."""
    p = size(P, i)
    for _ in range(4):
        w, delta, c = rng.normal(size=P.d), rng.normal(size=p), float(rng.normal())
        theta, pushed, moved = _theta(P, i, w), np.zeros(P.d), w.copy()
        P.push(i, 1.0, delta, pushed)
        P.push(i, c, delta, moved)
        _same(P, "scores, push", i, float(theta @ delta), float(w @ pushed), np.abs(theta) @ np.abs(delta))
        _same(P, "norm2", i, P.norm2(i, delta), float(pushed @ pushed), 10.0 * float(pushed @ pushed))
        _close(P, "push", i, moved, w + c * pushed)
        for y in labellings[:8]:
            m, added = local(P, i, y), delta.copy()
            _same(P, "value", i, P.value(i, theta, y), float(theta @ m), 1e-3 * (np.abs(theta) @ np.abs(m)))
            P.add(i, y, c, added)
            _close(P, "add", i, added, delta + c * m)


def oracles_are_best(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """No labelling is worth more than the answer of `max_oracle` (or than `max_bound`), or of `decode`."""
    certainty, rivals = certainty_of(P), [truth_of(P, i), *labellings]
    alike = 1.0 / (math.sqrt(norm2_of_truth(P, i)) or 1.0)  # scores are then about as large as losses
    for at, w in [("w = 0", np.zeros(P.d)), *(("a random w", draw_w(P, rng, scale)) for scale in (1.0, alike))]:
        theta, y, z = _theta(P, i, w), np.empty_like(truth_of(P, i)), np.empty_like(truth_of(P, i))
        scratch = P.scratch()
        loss = P.max_oracle(i, theta, y, scratch)
        if not abs(loss - P.loss(i, y)) <= ROUNDING * (1.0 + abs(loss)):
            raise ContractError(
                f"{_where(P, 'max_oracle', i)}: returned {loss:g}, the loss of its answer is {P.loss(i, y):g}"
            )
        most, method = loss + P.value(i, theta, y), "max_oracle"
        if certainty == UPPER_BOUNDED:
            most, method = P.max_bound(i, theta, y, scratch), "max_bound"  # type: ignore[attr-defined]
        P.decode(i, theta, z, P.scratch())
        if y.min() < 0 or max(y.max(), z.max()) >= P.labels or z.min() < 0:
            raise ContractError(f"{_where(P, 'max_oracle, decode', i)}: answers must be labels 0, ..., {P.labels - 1}")
        if certainty not in (EXACT, UPPER_BOUNDED):
            continue
        decoded, rivals = P.value(i, theta, z), [y, z, *rivals]
        for rival in rivals:
            value, terms = P.value(i, theta, rival), np.abs(theta) @ np.abs(local(P, i, rival))
            _not_more(P, method, i, P.loss(i, rival) + value, most, 1.0 + 2.0 * terms, rival, at)
            if certainty == EXACT:
                _not_more(P, "decode", i, P.value(i, theta, rival), decoded, 1.0 + 2.0 * terms, rival, at)


def answers_repeat(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """The same question gets the same answer, also from a pickled copy, and w and theta are only read."""
    w = draw_w(P, rng)
    before = w.copy()
    theta = _theta(P, i, w)
    theta_before, used = theta.copy(), P.scratch()
    answers = [_answers(P, i, theta, scratch) for scratch in (used, used, P.scratch())]
    if not (np.array_equal(w, before) and np.array_equal(theta, theta_before)):
        raise ContractError(
            f"{_where(P, 'scores, max_oracle, decode', i)}: changed w or theta, which they may only read"
        )
    if answers[1:] == answers[:-1]:
        try:
            copy = read_only(pickle.loads(pickle.dumps(P)), writeable(P))
        except Exception as error:
            raise ContractError(
                f"{type(P).__name__}: cannot be pickled, as other processes need ({type(error).__name__}: {error}); define "
                "the class at the top of a module"
            ) from error
        answers.append(_answers(copy, i, theta, copy.scratch()))
    if len(set(answers)) > 1:
        raise ContractError(
            f"{_where(P, 'max_oracle, decode', i)}: gave different answers for the same theta; certificates and resuming "
            "need the same answer to the same question"
        )


Writeable: TypeAlias = "bool | tuple[Writeable, ...]"
"""Which arrays of a problem can be written to, in the shape of the problem."""


def writeable(field: object) -> Writeable:
    """Which arrays of a problem, or of a nested tuple in it, can be written to: a tuple of its shape."""
    if isinstance(field, tuple):
        return tuple(writeable(part) for part in field)
    return isinstance(field, np.ndarray) and field.flags.writeable


def read_only(copy: Any, which: Writeable) -> Any:
    """A copy of a problem whose arrays are read-only where the problem's are, so that they are of the same compiled type.

    `which` is `writeable` of the problem.
    """
    if isinstance(copy, tuple) and isinstance(which, tuple):
        return type(copy)(*(read_only(part, of) for part, of in zip(copy, which, strict=True)))
    return frozen(copy) if isinstance(copy, np.ndarray) and not which else copy


def _answers(P: Problem, i: int, theta: np.ndarray, scratch: Scratch) -> tuple[float, bytes, bytes]:
    y, z = np.empty_like(truth_of(P, i)), np.empty_like(truth_of(P, i))
    loss = P.max_oracle(i, theta, y, scratch)
    P.decode(i, theta, z, scratch)
    return loss, y.tobytes(), z.tobytes()


def moves_agree(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """The structure's own methods of `moves` agree with `add`, `norm2`, `push` and `scores`."""
    p = size(P, i)
    for _ in range(6):
        y, z = (labellings[int(rng.integers(len(labellings)))] for _ in range(2))
        move = np.zeros(P.d)
        P.push(i, 1.0, local(P, i, y) - local(P, i, z), move)
        delta, w, c = np.full(p, JUNK), rng.normal(size=P.d), float(rng.normal())
        _same(P, "pair_norm2", i, pair_norm2(P, i, y, z, delta), float(move @ move), 10.0 * float(move @ move))
        moved = w.copy()
        pair_move(P, i, c, y, z, np.full(p, JUNK), moved)
        _close(P, "pair_move", i, moved, w + c * move)


def few_scores_agree(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """`score_labels` gives the differences of `value`."""
    rows, w = np.array(labellings), rng.normal(size=P.d)
    slots, scores = rng.integers(len(rows), size=3), np.empty(3)
    score_labels(P, i, w, rows, slots, np.full(size(P, i), JUNK), scores)
    theta = _theta(P, i, w)
    exact = np.array([theta @ local(P, i, rows[s]) for s in slots])
    terms = max(np.abs(theta) @ np.abs(local(P, i, rows[s])) for s in slots)
    for k in range(3):
        _same(P, "score_labels", i, scores[k] - scores[0], exact[k] - exact[0], terms)


def max_marginals_are_best(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """`max_marginals` answers as `decode` does, with labels of the largest number at every place; no labelling is worth more
    than the number of any of its labels.
    """
    if optional_of(P, "max_marginals") is None:
        return
    scored = cast("Scored", P)
    truth = truth_of(P, i)
    for w in (draw_w(P, rng) for _ in range(2)):
        theta, y, z = _theta(P, i, w), np.empty_like(truth), np.empty_like(truth)
        out = np.full((truth.size, P.labels), JUNK)
        scored.max_marginals(i, theta, y, out, scored.ranked_scratch(1))
        P.decode(i, theta, z, P.scratch())
        if not np.array_equal(y, z):
            raise ContractError(f"{_where(P, 'max_marginals', i)}: answers {y.tolist()}, decode {z.tolist()}")
        terms = 1.0 + 2.0 * np.abs(theta) @ np.abs(local(P, i, y))
        common = P.value(i, theta, y) - float(out[0, y[0]])  # of all labellings
        for t, label in enumerate(y.tolist()):
            _same(P, "max_marginals", i, float(out[t, label]), float(out.max()), terms)
        for rival in labellings:
            worth = float(P.value(i, theta, rival) - common)
            for t, label in enumerate(rival.tolist()):
                _not_more(P, "max_marginals", i, worth, float(out[t, label]), terms, rival)


def lists_are_best(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """`n_best` lists different labellings by falling value, `decode`'s answer first, and lacks none that is worth more."""
    if optional_of(P, "n_best") is None:
        return
    ranked, m = cast("Ranked", P), 4
    truth = truth_of(P, i)
    for w in (draw_w(P, rng) for _ in range(2)):
        theta, z = _theta(P, i, w), np.empty_like(truth)
        labels, values = np.empty((m, truth.size), truth.dtype), np.full(m, JUNK)
        count = ranked.n_best(i, theta, m, labels, values, ranked.ranked_scratch(m))
        P.decode(i, theta, z, P.scratch())
        listed = [tuple(row) for row in labels[:count].tolist()]
        if not listed or listed[0] != tuple(z.tolist()) or len({*listed}) < count:
            raise ContractError(
                f"{_where(P, 'n_best', i)}: lists {listed}; expected different ones, {z.tolist()} first"
            )
        terms = 1.0 + 2.0 * np.abs(theta) @ np.abs(local(P, i, z))
        for row, value in zip(labels, values[:count], strict=False):
            _same(P, "n_best", i, float(value), P.value(i, theta, row), terms)
        if (np.diff(values[:count]) > 0.0).any():
            raise ContractError(f"{_where(P, 'n_best', i)}: {values[:count].tolist()}; expected falling values")
        least = float(values[m - 1]) if count == m else -math.inf
        for rival in labellings:
            if tuple(rival.tolist()) not in listed:
                _not_more(P, "n_best", i, P.value(i, theta, rival), least, terms, rival)


def several_answers_are_best(P: Problem, i: int, labellings: Sequence[np.ndarray], rng: np.random.Generator) -> None:
    """`max_oracles` lists different labellings with their losses, the answer of `max_oracle` first, and none worth more."""
    if not lists_several(P):
        return
    listing, truth = cast("Listing", P), truth_of(P, i)
    for w in [np.zeros(P.d), *(draw_w(P, rng) for _ in range(2))]:
        theta, y = _theta(P, i, w), np.empty_like(truth)
        loss = P.max_oracle(i, theta, y, P.scratch())
        terms = 1.0 + 2.0 * np.abs(theta) @ np.abs(local(P, i, y))
        for m in (1, 2, 5):
            labels, losses = np.empty((m, truth.size), truth.dtype), np.full(m, JUNK)
            count = listing.max_oracles(i, theta, m, labels, losses, listing.max_oracles_scratch(m))
            listed, where = [tuple(row) for row in labels[:count].tolist()], _where(P, "max_oracles", i)
            if not 1 <= count <= m or len({*listed}) < count or listed[0] != tuple(y.tolist()):
                raise ContractError(f"{where}: lists {listed}; expected 1 to {m} different ones, {y.tolist()} first")
            for row, got in zip(labels[:count], losses, strict=False):
                if got != P.loss(i, row):
                    raise ContractError(
                        f"{where}: says {got:.17g} is the loss of {row.tolist()}, it is {P.loss(i, row):.17g}"
                    )
                _not_more(P, "max_oracles", i, got + P.value(i, theta, row), loss + P.value(i, theta, y), terms, row)


Check = Callable[[Problem, int, Sequence[np.ndarray], np.random.Generator], None]
CHECKS: dict[str, Check] = {
    "losses": losses_are_sound,
    "features": features_are_linear,
    "oracles": oracles_are_best,
    "repeatable": answers_repeat,
    "moves": moves_agree,
    "scores of few labellings": few_scores_agree,
    "max-marginals": max_marginals_are_best,
    "n best": lists_are_best,
    "several answers": several_answers_are_best,
}
"""By the name that ``gapwise check`` prints."""


def truth_of(problem: Problem, i: int) -> np.ndarray:
    """The true labelling of block i."""
    return problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]


def size(problem: Problem, i: int) -> int:
    """p_i."""
    return int(problem.local_ptr[i + 1] - problem.local_ptr[i])


def local(problem: Problem, i: int, y: np.ndarray) -> np.ndarray:
    """m_i(y), (p_i,)."""
    m = np.zeros(size(problem, i))
    problem.add(i, y, 1.0, m)
    return m


def norm2_of_truth(problem: Problem, i: int) -> float:
    """||B_i m_i(y_i)||^2."""
    return float(problem.norm2(i, local(problem, i, truth_of(problem, i))))


def draw_w(problem: Problem, rng: np.random.Generator, scale: float = 1.0) -> np.ndarray:
    """A random w in the box, (d,)."""
    w = scale * rng.normal(size=problem.d)
    return np.clip(w, problem.lower, problem.upper) if problem.lower.size else w


def sampled(problem: Problem, i: int, rng: np.random.Generator, most: int = 12) -> list[np.ndarray]:
    """Labellings of block i to compare with: the truth, answers for random w, and random rows if any row is a labelling."""
    truth = truth_of(problem, i)
    labellings = [truth.copy()]
    for w in (draw_w(problem, rng) for _ in range(3)):
        theta, y, z = _theta(problem, i, w), np.empty_like(truth), np.empty_like(truth)
        problem.max_oracle(i, theta, y, problem.scratch())
        problem.decode(i, theta, z, problem.scratch())
        labellings += [y, z]
    while optional_of(problem, "unconstrained") and truth.size and len(labellings) < most:
        near = truth.copy()
        near[rng.integers(truth.size)] = rng.integers(problem.labels)
        labellings += [near, rng.integers(problem.labels, size=truth.size).astype(truth.dtype)]
    return labellings


def _theta(P: Problem, i: int, w: np.ndarray) -> np.ndarray:
    theta = np.full(size(P, i), JUNK)
    P.scores(i, w, theta)
    return theta


def _where(P: Problem, method: str, i: int) -> str:
    return f"{getattr(P, 'name', type(P).__name__)}.{method}: block {i}"


def _same(P: Problem, method: str, i: int, got: float, expected: float, terms: float) -> None:
    if not abs(got - expected) <= ROUNDING * (1e-3 + float(terms)):
        raise ContractError(f"{_where(P, method, i)}: got {got:.9g}, expected {expected:.9g}")


def _close(P: Problem, method: str, i: int, got: np.ndarray, expected: np.ndarray) -> None:
    scale = ROUNDING * (1e-3 + float(np.abs(expected).max(initial=0.0)))
    wrong = ~(np.abs(got - expected) <= scale)
    if wrong.any():
        j = int(np.argmax(wrong))
        raise ContractError(f"{_where(P, method, i)}: entry {j} is {got[j]:.9g}, expected {expected[j]:.9g}")


def _not_more(
    P: Problem, method: str, i: int, value: float, most: float, terms: float, y: np.ndarray, at: str = "a random w"
) -> None:
    if value - most > ROUNDING * terms:
        raise ContractError(
            f"{_where(P, method, i)}: at {at} {y.tolist()} is worth {value:.9g}, but the method's own answer {most:.9g}; "
            "expected the labelling that is worth most"
        )
