"""`sweep.cv`: which runs a cross-validation consists of, what it refuses, and that it goes on where it was killed."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from omegaconf import OmegaConf

from gapwise import load_model, open_path
from gapwise.pipeline.config.settings import CONF, read
from gapwise.stages.choice.rules import picked

OCR = ("dataset=ocr", "dataset.root=x")


def test_folds__are_one_ordinary_run_each_and_one_on_all_blocks(planned) -> None:
    jobs = planned(*OCR, "sweep.cv=4", "sweep.workers=1", "seed=3", "run.refit=true", "run.criterion=token_error",
                   "run.pick=one_se")  # fmt: skip
    assert [job.name for job in jobs] == [*(f"fold {k} of 4" for k in range(4)), "all training blocks"]
    settings = [read(OmegaConf.create(job.config)) for job in jobs]
    for k, own in enumerate(settings[:4]):
        alone = read(
            composed(*OCR, "seed=3", f"dataset.validation={{folds: 4, fold: {k}}}", "run.criterion=token_error")
        )
        assert own.run_key({}) == alone.run_key({})
        assert own.tracking.kind == "none"
    assert settings[4].run_key({}) == read(composed(*OCR, "seed=3", "run.criterion=token_error")).run_key({})
    assert jobs[4].settings.asks_for_refit
    assert not any(own.refits for own in settings), "that comes once lambda is chosen"
    assert {(own.run.pick, own.pick) for own in settings} == {("one_se", "least")}, "the error is that of all folds"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sweep.cv=1",), "sweep.cv: expected a number of folds >= 2, or null, got 1"),
        (("sweep.cv=5", "dataset.validation=fold"), "dataset.validation: sweep.cv=5 makes splits of its own; add"),
        (("sweep.cv=5", "run.until=solve"), "run.until: sweep.cv=5 needs the losses of whole runs; leave it out"),
        (("sweep.cv=5", "+experiment=grid_ocr_warm_starts"), "sweep.cv: validates one configuration, and this"),
        (("sweep.cv=700",), "sweep.cv: 700 folds of 626 training blocks; ask for at most as many folds as blocks"),
    ],
)
def test_folds__are_refused_before_any_begins(
    given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gapwise.pipeline.sweep.run.count_blocks", lambda settings, source, stop: 626)
    monkeypatch.setattr("gapwise.pipeline.data.source_of", lambda settings: {})
    done = given(*OCR, *words)
    assert (done.code, done.out) == (1 if "700" in words[0] else 2, "")
    assert says in done.err
    assert not (tmp_path / "runs").exists()


def start(folder: Path) -> subprocess.Popen[str]:
    lines = ["P\tw=a\tw=b\nQ\tw=b\n", "Q\tw=c\n", "P\tw=a\nP\tw=c\nQ\tw=b\n", "Q\tw=b\nP\tw=d\n"]
    (folder / "train.txt").write_text("\n".join(3 * lines))
    words = ["dataset=sequences_csv", "dataset.file=train.txt", "dataset.test_file=train.txt", "tracking=none"]
    words += ["sweep.cv=2", "sweep.workers=1", "path.eps=0.3"]
    env = {**os.environ, "PYTHONPATH": str(CONF.parent), "GAPWISE_RUNS": str(folder / "runs"), "NUMBA_DISABLE_JIT": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", *words], cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.slow
def test_cross_validation__killed_goes_on_and_ends_in_a_table_and_a_figure(tmp_path: Path) -> None:
    process = start(tmp_path)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("1/3"):
            break
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    time.sleep(2.0)  # its workers notice
    process = start(tmp_path)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    (begun,) = (line for line in err.splitlines() if line.startswith("sweep: "))
    assert begun.startswith(("sweep: 3 runs, 1 complete", "sweep: 3 runs, 2 complete"))
    folder = Path(out.splitlines()[-1].removeprefix("sweep: "))
    validation = json.loads((folder / "cross_validation.json").read_text())
    with (folder / "cross_validation.csv").open() as file:
        assert [float(row["lambda"]) for row in csv.DictReader(file)] == validation["lambda"]
    assert (folder / "figures" / "cross_validation.png").stat().st_size > 10_000
    summary = json.loads((folder / "summary.json").read_text())
    refit = summary["refit"]  # sequences of one's own are refitted unless told otherwise
    columns = [np.array(validation[name]) for name in ("lambda", "validation_loss", "standard_error")]
    assert refit["lambda"] == validation["best_lambda"] == columns[0][picked("parabola", *columns)]
    assert refit["gap"] <= 1e-3 * refit["dual"]
    model, path = load_model(folder / "model"), open_path(folder / "refit")
    assert model.weights.tobytes() == path["weights"].values[0].tobytes()
    assert (path.attrs["n"], model.certificate["certified"], model.certificate["relative"]) == (12, True, True)
    assert f"best  λ {validation['best_lambda']:.3g} (" in out
