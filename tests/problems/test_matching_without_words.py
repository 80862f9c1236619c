"""Sentence pairs without words are refused by name; pairs without candidates are blocks with one labelling."""

from __future__ import annotations

import numpy as np
import pytest
from tiny.blocks import ragged
from tiny.matching_instances import matching_blocks

from gapwise.stages.problems import build

FACTS = {"fertility": 1, "kinds": 2, "costs": {"missed": 2.0, "extra": 1.0, "possible": 0.5}}


def bare(rows: int, columns: int) -> dict[str, np.ndarray]:
    """A pair of so many words, none of which is a candidate of another."""
    kind = np.repeat(np.array([0, 1], np.uint8), [rows, columns])
    none = {"column": np.empty(0, np.int64), "role": np.empty(0, np.uint8)}
    return {
        "x": np.empty((0, 4), np.float32), "counts": np.zeros(rows, np.int64), **none,
        "labels": np.zeros(rows, np.uint8), "kind": kind,
    }  # fmt: skip


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (0, 2), (2, 0)])
def test_build__refuses_a_pair_without_words_on_a_side(rows: int, columns: int) -> None:
    with pytest.raises(ValueError, match=rf"matching: block 1: {rows} and {columns} words and .*; expected words"):
        build("matching", ragged([matching_blocks()[0], bare(rows, columns)]), FACTS)


def test_pair__without_candidates_has_one_labelling() -> None:
    problem = build("matching", ragged([matching_blocks()[0], bare(2, 3)]), FACTS)
    y = np.ones(2, problem.truth.dtype)
    theta = np.zeros(int(problem.local_ptr[2] - problem.local_ptr[1]))
    assert problem.max_oracle(1, theta, y, problem.scratch()) == 0.0
    assert (y == 0).all()
    assert problem.least_loss(1) == np.inf
