"""Features out of the sizes that can be certified are named before anything is solved: block, feature, what helps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gapwise
from gapwise.stages.problems import build
from gapwise.stages.problems.scale import check_norms

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
    with pytest.raises(ValueError, match=r"is of size 1e-160.*Multiply all features by 1e\+160"):
        FITS[kind](1e-160 * X)


@pytest.mark.filterwarnings("ignore:MulticlassSVM. column 1 of X has a range:UserWarning")  # which is said first
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_fit__with_a_kernel_names_a_feature_that_is_too_large(kernel: str) -> None:
    """Before a kernel of it overflows, which the error would put down to the oracle."""
    with pytest.raises(ValueError, match=r"^X: block 2: feature 1: x is of size 3e\+155"):
        gapwise.MulticlassSVM(kernel=kernel).fit(with_entry(X, -3e155), Y)
    arrays = {"x": with_entry(X, 3e155), "points": X, "labels": Y}
    with pytest.raises(ValueError, match=r"^multiclass: block 2: feature 1: x is of size 3e\+155"):
        build("multiclass", arrays, {"classes": 2, "kernel": kernel, "gamma": 1.0, "coef0": 0.0, "degree": 2})


def test_build__names_a_row_of_a_block() -> None:
    arrays = {"x": with_entry(X, 1e70), "relevance": np.array([1.0, 0, 1, 0]), "x_ptr": np.array([0, 2, 4])}
    with pytest.raises(ValueError, match="ranking: block 1: row 0, feature 1: x is of size 1e"):
        build("ranking", arrays, {})


def test_norms__of_a_kernel_or_of_one_s_own_structure() -> None:
    check_norms("mine", [(0, 0.0), (1, 1e-300), (2, 1.0)])
    with pytest.raises(ValueError, match="mine: block 1: the norm of its joint features is of size 1e"):
        check_norms("mine", [(0, 1.0), (1, 1e300)])
    with pytest.raises(ValueError, match=r"mine: block 0: the norm of its joint features is of size inf"):
        check_norms("mine", [(0, np.inf)])
    with pytest.raises(ValueError, match="mine: the largest norm of joint features is of size 1e-150"):
        check_norms("mine", [(0, 1e-300)])


COSTLY = np.array([[0.0, 1e200], [1.0, 0.0]])
DEAR = {
    "chain costs": (gapwise.ChainSVM(lam=1.0, costs=COSTLY), [X[:2], X[2:]], [[0, 1], [1, 0]]),
    "classes": (gapwise.MulticlassSVM(lam=1.0, costs=COSTLY), X, Y),
}


@pytest.mark.parametrize("kind", DEAR)
def test_fit__names_a_cost_beside_which_rounding_hides_the_others(kind: str) -> None:
    model, x, y = DEAR[kind]
    with pytest.raises(
        ValueError, match=r"cost, weights included, is 1e\+200 for label 1 in place of 0; up to 1e\+12 can"
    ):
        model.fit(x, y)
