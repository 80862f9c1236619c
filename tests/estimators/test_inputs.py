"""What estimators refuse, in one line that names the argument, and what they make of labels and inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from library import Bits, bits, blobs, sentences
from scipy import sparse

from gapwise import ChainSVM, MulticlassSVM, SegmentationSVM, StructuredModel, StructuredSVM
from gapwise.stages.datasets import NothingKnown

PICTURE = np.zeros((9, 9, 3), np.uint8)
WORDS = [["a"], ["b"]]


@pytest.mark.parametrize(
    ("model", "X", "y", "message"),
    [
        (ChainSVM(), [WORDS], [["x"]], "y: sequence 0: expected 2 labels, as X has tokens there, got 1"),
        (ChainSVM(), [WORDS, []], [["x", "y"], []], "X: sequence 1 is empty; leave it out"),
        (ChainSVM(), [WORDS], [["x", "x"]], "y: expected at least two labels, got one only: 'x'"),
        (ChainSVM(), [WORDS], [["x", 1]], "y: expected labels that are all strings or all integers, got int and str"),
        (ChainSVM(), {0: WORDS}, [["x"]], "X: expected a list of sequences, got dict"),
        (
            ChainSVM(lam="path", validation=1.5),
            [WORDS],
            ["xy"],
            "validation: expected a share between 0 and 1, a number of folds",
        ),
        (
            MulticlassSVM(max_passes=1),
            np.eye(3).repeat(10, axis=0),
            [k for k in range(3) for _ in range(10)],
            r"the path ended near its first lambda \(PASS_LIMIT\), so nothing can be chosen; give",
        ),
        (MulticlassSVM(), np.eye(2), [0, 0], "y: expected at least two classes, got one class only"),
        (
            MulticlassSVM(costs=[[1, 0], [0, 0]]),
            np.eye(2),
            [0, 1],
            r"costs: expected \(2, 2\) numbers >= 0 with a zero",
        ),
        (SegmentationSVM(), [PICTURE], [np.ones((3, 3), int)], r"y: entry 0: expected \(9, 9\) of 0 and 1, got int64"),
        (
            SegmentationSVM(superpixels=0),
            [PICTURE],
            [np.eye(9, dtype=int)],
            "superpixels: expected a whole number >= 1",
        ),
        (
            SegmentationSVM(),
            [{"unary": np.eye(2), "edges": [(0, 2)]}],
            [[0, 1]],
            r"X: graph 0: expected edges between different superpixels 0\.\.1",
        ),
        (
            SegmentationSVM(),
            [{"unary": np.full((2, 1), np.inf), "edges": []}],
            [[0, 1]],
            r"X: graph 0: unary\[0, 0\] is NaN or infinite",
        ),
        (StructuredSVM(), [1], [[0]], "oracle: expected an object of a subclass of StructuredModel, got None"),
        (StructuredSVM(Bits()), [np.ones(3)], [[0, 0, 2]], "oracle.truth: train block 0: its entries must be"),
    ],
)
def test_bad_input__is_refused_in_one_line(model: Any, X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}") as refused:
        model.fit(X, y)
    assert "\n" not in str(refused.value)


def shuffled(some: Any) -> pd.Series:
    """A column of a shuffled table with two labels that occur twice."""
    return pd.Series(list(some), index=[*range(len(some) - 2, 0, -1), 2, 1])


def objects(some: Any) -> np.ndarray:
    array = np.empty(len(some), object)
    array[:] = list(some)
    return array


@pytest.mark.parametrize("container", [shuffled, objects, tuple, iter], ids=lambda made: made.__name__)
@pytest.mark.parametrize(
    ("model", "data"),
    [(ChainSVM(), sentences()), (StructuredSVM(Bits()), bits()), (MulticlassSVM(), blobs())],
    ids=["chain", "structured", "multiclass"],
)  # fmt: skip
def test_containers__are_read_by_position(model: Any, data: Any, container: Any) -> None:
    X, y = data
    weight = np.arange(1.0, len(y) + 1)
    if isinstance(model, MulticlassSVM):
        if container is not shuffled:
            return  # scikit-learn reads them
        X, given = list(X), pd.DataFrame(X, index=shuffled(y).index)
    else:
        given = container(X)
    plain, own = model._checked(X, y), model._checked(given, container(y))
    assert str(own) == str(plain)
    if not isinstance(model, StructuredSVM):
        own = model._checked(X, y, pd.Series(weight, index=range(len(y))[::-1]))
        np.testing.assert_array_equal(own.relative, weight / weight.mean())


def test_structured__takes_rows_and_columns_of_tables() -> None:
    X, y = bits()
    table = pd.DataFrame(np.array(X), columns=["a", "b", "c"]).assign(y=y).sample(frac=1, random_state=1)
    model = StructuredSVM(Bits(), lam=0.1, tolerance=0.05).fit(X, y)
    plain = StructuredSVM(Bits(), lam=0.1, tolerance=0.05).fit([X[i] for i in table.index], [y[i] for i in table.index])
    rows = StructuredSVM(Bits(), lam=0.1, tolerance=0.05).fit(table[["a", "b", "c"]], table["y"])
    np.testing.assert_array_equal(rows.coef_, plain.coef_)
    part = table.iloc[:4]
    assert str(model.predict(part[["a", "b", "c"]])) == str(model.predict([X[i] for i in part.index]))
    assert model.score(part[["a", "b", "c"]], part["y"]) == model.score([X[i] for i in part.index], [*part["y"]])


def test_wrong_oracle__is_found_before_the_solve() -> None:
    class Lazy(Bits):
        def max_oracle(self, x: Any, y: Any, w: Any) -> Any:
            return y

    with pytest.raises(ValueError, match=r"^oracle\.max_oracle: block 0: "):
        StructuredSVM(Lazy()).fit(*bits())


def test_chain__ignores_unknown_attributes_and_counts_unknown_labels() -> None:
    X, y = sentences()
    model = ChainSVM(lam=0.1, tolerance=0.1).fit(X, y)
    more = [[{**token, "never": "seen"} for token in sequence] for sequence in X]
    assert model.predict(more) == model.predict(X)
    with pytest.warns(NothingKnown, match=r"^0 of 1 attributes known: "):
        assert model.predict([[], [{"word": "zebra"}], []])[::2] == [[], []]
    right = model.score(X[:1], y[:1])
    assert model.score(X[:1], [["?"] * len(y[0])]) == 0.0 < right
    with pytest.raises(ValueError, match="X: expected tokens as in training, dicts or lists of attributes"):
        model.predict([np.eye(3)])


def test_chain__keeps_labels_as_they_were_given() -> None:
    rng = np.random.default_rng(0)
    X = [rng.integers(2, size=(4, 5)) for _ in range(8)]
    numbers = ChainSVM(lam="1/n", tolerance=0.1).fit(X, [x[:, 0] for x in X])
    letters = ChainSVM(lam="1/n", tolerance=0.1).fit(
        [sparse.csr_array(x) for x in X], ["".join("ab"[k] for k in x[:, 0]) for x in X]
    )
    assert numbers.predict(X) == [x[:, 0].tolist() for x in X]
    assert [["ab".index(c) for c in row] for row in letters.predict(X)] == numbers.predict(X)
    np.testing.assert_array_equal(numbers.coef_, letters.coef_)
    assert (numbers.coef_.shape, numbers.bias_.shape, numbers.transitions_.shape) == ((5, 2), (3, 2), (2, 2))


@pytest.mark.interpreted
@pytest.mark.parametrize("lam", [0.1, "path"])
def test_multiclass__keeps_sparse_rows_sparse(lam: Any) -> None:
    X, y = blobs()
    X[X < 0.3] = 0.0
    dense, rows = (MulticlassSVM(lam=lam, tolerance=1e-4).fit(some, y) for some in (X, sparse.coo_array(X)))
    np.testing.assert_array_equal(rows.predict(X), rows.predict(sparse.csc_array(X)))
    np.testing.assert_allclose(rows.coef_, dense.coef_, atol=0.05)
    assert rows.path_.sizes["feature"] == dense.path_.sizes["feature"]


def test_multiclass__is_the_same_with_names() -> None:
    X, y = blobs()
    plain = MulticlassSVM(tolerance=0.05).fit(X, y)
    named = MulticlassSVM(tolerance=0.05).fit(X.tolist(), np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(plain.coef_, named.coef_)
    assert "".join(named.predict(X)) == "".join("abc"[k] for k in plain.predict(X))
    scores = plain.decision_function(X)
    np.testing.assert_allclose(scores, X @ plain.coef_.T + plain.intercept_)
    assert MulticlassSVM(tolerance=0.1).fit(X[y < 2], y[y < 2]).decision_function(X).shape == (len(X),)


def test_segmentation__learns_pictures() -> None:
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(4):
        mask = np.zeros((32, 40), np.uint8)
        top, left = rng.integers(4, 14, size=2)
        mask[top : top + 12, left : left + 14] = 1
        noise = rng.integers(0, 60, size=(32, 40, 3))
        X.append((noise + np.where(mask[..., None], [150, 20, 20], [20, 20, 150])).astype(np.uint8))
        y.append(mask)
    model = SegmentationSVM(lam="path", validation=0.25, superpixels=20, colour_words=8, sift_words=8).fit(X, y)
    masks = model.predict(X)
    assert [(mask.shape, mask.dtype) for mask in masks] == [((32, 40), np.uint8)] * 4
    assert model.score(X, y) > 0.7
    assert model.certificate_.holds


def test_structured__takes_bounds_and_coordinates() -> None:
    class First(Bits):
        lower, upper = np.zeros(4), np.full(4, np.inf)

        def features(self, x: Any, y: Any) -> Any:
            return super().features(x, y)[:3]

        def coordinates(self, x: Any) -> Any:
            return np.arange(3)

    X, y = bits()
    model = StructuredSVM(First(), lam=0.1, tolerance=0.1).fit(X, y)
    assert model.coef_[3] == 0.0 <= model.coef_.min()
    assert len(model.predict(X[:2])) == 2
    assert isinstance(model.oracle, StructuredModel)
