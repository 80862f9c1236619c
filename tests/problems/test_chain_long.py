"""Blocks without a Gram matrix: the same norms, the same path, and blocks of any length."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest
from numba import njit
from solved import SINGLE, options_of, path_of, solved
from tiny import chain

from gapwise.stages.model.predict import predict
from gapwise.stages.problems import build
from gapwise.stages.problems.chain import features, stand_ins
from gapwise.stages.problems.chain.features import with_biases
from gapwise.stages.problems.moves import pair_norm2
from gapwise.stages.problems.protocol import JIT
from gapwise.stages.solver.options import Status
from gapwise.storage.results import read_path


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch):
    """both(**facts): the same chain with Gram matrices and, of all blocks of more than one token, without."""

    def made(**facts):
        whole = chain(**facts)
        monkeypatch.setattr(features, "LONGEST", 1)
        other = chain(**facts)
        monkeypatch.undo()
        return whole, other

    return made


@njit(**JIT)
def compiled_norms(problem, i, delta, y, z, work):
    """Every method that reads inner products, in compiled code."""
    return problem.norm2(i, delta), pair_norm2(problem, i, y, z, work)


KINDS = {
    "binary": {"lengths": (3, 1, 6, 2), "width": 4},
    "valued": {"lengths": (3, 1, 7, 2), "width": 9, "valued": True},
    "many labels": {"lengths": (5, 2), "classes": 9, "width": 11},
    "one label": {"lengths": (3, 2), "classes": 1},
    "weights": {"lengths": (2, 3), "arrays_too": {"block_weight": np.array([0.5, 2.0])}},
}


@pytest.mark.interpreted
@pytest.mark.parametrize(("dense", "kind"), [(k % 2 == 0, kind) for k, kind in enumerate(KINDS)])
def test_long_blocks__have_the_norms_of_short_ones(both, kind, dense):
    whole, other = both(**KINDS[kind])
    assert other.gram.size != whole.gram.size
    rng, K, norms2 = np.random.default_rng(0), whole.labels, []
    for i in range(whole.n):
        first, size = whole.label_ptr[i], int(np.diff(whole.local_ptr)[i])
        T = int(whole.label_ptr[i + 1] - first)
        y, z = rng.integers(K, size=(2, T)).astype(whole.truth.dtype)
        delta = rng.normal(size=size) * (dense or rng.random(size) < 0.3)
        values = [compiled_norms(problem, i, delta, y, z, np.empty(size)) for problem in (whole, other)]
        np.testing.assert_allclose(values[1], values[0], rtol=1e-5, atol=1e-6)  # Gram matrices are float32
        norms2.append(values[0])
    assert np.all(np.sum(norms2, axis=0)[: 2 if K > 1 else 1] > 0.0)


@pytest.mark.interpreted
@pytest.mark.parametrize("choices", [{}, {"method": "accelerated"}])
def test_long_blocks__give_the_certified_path_of_short_ones(both, tmp_path: Path, choices: dict):
    """In binary attributes no rounding of inner products hides a difference; sums come in another order."""
    paths, path = [], path_of(**SINGLE)
    for name, problem in zip(("whole", "other"), both(), strict=True):
        assert solved(problem, tmp_path / name, options_of(**choices), path) is Status.CONVERGED
        paths.append(read_path(tmp_path / name / "path.zarr", ("primal", "dual", "gap"))[0])
    for one, two in zip(*(of.values() for of in paths), strict=True):
        np.testing.assert_allclose(two, one, atol=SINGLE["tolerance"])


TOKENS = 40_000


def sequence(words: int = 50) -> tuple[dict, dict]:
    """One sequence of so many tokens, of which a word tells its label nine times out of ten."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=TOKENS)
    word = np.where(rng.random(TOKENS) < 0.9, labels, rng.integers(words, size=TOKENS))
    start, p = np.array([0, TOKENS]), words + 3
    rows = with_biases(word, np.ones(TOKENS, np.int64), start, p)
    return {"labels": labels, "labels_ptr": start, **rows}, {"classes": 3, "attributes": p}


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="so many tokens take minutes without the JIT")
def test_sequence__of_40_000_tokens_is_trained_on_and_predicted(tmp_path: Path):
    arrays, meta = sequence()
    problem = build("chain", arrays, meta)
    assert problem.gram.size == 0
    status = solved(problem, tmp_path, options_of(max_passes=30.0), path_of(rule="single", lam=1e9, tolerance=0.05))
    assert status is Status.CONVERGED
    path, _ = read_path(tmp_path / "path.zarr", ("gap", "weights"))
    assert path["gap"][0] <= 0.05
    rows = {name: arrays[name] for name in ("ids", "counts")}
    bare = build("chain", {**arrays, **stand_ins(**rows), "gram_ptr": np.zeros(2, np.int64)}, meta)
    labels, _ = predict(bare, path["weights"][0])
    assert np.mean(labels == arrays["labels"]) > 0.85
