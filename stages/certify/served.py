"""Whether the model that a path gives out at each lambda is the one that its certificates are about.

What gives it out is not imported here but handed in. It is compared with the mixture of solved weights that the verifier of
the path's rule derives from the stored cells: the shares at every solved lambda, at both ends and inside of every cell,
above the top and at the end of the path; the weights themselves at the sampled lambdas. Where nothing is certified there is
no model, and asking for one has to be refused.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

Shares = Mapping[int, float]
"""The share of each breakpoint's weights in w(lambda); the rest is w = 0."""
Arrays = Mapping[str, np.ndarray]

TOLERANCE = 1e-9
"""Relative difference that sums of two terms may show."""


class Served(NamedTuple):
    """What gives out the models of a path; both raise ValueError where the path has none."""

    shares: Callable[[float], Shares]
    """shares(lambda): which breakpoints' weights w(lambda) is made of; breakpoints outside the path are w = 0."""
    weights: Callable[[float], np.ndarray]
    """weights(lambda): w(lambda), (d,)."""


def compare(
    served: Served,
    expected: Callable[[float], Shares | None],
    arrays: Arrays,
    weights: Callable[[int], np.ndarray],
    sampled: Sequence[float],
) -> tuple[int, list[str]]:
    """(number of lambdas at which models were compared, a line for each that is another one than expected).

    Parameters
    ----------
    expected : callable
        expected(lambda): the shares that the certificates are about; None where the path has no model.
    weights : callable
        weights(b): the stored weights (d,) of breakpoint b.
    sampled : sequence of float
        Lambdas at which weights are compared as well, besides the first and the last solved one.
    """
    solved = arrays["lambda"]
    by_weights = {*sampled, float(solved[0]), float(solved[-1])}
    lams = sorted({lam for lam in (*where(arrays), *by_weights) if 0.0 < lam < math.inf}, reverse=True)
    faults = []
    stored = functools.lru_cache(maxsize=4)(weights)  # lambdas in order share breakpoints
    d = stored(0).size
    for lam in lams:
        wanted = known(expected(lam), solved.size)
        try:
            given = known(served.shares(lam), solved.size)
        except ValueError:
            given = None
        if not same(wanted, given):
            faults.append(f"lambda {lam:.9g}: weights_at gives {in_words(given)}, expected {in_words(wanted)}")
        elif wanted is not None and lam in by_weights:
            fault = difference(served.weights(lam), mixture(wanted, stored, d))
            faults += [f"lambda {lam:.9g}: weights_at, expected to give {in_words(wanted)}: {fault}"] if fault else []
    return len(lams), faults


def where(arrays: Arrays) -> Iterator[float]:
    """Lambdas at which another model might begin, and some between."""
    solved = arrays["lambda"]
    yield from solved.tolist()
    yield from np.sqrt(np.abs(solved[:-1] * solved[1:])).tolist()  # of given lambdas: where there is no model
    yield 2.0 * float(solved[0])
    low, high = (arrays[name] if name in arrays else np.empty(0) for name in ("cell_low", "cell_high"))
    for lo, hi in zip(low.tolist(), high.tolist(), strict=True):
        yield from (lo, hi)
        yield from (
            (2.0 * lo, 1e3 * lo) if hi == math.inf else (0.5 * hi, 1e-3 * hi) if lo == 0.0 else (abs(lo * hi) ** 0.5,)
        )
    if low.size and low[-1] > 0.0:
        yield float(np.nextafter(low[-1], 0.0))


def known(shares: Shares | None, breakpoints: int) -> Shares | None:
    """The shares of breakpoints of the path that are not 0."""
    if shares is None:
        return None
    return {b: float(share) for b, share in shares.items() if share != 0.0 and 0 <= b < breakpoints}


def same(a: Shares | None, b: Shares | None) -> bool:
    """Whether these are the same shares of the same breakpoints, or both no model."""
    if a is None or b is None:
        return a is b
    return a.keys() == b.keys() and all(math.isclose(share, b[k], rel_tol=TOLERANCE) for k, share in a.items())


def mixture(shares: Shares, weights: Callable[[int], np.ndarray], d: int) -> np.ndarray:
    """The weights of these shares, (d,)."""
    total = np.zeros(d)
    for b, share in shares.items():
        total += share * weights(b)
    return total


def difference(given: np.ndarray, wanted: np.ndarray) -> str:
    """In which weight `given` differs most from `wanted`, in words; empty if it does not."""
    given = np.asarray(given)
    if given.shape != wanted.shape:
        return f"it gives an array of {given.shape}, not of {wanted.shape}"
    off = np.abs(given - wanted)
    if not off.size or bool(np.max(off) <= TOLERANCE * np.max(np.abs(wanted))):
        return ""
    j = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
    return f"weight {j} is {given[j]:.9g}, expected {wanted[j]:.9g}"


def in_words(shares: Shares | None) -> str:
    """Shares for a message."""
    if shares is None:
        return "no model"
    return " + ".join(f"{share:.9g} of breakpoint {b}" for b, share in sorted(shares.items())) or "w = 0"
