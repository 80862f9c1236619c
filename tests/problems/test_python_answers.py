"""Answers of an oracle in Python during a run: refused with method and block, never wrapped, cut off or passed on."""

from __future__ import annotations

import numpy as np
import pytest
from lying import lying

from gapwise.stages.evaluate import predict
from gapwise.stages.solver.oracles import vertices_at

DURING_A_RUN = {
    "float": r"Lying\.max_oracle: block 2: .*must be integers 0, ..., 2, got float64",
    "wraps": r"Lying\.max_oracle: block 2: .*must be 0, ..., 2, got",
    "exit": r"Lying\.max_oracle: block 2: it called sys\.exit\(0\)",
    "complex features": r"Lying\.features: block 2: .*must be real numbers, got complex128",
    "NaN features": r"Lying\.features: block 2: .*must be finite, entry 1 is NaN",
    "NaN loss": r"Lying\.loss: block 2: .*must be finite and >= 0, got NaN",
    "negative loss": r"Lying\.loss: block 2: .*must be finite and >= 0, got -",
}


@pytest.mark.parametrize("how", DURING_A_RUN)
def test_call__refuses_what_cannot_be_used(how: str) -> None:
    problem = lying(how, block=2)
    with pytest.raises(ValueError, match=DURING_A_RUN[how]):
        vertices_at(problem, np.ones(problem.d), range(problem.n))


def test_weights__of_another_size_do_not_reach_compiled_code() -> None:
    problem = lying("")
    with pytest.raises(ValueError, match=r"weights: have shape \(3,\), expected \(7,\)"):
        predict(problem, np.ones(3))
