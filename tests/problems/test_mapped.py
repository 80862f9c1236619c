"""Arrays that a structure says it passes on unread: workers have holes in their place when a problem is built."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from tiny.blocks import ragged
from tiny.matching_instances import matching_blocks
from tiny.potts import potts_blocks
from tiny.tree_instances import tree_arrays

from gapwise.stages.problems import build, capabilities, structures
from gapwise.stages.problems.protocol import Problem, leaves

Arrays = Mapping[str, np.ndarray]
TWO = ragged(potts_blocks(classes=2))
CODES = TWO | {"unary": (100 * np.abs(TWO["unary"])).astype(np.uint8), "unary_scale": np.array([0.01])}
CASES: dict[str, tuple[str, Arrays, dict, set[str]]] = {
    "segmentation": ("segmentation", TWO, {}, set()),
    "segmentation of codes": ("segmentation", CODES, {}, set()),
    "potts": ("potts", ragged(potts_blocks()), {"classes": 3}, set()),
    "potts of codes": ("potts", CODES, {"classes": 2}, {"unary"}),
    "tree": ("tree", tree_arrays(0, [-1, 0], 3, [(1, 3), (3, 1)]), {}, set()),
    "tree of numbers": ("tree", tree_arrays(0, [-1, 0], 3, [(1, 3), (3, 1)], codes=False), {}, set()),
    "matching": ("matching", ragged(matching_blocks()), {"fertility": 1, "kinds": 2}, set()),
}
"""Structure, arrays of a split, facts, and the arrays that it declares but copies here."""


def fields(problem: Problem) -> dict[str, np.ndarray]:
    return {name: field for name, field in leaves(problem) if isinstance(field, np.ndarray)}


def passed_on(arrays: Arrays, names: tuple[str, ...], problem: Problem) -> set[str]:
    held = fields(problem).values()
    return {name for name in names if any(np.may_share_memory(arrays[name], field) for field in held)}


def test_cases__are_all_structures_that_declare_such_arrays() -> None:
    assert {name for name in structures() if capabilities(name).mapped} == {name for name, *_ in CASES.values()}


@pytest.mark.parametrize("case", CASES)
def test_build__reads_nothing_of_arrays_that_it_passes_on(case: str) -> None:
    name, arrays, facts, copied = CASES[case]
    declared, meta = capabilities(name).mapped, {**facts, "checked": True}
    problem = build(name, arrays, meta)
    unread = passed_on(arrays, declared, problem)
    assert unread == set(declared) - copied
    holes = {**arrays, **{array: np.zeros_like(arrays[array]) for array in unread}}
    other = build(name, holes, meta)
    same = {
        field: value
        for field, value in fields(other).items()
        if not any(np.may_share_memory(value, holes[array]) for array in unread)
    }
    assert len(fields(other)) - len(same) == len(unread)
    for field, value in same.items():
        assert value.tobytes() == fields(problem)[field].tobytes(), field
    assert {field: value for field, value in leaves(other) if field not in fields(other)} == {
        field: value for field, value in leaves(problem) if field not in fields(problem)
    }
