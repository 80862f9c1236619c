"""Paths of random instances with valued chains, oracles in Python and kernels, at sampled lambdas, against a dense QP.

Their arrays are of the types of the tiny instances, for which the solver is compiled anyway.
"""

from __future__ import annotations

import numpy as np
import pytest
from dense import optimum, primal_value
from tiny import chain, python_oracle
from walks import EPS, walked

from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.options import Status

MADE = {
    "valued chain": lambda seed: chain(seed, lengths=(2, 3, 1, 2), width=7, classes=2, valued=True),
    "valued chain, three labels": lambda seed: chain(seed, lengths=(1, 3, 2), width=5, classes=3, valued=True),
    "oracle in Python": lambda seed: python_oracle(n=3 + seed % 3),
    "sparse oracle in Python": lambda seed: python_oracle("SparsePairs", n=3 + seed % 3),
}


def check_path(problem: Problem, lams: int = 4) -> None:
    """At the breakpoints and at one lambda inside each of some intervals, w is within the allowed gap of the optimum."""
    status, records, _, _ = walked(problem, rule="one_sided")
    assert status in (Status.CONVERGED, Status.LAMBDA_NEGLIGIBLE)  # the latter promises nothing below the last lambda
    lambdas = np.array([b.point.lam for b in records])
    inside = np.sqrt(lambdas[1:] / lambdas[:-1])
    rows = np.unique(np.linspace(0, len(records) - 1, lams).astype(int))
    for k in rows:
        w = records[k].weights
        last = k + 1 == len(records)
        below = [] if last and status is not Status.CONVERGED else [lambdas[k] * (0.5 if last else inside[k])]
        for lam in (lambdas[k], *below):
            best = optimum(problem, float(lam))
            primal = primal_value(problem, w, float(lam))
            assert best - 1e-7 <= primal <= best + EPS + 1e-7, (k, lam)


@pytest.mark.parametrize(
    "seed", [11, pytest.param(12, marks=pytest.mark.long), pytest.param(13, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("made", MADE)
def test_path__is_within_epsilon_of_a_dense_qp(made: str, seed: int) -> None:
    check_path(MADE[made](seed))
