"""A trial of a user's oracle on a few blocks, before a run rests on it: the checks of `contract` that concern an oracle.

No labelling at hand may be worth more than the oracle's answer, or than its bound: not the truth, not the decoded one, not
the answers for other w, and not the truths of other blocks of the same length. `gapwise check` draws other rows, too; a run
does not, as many a structure's `features` takes rows that are no labellings. Rows for which `features` or `loss` raises an
error are none of this block. Verify repeats the comparison on the run's own w.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from gapwise.stages.problems.contract import CHECKS, ContractError, local, norm2_of_truth, truth_of
from gapwise.stages.problems.python_oracle import PythonOracle
from gapwise.stages.problems.scale import check_norms

TRIED = ("losses", "repeatable", "oracles", "several answers")
"""The checks of the contract whose answers come from a user."""
BLOCKS = 5
"""Most blocks that are tried: the first, the last, and some between."""
OTHERS = 4
"""Most truths of other blocks, and most random rows of each kind, that answers are compared with."""
SECONDS = 10.0
"""For the whole trial."""

NO_LABELLING = ". (If that row is no labelling of this block, let `features` or `loss` raise an error for it.)"


def try_oracle(problem: PythonOracle, seconds: float = SECONDS, *, drawn: bool = False) -> int:
    """Try the oracle of a split on a few blocks; returns the number of labellings that its answers were compared with.

    Parameters
    ----------
    seconds : float
        Once this time is over, no further check is begun: the first block's first three always are.
    drawn : bool
        Whether rows drawn at random, and truths with entries changed, are tried as labellings.

    Raises
    ------
    ValueError
        If an answer cannot be used or cannot be that of such an oracle; names method and block.
    """
    end, rng, count, tried = time.monotonic() + seconds, np.random.default_rng(0), 0, False
    blocks = dict.fromkeys(np.linspace(0, problem.n - 1, BLOCKS).round().astype(int).tolist())
    check_norms(f"{problem.name}.features", ((i, norm2_of_truth(problem, i)) for i in blocks))
    for i in blocks:
        rows = [*_other_truths(problem, i), *(_drawn(problem, i, rng) if drawn else ())]
        labellings = [y for y in rows if _is_labelling(problem, i, y)]
        for name in TRIED:
            if tried and time.monotonic() > end:
                return count
            try:
                CHECKS[name](problem, i, labellings, rng)
            except ContractError as error:
                raise ValueError(f"{error}{NO_LABELLING * ('is worth' in str(error))}") from error
            if name == "oracles":
                count, tried = count + len(labellings), True
    return count


def _other_truths(problem: PythonOracle, i: int) -> list[np.ndarray]:
    """Truths of the next blocks of the same length that are not block i's own."""
    truth, n = truth_of(problem, i), problem.n
    alike: dict[bytes, np.ndarray] = {}
    for y in (truth_of(problem, (i + step) % n) for step in range(1, n)):
        if y.size == truth.size and not np.array_equal(y, truth):
            alike[y.tobytes()] = y
        if len(alike) == OTHERS:
            break
    return [*alike.values()]


def _drawn(problem: PythonOracle, i: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """The truth with an entry changed, or two exchanged; random rows."""
    truth = truth_of(problem, i)
    for _ in range(OTHERS):
        near, swapped, (entry, other) = truth.copy(), truth.copy(), rng.integers(truth.size, size=2)
        near[entry] = rng.integers(problem.labels)
        swapped[[entry, other]] = truth[[other, entry]]
        yield from (near, swapped, rng.integers(problem.labels, size=truth.size).astype(truth.dtype))


def _is_labelling(problem: PythonOracle, i: int, y: np.ndarray) -> bool:
    """Whether neither `features` nor `loss` raises an error for it."""
    try:
        local(problem, i, y)
        problem.loss(i, y)
    except ValueError:
        return False
    return True
