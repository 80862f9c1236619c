"""A trial of a user's max-oracle on a few blocks, before a run rests on it.

At w = 0 and at a few random w, no labelling at hand may be worth more than the oracle's answer y*, where y is worth
L_i(y) + <w, phi(x_i, y)>: not the truth, not the decoded labelling, not the truths of other blocks of the same length, not
the answers for other w. And a second call must give the same answer. Labellings for which `features` or `loss` raises an
error are taken for none of this block's and left out. Verify repeats the comparison on the run's own w. The answer of an
approximate oracle may be beaten, but not its bound, if it has one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gapwise.stages.problems.answers import ask, bound, labelling, numbers, task_loss
from gapwise.stages.problems.oracle import Oracle, has_bound, labels_of
from gapwise.stages.problems.scale import LARGEST, too_small

BLOCKS = 5
"""Most blocks that are tried: the first, the last, and some between."""
RANDOM = 2
"""Random w besides w = 0."""
OTHERS = 4
"""Most truths of other blocks that an answer is compared with."""
SECONDS = 10.0
"""Once this time is over no further w is tried: the first block at w = 0 always is."""
ROUNDING = 1e-6
"""Share of the terms of two values by which the oracle's may fall behind: oracles may sum in float32."""


class Rival(NamedTuple):
    """A labelling that the oracle's answer is compared with."""

    name: str
    labels: np.ndarray


def try_oracle(oracle: Oracle, truths: Sequence[np.ndarray], split: str) -> None:
    """Raise ValueError, naming method and block, if an answer of `oracle` cannot be that of an exact max-oracle.

    Parameters
    ----------
    truths : sequence of int arrays
        The true labellings of all blocks.
    """
    end = time.monotonic() + SECONDS
    rng = np.random.default_rng(0)
    largest = 0.0
    for i in dict.fromkeys(np.linspace(0, len(truths) - 1, BLOCKS).round().astype(int).tolist()):
        largest = max(largest, _try_block(oracle, truths, split, i, rng, end))
        if time.monotonic() > end:
            break
    if 0.0 < largest < 1.0 / LARGEST:
        name = f"{type(oracle).__name__}.features: {split}: the largest entry of all answers"
        raise ValueError(too_small(name, largest))


def _try_block(
    oracle: Oracle, truths: Sequence[np.ndarray], split: str, i: int, rng: np.random.Generator, end: float
) -> float:
    """Try one block; returns the size of the largest feature that was seen."""
    truth, ids = truths[i], ask(_where(oracle, "coordinates", split, i), oracle.coordinates, i)
    chosen = np.arange(oracle.d) if ids is None else np.asarray(ids, np.int64)
    phi = ask(_where(oracle, "features", split, i), lambda: numbers(oracle.features(i, truth.copy()), chosen.shape))
    size = float(np.linalg.norm(phi.astype(float)))
    rivals = [Rival("the truth", truth), *_other_truths(truths, i)]
    answers: list[np.ndarray] = []
    largest = float(np.max(np.abs(phi), initial=0.0))
    points = [np.zeros(oracle.d), *(rng.normal(size=oracle.d) / (size or 1.0) for _ in range(RANDOM))]
    for number, w in enumerate(points):
        if number and time.monotonic() > end:
            break
        theta = _inside(oracle, w)[chosen]
        w_name = "w = 0" if number == 0 else "a random w"
        answer = _labels(oracle, "max_oracle", split, i, theta, truth.size)
        again = _labels(oracle, "max_oracle", split, i, theta, truth.size)
        if not np.array_equal(answer, again):
            raise ValueError(
                f"{_where(oracle, 'max_oracle', split, i)}: gives {answer.tolist()} and then {again.tolist()} for the same "
                f"theta ({w_name}); certificates and resuming need the same answer to the same question"
            )
        decoded = _labels(oracle, "decode", split, i, theta, truth.size)
        known = [
            *rivals,
            Rival("the decoded labelling", decoded),
            *(Rival("its answer for another w", y) for y in answers),
        ]
        _compare(oracle, split, i, theta, answer, known, w_name)
        answers.append(answer)
        phi = ask(_where(oracle, "features", split, i), lambda y=answer: numbers(oracle.features(i, y), chosen.shape))
        largest = max(largest, float(np.max(np.abs(phi), initial=0.0)))
    return largest


def _compare(
    oracle: Oracle, split: str, i: int, theta: np.ndarray, answer: np.ndarray, rivals: Sequence[Rival], w_name: str
) -> None:
    """Raise ValueError if a rival is worth more than the oracle's answer."""
    most, terms = _worth(oracle, split, i, theta, answer)
    if oracle.approximate:
        if not has_bound(oracle):
            return
        most, rivals = _bound(oracle, split, i, theta), [Rival("its own answer", answer), *rivals]
    for rival in rivals:
        try:
            value, others = _worth(oracle, split, i, theta, rival.labels)
        except ValueError:
            if rival.name.startswith("the truth of block"):
                continue  # not a labelling of this block
            raise
        if value - most > ROUNDING * (terms + others):
            if oracle.approximate:
                raise ValueError(
                    f"{_where(oracle, 'max_bound', split, i)}: at {w_name} it is {most:.9g}, but {rival.name}, "
                    f"{rival.labels.tolist()}, is worth {value:.9g} (loss + <theta, features>); expected a number that no "
                    "labelling exceeds"
                )
            raise ValueError(
                f"{_where(oracle, 'max_oracle', split, i)}: at {w_name} its answer {answer.tolist()} is worth {most:.9g} "
                f"(loss + <theta, features>), but {rival.name}, {rival.labels.tolist()}, is worth {value:.9g}; expected the "
                "labelling that is worth most. (If that row is no labelling of this block, let `features` or `loss` raise "
                "an error for it.)"
            )


def _bound(oracle: Oracle, split: str, i: int, theta: np.ndarray) -> float:
    """The bound on block i's maximum; ValueError names method and block."""
    where = _where(oracle, "max_bound", split, i)
    return ask(where, lambda: bound(oracle.max_bound(i, theta.copy())))


def _worth(oracle: Oracle, split: str, i: int, theta: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """(L_i(y) + <theta, features>, the sum of its terms' sizes); ValueError names method and block."""
    phi = ask(_where(oracle, "features", split, i), lambda: numbers(oracle.features(i, y.copy()), theta.shape))
    loss = ask(_where(oracle, "loss", split, i), lambda: task_loss(oracle.loss(i, y.copy())))
    terms = theta * phi.astype(float)
    return loss + float(np.sum(terms)), loss + float(np.sum(np.abs(terms)))


def _labels(oracle: Oracle, method: str, split: str, i: int, theta: np.ndarray, length: int) -> np.ndarray:
    """The answer of max_oracle or decode; ValueError names method and block."""
    call = getattr(oracle, method)
    return ask(_where(oracle, method, split, i), lambda: labelling(call(i, theta.copy()), labels_of(oracle), length))


def _other_truths(truths: Sequence[np.ndarray], i: int) -> list[Rival]:
    """Truths of the next blocks of the same length that are not block i's own."""
    rivals: dict[bytes, Rival] = {}
    for step in range(1, len(truths)):
        j = (i + step) % len(truths)
        if truths[j].size == truths[i].size and not np.array_equal(truths[j], truths[i]):
            rivals.setdefault(truths[j].tobytes(), Rival(f"the truth of block {j}", truths[j]))
        if len(rivals) == OTHERS:
            break
    return list(rivals.values())


def _inside(oracle: Oracle, w: np.ndarray) -> np.ndarray:
    """The point of the oracle's box nearest to w."""
    if len(oracle.lower) or len(oracle.upper):
        return np.clip(w, np.asarray(oracle.lower, float), np.asarray(oracle.upper, float))
    return w


def _where(oracle: Oracle, method: str, split: str, i: int) -> str:
    return f"{type(oracle).__name__}.{method}: {split} block {i}"


def try_samples(oracle: Oracle, truths: Sequence[np.ndarray], split: str, seconds: float = SECONDS) -> int:
    """Like `try_oracle`, with rivals that a run does not try: rows drawn at random, and the truth with one entry changed.

    `decode`, of which no certificate speaks, is compared, too. Returns the number of labellings that were compared.
    """
    end, rng, count = time.monotonic() + seconds, np.random.default_rng(1), 0
    for i in dict.fromkeys(np.linspace(0, len(truths) - 1, BLOCKS).round().astype(int).tolist()):
        ids = ask(_where(oracle, "coordinates", split, i), oracle.coordinates, i)
        chosen = np.arange(oracle.d) if ids is None else np.asarray(ids, np.int64)
        for w in (np.zeros(oracle.d), *(rng.normal(size=oracle.d) for _ in range(RANDOM))):
            if count and time.monotonic() > end:
                return count
            theta = _inside(oracle, w)[chosen]
            rivals = [rival for rival in _rows(oracle, truths[i], rng) if _is_labelling(oracle, i, rival.labels)]
            answer = _labels(oracle, "max_oracle", split, i, theta, truths[i].size)
            _compare(oracle, split, i, theta, answer, rivals, "a random w" if w.any() else "w = 0")
            if not oracle.approximate:
                decoded = _labels(oracle, "decode", split, i, theta, truths[i].size)
                _compare_decoded(oracle, split, i, theta, decoded, [*rivals, Rival("the max-oracle's answer", answer)])
            count += len(rivals)
    return count


def _rows(oracle: Oracle, truth: np.ndarray, rng: np.random.Generator) -> list[Rival]:
    """The truth with one entry changed, two entries exchanged, and a random row."""
    labels, entry, other = labels_of(oracle), rng.integers(truth.size), rng.integers(truth.size)
    near, swapped = truth.copy(), truth.copy()
    near[entry] = rng.integers(labels)
    swapped[[entry, other]] = truth[[other, entry]]
    return [
        Rival("the truth with one entry changed", near),
        Rival("the truth with two entries exchanged", swapped),
        Rival("a random row", rng.integers(labels, size=truth.size)),
    ]


def _is_labelling(oracle: Oracle, i: int, y: np.ndarray) -> bool:
    """Whether neither `features` nor `loss` raises an error for it."""
    try:
        oracle.features(i, y.copy())
        oracle.loss(i, y.copy())
    except (Exception, SystemExit):
        return False
    return True


def _compare_decoded(
    oracle: Oracle, split: str, i: int, theta: np.ndarray, decoded: np.ndarray, rivals: Sequence[Rival]
) -> None:
    """Raise ValueError if a rival has a larger <theta, features> than the decoded labelling."""

    def score(y: np.ndarray) -> tuple[float, float]:
        worth, terms = _worth(oracle, split, i, theta, y)
        return worth - ask(_where(oracle, "loss", split, i), lambda: float(oracle.loss(i, y.copy()))), terms

    most, size = score(decoded)
    for rival in rivals:
        value, others = score(rival.labels)
        if value - most > ROUNDING * (size + others):
            raise ValueError(
                f"{_where(oracle, 'decode', split, i)}: its answer {decoded.tolist()} has <theta, features> = {most:.9g}, "
                f"but {rival.name}, {rival.labels.tolist()}, has {value:.9g}; expected the labelling with the largest"
            )
