"""The toy problem of O16 App. C as a data set."""

from __future__ import annotations

import numpy as np

from gapwise.stages.datasets import Blocks, open_dataset
from gapwise.stages.problems import build

GIVEN = {"name": "hard_and_easy", "n": 6, "classes": 5, "lam": 0.01}


def test_problem__has_one_block_with_many_wrong_answers_and_others_with_one() -> None:
    reader, sink = open_dataset("hard_and_easy", GIVEN), Blocks("multiclass")
    facts = reader.featurize(sink, map, lambda done, total, task: None)
    problem = build("multiclass", sink.arrays("train"), facts)
    assert (problem.n, problem.d) == (6, 30)
    costs = problem.cost[problem.truth]
    assert costs.sum(axis=1).tolist() == [1, 1, 1, 4, 1, 1]
    np.testing.assert_allclose(problem.rows.x @ problem.rows.x.T, 0.4 * 0.01 * 6 * np.eye(6), rtol=1e-6)
    assert reader.files() == {}
