"""`ChainSVM` on tokens that are rows of floats: the model of sparse rows, from a matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from gapwise import ChainSVM, load_model

pytestmark = pytest.mark.interpreted

Sequences = tuple[list[np.ndarray], list[list[str]]]


@pytest.fixture(scope="module")
def vectors() -> Sequences:
    """Sequences of vectors of nine floats, and their labels."""
    rng = np.random.default_rng(0)
    labels = [rng.integers(3, size=rng.integers(1, 6)) for _ in range(14)]
    X = [(np.eye(3, 9)[some] + rng.normal(size=(some.size, 9))).astype(np.float32) for some in labels]
    return X, [[f"L{k}" for k in some] for some in labels]


@pytest.fixture(scope="module")
def models(vectors: Sequences) -> tuple[ChainSVM, ChainSVM]:
    X, y = vectors
    dense = ChainSVM(lam=1.0, tolerance=1e-6).fit(X, y)
    return dense, ChainSVM(lam=1.0, tolerance=1e-6).fit([sparse.csr_array(x) for x in X], y)


def test_model__is_that_of_sparse_rows(models: tuple[ChainSVM, ChainSVM], vectors: Sequences) -> None:
    dense, rows = models
    X, _ = vectors
    assert "dense" in dense._encoding.meta
    assert "dense" not in rows._encoding.meta
    for name in ("coef_", "bias_", "transitions_"):
        np.testing.assert_allclose(getattr(dense, name), getattr(rows, name), atol=3e-3)
    assert dense.coef_.shape == (9, 3)
    assert dense.predict(X) == rows.predict(X) == dense.predict([sparse.csr_array(x) for x in X])
    for ours, theirs in zip(dense.decision_function(X), rows.decision_function(X), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=3e-2)


def test_saved_model__predicts_the_same(models: tuple[ChainSVM, ChainSVM], vectors: Sequences, tmp_path: Path) -> None:
    dense, (X, _) = models[0], vectors
    dense.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(X) == dense.predict(X)
