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

from gapwise import load_model, open_path
from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import CONF, read
from gapwise.pipeline.sweep.folds import asks_for_folds, checked, plan_folds
from gapwise.stages.choice.rules import picked
from gapwise.stages.datasets import DataError

OCR = ("dataset=ocr", "dataset.root=x")


def test_plan__is_one_ordinary_run_a_fold_and_one_on_all_blocks() -> None:
    cfg = composed(*OCR, "sweep.cv=4", "sweep.workers=1", "seed=3")
    assert asks_for_folds(cfg)
    assert not asks_for_folds(composed(*OCR))
    settings = checked(cfg, "regpath_ocr")
    jobs, workers = plan_folds(cfg, settings, {}, 626)
    assert workers == 1
    assert [job.name for job in jobs] == [*(f"fold {k} of 4" for k in range(4)), "all training blocks"]
    for k, job in enumerate(jobs[:4]):
        alone = read(composed(*OCR, "seed=3", f"dataset.validation={{folds: 4, fold: {k}}}"))
        assert job.settings.run_key({}) == alone.run_key({})
        assert job.settings.tracking.kind == "none"
    assert jobs[4].settings.run_key({}) == read(composed(*OCR, "seed=3")).run_key({})
    assert plan_folds(composed(*OCR, "sweep.cv=2", "sweep.workers=9"), settings, {}, 626)[1] == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("sweep.cv=1",), r"sweep\.cv: expected a number of folds >= 2, or null, got 1"),
        (("sweep.cv=5", "dataset.validation=fold"), r"dataset\.validation: sweep\.cv=5 makes splits of its own; add"),
        (("sweep.cv=5", "run.until=solve"), r"run\.until: sweep\.cv=5 needs the losses of whole runs; leave it out"),
        (("sweep.cv=5", "+experiment=grid_ocr_warm_starts"), r"sweep\.cv: validates one configuration, and this"),
    ],
)
def test_checked__refuses_what_cannot_be_cross_validated(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        checked(composed(*OCR, *words), None)


def test_plan__refuses_more_folds_than_blocks_and_refits_none_alone() -> None:
    cfg = composed(*OCR, "sweep.cv=7", "run.refit=true", "run.criterion=token_error", "run.pick=one_se")
    settings = checked(cfg, None)
    assert settings.asks_for_refit
    jobs = [job.settings for job in plan_folds(cfg, settings, {}, 626)[0] if job.settings is not None]
    assert not any(job.refits for job in jobs)
    assert {(job.run.pick, job.pick) for job in jobs} == {("one_se", "least")}, "the error is that of all folds"
    with pytest.raises(DataError, match=r"sweep\.cv: 7 folds of 5 training blocks; ask for at most as many folds"):
        plan_folds(cfg, settings, {}, 5)


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
