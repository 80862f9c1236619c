"""Some blocks of a user's oracle: the same answers under new numbers, and all that the oracle declares of itself."""

from __future__ import annotations

import numpy as np
import pytest
from python_task import Greedy

from gapwise.stages.problems.oracle import part_of


def test_part__declares_what_the_whole_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Greedy("train")
    for name, value in {"accuracy": 0.8, "approximate": True, "lower": 0.0, "upper": 2.0}.items():
        monkeypatch.setattr(Greedy, name, value)
    part = part_of(whole, np.array([2, 0]))
    assert (part.d, part.labels) == (whole.d, whole.labels)
    assert (part.accuracy, part.approximate, part.lower, part.upper) == (0.8, True, 0.0, 2.0)


def test_part__answers_for_its_blocks_under_their_new_numbers() -> None:
    whole, w = Greedy("train"), np.linspace(-1.0, 1.0, Greedy("train").d)
    part = part_of(whole, np.array([2, 0]))
    assert len(part) == 2
    for new, old in enumerate([2, 0]):
        np.testing.assert_array_equal(part.truth(new), whole.truth(old))
        np.testing.assert_array_equal(part.max_oracle(new, w), whole.max_oracle(old, w))
