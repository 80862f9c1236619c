"""Many noisy blocks from a user's file through every stage, featurize and evaluate included."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from configs import composed

from gapwise.pipeline.run import run

N = 20_000


def test_run__of_many_noisy_blocks_ends_by_itself_and_is_certified(tmp_path: Path) -> None:
    """Three classes that overlap, in columns of noise."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=N + 2000)
    x = rng.normal(size=(labels.size, 4))
    x[:, :2] += 0.3 * (labels[:, None] == [0, 1])
    np.savez(tmp_path / "own.npz", x_train=x[:N], y_train=labels[:N], x_test=x[N:], y_test=labels[N:])
    words = ["dataset=multiclass_arrays", f"dataset.file={tmp_path}/own.npz", "path.eps=0.2", "tracking=none"]
    assert run(composed(*words, f"run.root={tmp_path}/runs")) == 0
    (file,) = (tmp_path / "runs").glob("*/result.json")
    result = json.loads(file.read_text(encoding="utf-8"))
    assert result["problem"]["n"] == N
    assert result["status"] == "LAMBDA_NEGLIGIBLE"
    assert result["verify"]["certified"]
    assert result["verify"]["max_rebuild_error"] < 1e-7
    assert result["evaluate"]["test_loss"] < 0.66  # the classes alone give 2/3
