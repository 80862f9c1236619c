"""The whole command with its root on an object store: the same bits as a local run, and it goes on after a stop."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from equality import assert_same_path

from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.run import run
from gapwise.storage.backend import Location, location
from gapwise.storage.files import tree_files

WORDS = [
    *("dataset=sequences_csv", "dataset.file=train.txt", "dataset.test_file=train.txt", "tracking=none"),
    *(
        "compute=serial",
        "path.eps=0.05",
        "path.lambda_min=0.05",
        "solver.rebase_steps=50",
        "checkpoint.every_seconds=0",
    ),
]


def the_run(root: str) -> Location:
    (found,) = location(root).glob("sequences_csv-*")
    return found


def test_memory__gives_the_bits_of_a_disk(tmp_path: Path, cache: Path, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    words = (
        "".join(f"{'PQR'[rng.integers(3)]}\tw={'abcde'[rng.integers(5)]}\n" for _ in range(rng.integers(2, 6)))
        for _ in range(12)
    )
    (tmp_path / "train.txt").write_text("\n".join(words))
    monkeypatch.chdir(tmp_path)
    disk, memory = (composed(*WORDS, f"run.root={root}") for root in ("runs", "memory://e2e/runs"))
    assert run(disk) == 0
    with monkeypatch.context() as patch:
        asked = itertools.count()
        patch.setattr(
            Stop, "__call__", lambda self: any(location("memory://e2e/runs").glob("*/state")) and next(asked) > 3
        )
        assert run(memory) == 130
    found = the_run("memory://e2e/runs")
    assert not (found / "path.zarr").is_dir(), "it was done before it could be stopped"
    assert run(memory) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"run: {found}"
    assert_same_path(the_run("runs"), found)
    for name in ("metrics.json", "verify.json"):
        assert (found / name).read_bytes() == (the_run("runs") / name).read_bytes(), name
    assert len(list((found / "invocations").iterdir())) == 2
    before = tree_files(found.parent)
    assert run(memory) == 0  # complete: at once, and nothing is touched
    assert tree_files(found.parent) == before
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "train.txt", cache.name}
