"""Paths of valued chains, oracles in Python and kernels, at sampled lambdas, against a dense QP."""

from __future__ import annotations

import numpy as np
import pytest
from dense import optimum, primal_value
from tiny import chain, python_oracle
from walks import EPS, walked

from gapwise.stages.certify.kernels import of_audit
from gapwise.stages.problems import build
from gapwise.stages.problems.moves import norm2_of
from gapwise.stages.problems.multiclass.kernel import Kernel, evaluate
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.options import Status

MADE = {
    "valued chain": lambda seed: chain(seed, lengths=(2, 3, 1, 2), width=7, classes=2, valued=True),
    "sparse oracle in Python": lambda seed: python_oracle("SparsePairs", n=3 + seed % 3),
}


def check_path(problem: Problem, lams: int = 4) -> None:
    """At the breakpoints and at one lambda inside each of some intervals, w is within the allowed gap of the optimum."""
    status, records, _, _ = walked(problem, rule="paper")
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
    "made", ["valued chain", pytest.param("sparse oracle in Python", marks=pytest.mark.interpreted)]
)
def test_path__is_within_epsilon_of_a_dense_qp(made: str) -> None:
    check_path(MADE[made](11))


KERNELS = {"rbf": {"kernel": "rbf", "gamma": 0.3}, "poly": {"kernel": "poly", "gamma": 0.7, "coef0": 1.0, "degree": 2}}


@pytest.mark.interpreted
@pytest.mark.parametrize(("kernel", "weighted"), [("poly", False), ("rbf", True)])
def test_path__of_a_kernel_is_within_epsilon_of_a_dense_qp(kernel: str, weighted: bool) -> None:
    rng, classes, n = np.random.default_rng(7), 3, 7
    labels = rng.integers(classes, size=n)
    x = rng.normal(size=(n, 3)) + 0.8 * np.eye(classes)[labels]
    weight = np.linspace(0.25, 1.75, n) if weighted else np.ones(n)
    arrays = {"x": x, "points": x, "labels": labels, "row": np.arange(n), "block_weight": weight}
    problem = build("multiclass", arrays, {"classes": classes, **KERNELS[kernel]})
    gram = np.array([[evaluate(Kernel.of(KERNELS[kernel]), a, b) for b in x] for a in x])
    values, vectors = np.linalg.eigh(gram)
    rows = vectors * np.sqrt(np.maximum(values, 0.0))  # rows @ rows.T is the Gram matrix
    plain = build("multiclass", {"x": rows, "labels": labels, "block_weight": weight}, {"classes": classes})
    np.testing.assert_allclose(of_audit(problem).norms2, plain.norms2)
    status, records, _, _ = walked(problem, rule="paper", eps=0.2 * EPS)
    assert status is Status.CONVERGED
    for record in records[:: max(1, len(records) // 4)]:
        lam, theta, hinges = float(record.point.lam), np.empty(classes), []
        for i, truth in enumerate(labels):
            problem.scores(i, record.weights, theta)
            hinges.append(np.max(theta - theta[truth] + weight[i] * (np.arange(classes) != truth)))
        primal = 0.5 * lam * norm2_of(problem, record.weights) + float(np.mean(hinges))
        best = optimum(plain, lam)
        assert best - 1e-7 <= primal <= best + 0.2 * EPS + 1e-7, lam
