"""A hundred thousand noisy blocks from a user's files through every stage, featurize and evaluate included."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from configs import composed

from gapwise.pipeline.run import run

N = 100_000
pytestmark = [pytest.mark.slow, pytest.mark.long]


def rows(folder: Path) -> list[str]:
    """Three classes that overlap, in columns of noise."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=N + 2000)
    x = rng.normal(size=(labels.size, 4))
    x[:, :2] += 0.3 * (labels[:, None] == [0, 1])
    train, test = slice(N), slice(N, None)
    np.savez(folder / "train.npz", x_train=x[train], y_train=labels[train], x_test=x[test], y_test=labels[test])
    return ["dataset=multiclass_arrays", f"dataset.file={folder}/train.npz"]


def sequences(folder: Path) -> list[str]:
    """Two words each; half of the words say their label, the others one drawn anew."""
    rng = np.random.default_rng(0)

    def write(name: str, n: int) -> None:
        labels = rng.integers(3, size=(n, 2))
        words = np.where(rng.random((n, 2)) < 0.5, labels, rng.integers(3, size=(n, 2)))
        text = (
            "\n".join(f"{'ABC'[y]}\tw={w}" for y, w in zip(*pair, strict=True))
            for pair in zip(labels, words, strict=True)
        )
        (folder / name).write_text("\n\n".join(text) + "\n", encoding="utf-8")

    write("train.txt", N)
    write("test.txt", 2000)
    return ["dataset=sequences_csv", f"dataset.file={folder}/train.txt", f"dataset.test_file={folder}/test.txt"]


@pytest.mark.parametrize("data", [rows, sequences])
def test_run__of_many_noisy_blocks_ends_by_itself_and_is_certified(
    tmp_path: Path, data: Callable[[Path], list[str]]
) -> None:
    words = ["path=regpath", "path.eps=0.2", "tracking=none", f"run.root={tmp_path}/runs", *data(tmp_path)]
    assert run(composed(*words)) == 0
    (file,) = (tmp_path / "runs").glob("*/result.json")
    result = json.loads(file.read_text(encoding="utf-8"))
    assert result["problem"]["n"] == N
    assert result["status"] == "LAMBDA_NEGLIGIBLE"
    assert result["verify"]["certified"]
    assert result["verify"]["max_rebuild_error"] < 1e-7
    assert result["evaluate"]["test_loss"] < 0.66  # the classes alone give 2/3
