"""Weights of blocks: hinges by enumeration, certificates against a dense QP over copies of the blocks."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dense import optimum, psi_and_loss
from tiny import by_all_methods
from tiny.blocks import ragged
from tiny.multiclass_instances import csr
from walks import EPS, walked

from gapwise.stages.problems import build
from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.segmentation import derived
from gapwise.stages.solver.options import ENDED

WEIGHT = np.array([0.5, 2.0, 1.0, 0.5, 2.0, 1.0])
"""Each a half of how often a block is given in `copied`."""


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    labels = np.array([0, 1, 2, 0, 1, 2])
    return rng.normal(size=(6, 3)) + np.eye(3)[labels], labels


def multiclass(times: np.ndarray, **more: np.ndarray) -> Problem:
    x, labels = rows()
    cost = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [1.0, 3.0, 0.0]])
    return build("multiclass", {"x": x[times], "labels": labels[times], **more}, {"classes": 3, "cost": cost})


def sparse(times: np.ndarray, **more: np.ndarray) -> Problem:
    x, labels = rows()
    arrays = csr(x[times]) | {"labels": labels[times], **more}
    return build("multiclass", arrays, {"classes": 3, "width": 3})


def chain(times: np.ndarray, **more: np.ndarray) -> Problem:
    rng = np.random.default_rng(5)
    blocks = [(rng.integers(2, size=2), rng.integers(4, size=2)) for _ in WEIGHT]
    labels, ids = (np.concatenate([blocks[i][part] for i in times]) for part in (0, 1))
    arrays = {
        "labels": labels,
        "labels_ptr": 2 * np.arange(len(times) + 1),
        "ids": ids,
        "counts": np.ones(ids.size, int),
    }
    return build("chain", {**arrays, **more}, {"classes": 2, "attributes": 7})


def segmentation_blocks() -> list[dict[str, np.ndarray]]:
    rng, edges = np.random.default_rng(6), np.array([[0, 1], [1, 2]])
    labels = [rng.permutation([0, 1, 1]) for _ in WEIGHT]
    blocks = [
        {"unary": (rng.normal(size=(3, 2)) + own[:, None]).astype(np.float32), "pairwise": np.ones((2, 1), np.float32),
         "edges": edges, "labels": own, "area": rng.integers(1, 5, size=3).astype(float)} for own in labels
    ]  # fmt: skip
    return [block | derived(**block) for block in blocks]


def segmentation(times: np.ndarray, **more: np.ndarray) -> Problem:
    blocks = segmentation_blocks()
    return build("segmentation", ragged([blocks[i] for i in times]) | more, {})


STRUCTURES = {"multiclass": multiclass, "multiclass_sparse": sparse, "chain": chain, "segmentation": segmentation}


def weighted(name: str) -> tuple[Problem, Problem, Problem]:
    """The problem without weights, with them, and with blocks given as often as their weights say."""
    every = np.arange(WEIGHT.size)
    times = np.repeat(every, [int(Fraction(w) * 2) for w in WEIGHT])
    return STRUCTURES[name](every), STRUCTURES[name](every, block_weight=WEIGHT), STRUCTURES[name](times)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", STRUCTURES)
def test_hinge__of_every_labelling_is_weighted(name: str) -> None:
    plain, by_weight, _ = weighted(name)
    for weight, psi, expected, loss, own in zip(
        WEIGHT, *[side for pair in zip(psi_and_loss(by_weight), psi_and_loss(plain), strict=True) for side in pair],
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(psi, weight * expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(loss, weight * own)
    np.testing.assert_array_equal(optional_of(by_weight, "block_weight"), WEIGHT)
    for i, weight in enumerate(WEIGHT):
        assert by_weight.least_loss(i) == pytest.approx(weight * plain.least_loss(i))


@pytest.mark.interpreted
@pytest.mark.parametrize("name", STRUCTURES)
def test_norms_and_moves__are_those_of_weighted_features(name: str) -> None:
    _, problem, _ = weighted(name)
    rng = np.random.default_rng(2)
    for i in range(problem.n):
        delta, pushed = rng.normal(size=int(np.diff(problem.local_ptr)[i])), np.zeros(problem.d)
        problem.push(i, 1.0, delta, pushed)
        assert problem.norm2(i, delta) == pytest.approx(pushed @ pushed, rel=1e-5)
        if name == "chain":
            y, z = rng.permutation([0, 1]).astype(np.uint8), np.ones(2, np.uint8)
            scratch, moved = np.empty(delta.size), np.zeros(problem.d)
            problem.pair_move(i, 1.0, y, z, scratch, moved)
            assert problem.pair_norm2(i, y, z, scratch) == pytest.approx(moved @ moved, rel=1e-6)


@pytest.mark.parametrize("name", by_all_methods(STRUCTURES))
def test_path__is_that_of_blocks_given_as_often_as_their_weights_say(name: str) -> None:
    """With 2 s_i copies of block i, N in all, the mean of s_i H_i is N / 2n times the mean hinge of the copies."""
    _, by_weight, copies = weighted(name)
    status, records, _, _ = walked(by_weight, rule="paper")
    assert status in ENDED
    ratio = copies.n / (2.0 * by_weight.n)
    for record in records[:: max(1, len(records) // 3)]:
        lam = float(record.point.lam)
        best = ratio * optimum(copies, lam / ratio)
        assert optimum(by_weight, lam) == pytest.approx(best, abs=1e-6)
        assert best - 1e-6 <= float(record.point.primal) <= best + EPS + 1e-6


@pytest.mark.parametrize(
    ("name", "wrong"),
    list(zip(STRUCTURES, ([1.0], *([1.0] * 5 + [bad] for bad in (0.0, np.nan, np.inf))), strict=True)),
)
def test_build__refuses_what_is_no_weight(name: str, wrong: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^\w+: block_weight must hold 6 numbers > 0; leave out blocks of weight 0"):
        STRUCTURES[name](np.arange(6), block_weight=np.array(wrong))
