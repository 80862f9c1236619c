"""Features out of the sizes that can be certified are named before anything is solved: block, feature, what helps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from tiny import matching, ranking

import gapwise
from gapwise.stages.datasets import DataError
from gapwise.stages.featurize import _SplittingSink
from gapwise.stages.problems import build, capabilities, structures
from gapwise.stages.problems.answers import numbers
from gapwise.stages.problems.oracle import Oracle
from gapwise.stages.problems.oracle_check import try_oracle
from gapwise.stages.problems.scale import LARGEST, LARGEST_SINGLE, check_norms, check_scale
from gapwise.storage.features import FeatureWriter

X = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
Y = np.array([0, 1, 1, 0])
GRAPH = {"unary": X, "edges": np.array([[0, 1]]), "pairwise": np.ones((1, 1))}


def with_entry(x: np.ndarray, value: float) -> np.ndarray:
    """`x` with `value` at row 2, feature 1."""
    x = x.copy()
    x[2, 1] = value
    return x


FITS = {
    "dense": lambda x: gapwise.MulticlassSVM(fit_intercept=False).fit(x, Y),
    "sparse": lambda x: gapwise.MulticlassSVM(fit_intercept=False).fit(sparse.csr_array(x), Y),
    "chain": lambda x: gapwise.ChainSVM().fit([x[:2], x[2:]], [Y[:2].tolist(), Y[2:].tolist()]),
    "graphs": lambda x: gapwise.SegmentationSVM().fit([GRAPH, {**GRAPH, "unary": x}], [Y, Y]),
}
WHERE = {
    "dense": "block 2: feature 1",
    "sparse": "block 2: feature 1",
    "chain": "sequence 1, token 0",
    "graphs": r"unary\[2, 1\]",
}


@pytest.mark.filterwarnings("ignore:MulticlassSVM. column 1 of X has a range:UserWarning")  # which is said first
@pytest.mark.parametrize("kind", FITS)
def test_fit__names_a_feature_that_is_too_large(kind: str) -> None:
    with pytest.raises(ValueError, match=rf"{WHERE[kind]}.* of size 3e\+155.*Divide all features by 1e\+155"):
        FITS[kind](with_entry(X, -3e155))


@pytest.mark.parametrize("kind", sorted({*FITS} - {"graphs"}))
def test_fit__names_features_that_are_all_too_small(kind: str) -> None:
    with pytest.raises(ValueError, match=r"is 1e-160.*Multiply all features by 1e\+160"):
        FITS[kind](1e-160 * X)


@pytest.mark.filterwarnings("ignore:MulticlassSVM. column 1 of X has a range:UserWarning")  # which is said first
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_fit__with_a_kernel_names_a_feature_that_is_too_large(kernel: str) -> None:
    """Before a kernel of it overflows, which the error would put down to the oracle."""
    with pytest.raises(ValueError, match=r"^X: block 2: feature 1: x holds a feature of size 3e\+155"):
        gapwise.MulticlassSVM(kernel=kernel).fit(with_entry(X, -3e155), Y)
    arrays = {"x": with_entry(X, 3e155), "points": X, "labels": Y}
    with pytest.raises(ValueError, match=r"^multiclass_kernel: block 2: feature 1: x holds a feature of size 3e\+155"):
        build("multiclass_kernel", arrays, {"classes": 2, "kernel": kernel, "gamma": 1.0, "coef0": 0.0, "degree": 2})


COSTLY = np.array([[0.0, 1e200], [1.0, 0.0]])
DEAR = {
    "chain costs": (gapwise.ChainSVM(lam=1.0, costs=COSTLY), [X[:2], X[2:]], [[0, 1], [1, 0]]),
    "chain weights": (gapwise.ChainSVM(lam=1.0, label_weights={0: 1e200, 1: 1.0}), [X[:2], X[2:]], [[0, 1], [1, 0]]),
    "classes": (gapwise.MulticlassSVM(lam=1.0, costs=COSTLY), X, Y),
    "kernels": (gapwise.MulticlassSVM(lam=1.0, costs=COSTLY, kernel="rbf"), X, Y),
}


@pytest.mark.parametrize("kind", DEAR)
def test_fit__names_a_cost_beside_which_rounding_hides_the_others(kind: str) -> None:
    model, x, y = DEAR[kind]
    with pytest.raises(
        ValueError, match=r"cost, weights included, is 1e\+200 for label 1 in place of 0; up to 1e\+12 can"
    ):
        model.fit(x, y)


def test_fit__of_graphs_names_features_that_are_all_too_small() -> None:
    tiny = {**GRAPH, "pairwise": np.full((1, 1), 1e-20)}
    with pytest.raises(ValueError, match=r"segmentation: the largest feature in unary and pairwise is 1e-20"):
        gapwise.SegmentationSVM(lam="1/n").fit([{**tiny, "unary": 1e-20 * X}], [Y])


def test_build__names_a_row_of_a_block() -> None:
    arrays = {"x": with_entry(X, 1e70), "relevance": np.array([1.0, 0, 1, 0]), "x_ptr": np.array([0, 2, 4])}
    with pytest.raises(ValueError, match="ranking: block 1: row 0, feature 1: x holds a feature of size 1e"):
        build("ranking", arrays, {})


def test_scale__small_features_beside_larger_ones_and_zeros_are_as_good_as_any() -> None:
    part = capabilities("multiclass")
    check_scale("multiclass", part, {"x": np.array([[1.0, 1e-300], [0.0, -1e-200]])})
    check_scale("multiclass", part, {"x": np.zeros((2, 2))})
    check_scale("multiclass", part, {"x": np.array([[LARGEST], [-LARGEST]])})
    check_scale("multiclass", part, {"x": np.full((2, 1), 1.0 / LARGEST)})


def test_scale__what_is_kept_as_float32_has_squares_in_float32() -> None:
    singles = {name for name in structures() if capabilities(name).single}
    assert singles == {"chain", "segmentation", "potts", "matching", "tree"}
    largest = np.float32(LARGEST_SINGLE)
    assert np.finfo(np.float32).tiny < (1.0 / LARGEST_SINGLE) ** 2
    assert 1e8 * float(largest) ** 2 < np.finfo(np.float32).max


@pytest.mark.parametrize("make", [matching, ranking])
def test_scale__tiny_instances_are_in_range_from_1e_minus_8_to_1e8(make) -> None:
    problem, name = make(), make.__name__
    for s in (1e-8, 1.0, 1e8):
        check_scale(name, capabilities(name), {"x": s * problem.x})


def sink_of(folder: Path) -> _SplittingSink:
    return _SplittingSink(FeatureWriter(folder / "store"), "multiclass", None)


def test_featurize__names_split_block_and_feature(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="train: multiclass: block 2: feature 1: x holds a feature of size 1e"):
        sink_of(tmp_path)._look("train", {"x": with_entry(X, 1e155)})
    small = sink_of(tmp_path)
    small._look("train", {"x": 1e-160 * X})
    small._look("test", {"x": X})  # only what is learned from counts
    with pytest.raises(DataError, match="train: multiclass: the largest feature in x is 1e-160"):
        small.finish({})


def test_answers__an_oracle_s_features_are_named_at_the_call() -> None:
    with pytest.raises(ValueError, match=r"entry 1 of the answer holds a feature of size 1e\+155.*Divide"):
        numbers(np.array([1.0, 1e155]), (2,))
    with pytest.raises(ValueError, match="must be finite, entry 0 is NaN"):
        numbers(np.array([np.nan, 1e155]), (2,))


class Tiny(Oracle):
    """Two labels, features of size `scale`."""

    d, labels = 2, 2

    def __init__(self, split: str = "train", scale: float = 1.0) -> None:
        self.scale = scale

    def __len__(self) -> int:
        return 2

    def truth(self, i: int) -> np.ndarray:
        return np.array([i])

    def features(self, i: int, y: np.ndarray) -> np.ndarray:
        return self.scale * np.eye(2)[y[0]]

    def loss(self, i: int, y: np.ndarray) -> float:
        return float(y[0] != i)

    def max_oracle(self, i: int, theta: np.ndarray) -> np.ndarray:
        return np.array([int(np.argmax(self.scale * theta + (np.arange(2) != i)))])

    def decode(self, i: int, theta: np.ndarray) -> np.ndarray:
        return np.array([int(np.argmax(self.scale * theta))])


def test_oracle__whose_features_are_all_too_small_is_named_in_the_trial() -> None:
    truths = [np.array([0]), np.array([1])]
    try_oracle(Tiny(scale=1e-50), truths, "train")
    with pytest.raises(ValueError, match=r"Tiny.features: train: the largest entry of all answers is 1e-160"):
        try_oracle(Tiny(scale=1e-160), truths, "train")


def test_norms__of_a_kernel_or_of_one_s_own_structure() -> None:
    check_norms("mine", [(0, 0.0), (1, 1e-300), (2, 1.0)])
    with pytest.raises(ValueError, match="mine: block 1: its joint features have the norm 1e"):
        check_norms("mine", [(0, 1.0), (1, 1e300)])
    with pytest.raises(ValueError, match=r"mine: block 0: .* the square root of inf"):
        check_norms("mine", [(0, np.inf)])
    with pytest.raises(ValueError, match="mine: the largest norm of joint features is 1e-150"):
        check_norms("mine", [(0, 1e-300)])
