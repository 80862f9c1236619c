"""The first run of a new user: an empty home, an empty folder, no setting. Where files go, and no noise of libraries."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_first_run__keeps_its_files_here_says_so_and_warns_of_nothing(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    rows = "\n".join(f"{k % 3},{k % 3}.5,{(7 * k) % 5}" for k in range(12))
    for name in ("train", "test"):
        (here / f"{name}.csv").write_text(rows + "\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GAPWISE_RUNS", "MLFLOW"))}
    env |= {"HOME": str(home), "NUMBA_DISABLE_JIT": "1"}
    words = ["dataset=multiclass_arrays", "dataset.file=train.csv", "dataset.test_file=test.csv", "path.eps=0.5"]
    done = subprocess.run(
        [sys.executable, "-m", "gapwise", *words], cwd=here, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not re.search("warn|mlflow|alembic", done.stderr, re.IGNORECASE), done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["mlflow.db", "mlruns", "runs", "test.csv", "train.csv"]
    assert (
        f"stored  runs in {here / 'runs'} (run.root, $GAPWISE_RUNS) · MLflow in {here / 'mlflow.db'} and mlruns/ beside it"
        in done.stdout
    )
    assert len(list((here / "runs").glob("multiclass_arrays-*/result.json"))) == 1
