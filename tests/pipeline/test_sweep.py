"""A sweep from outside: its runs resume singly, one that fails stops no other, and figures come of the rest."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from configs import composed

from pipeline.config.run_options import ConfigError
from pipeline.config.settings import CONF
from pipeline.sweep.plan import SweepOptions, plan, sweep_options
from stages.reports.comparison import band, compare, first_at

ROOT = CONF.parent
SWEEPS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml") if "\nsweep:" in path.read_text())
SMALL = (
    "+experiment=compare_family", "dataset=sequences_csv", "dataset.file=train.txt", "dataset.test_file=train.txt",
    "tracking=none", "sweep.only=[bcfw,bcpfw_gap]", "sweep.lambdas=[0.1,1/n]", "sweep.passes=12", "sweep.workers=1",
    "sweep.rebase_passes=1",
)  # fmt: skip


def command(folder: Path, *words: str) -> list[str]:
    lines = ["P\tw=a\tw=b\nQ\tw=b\n", "Q\tw=c\n", "P\tw=a\nP\tw=c\nQ\tw=b\n", "Q\tw=b\nP\tw=d\n"]
    (folder / "train.txt").write_text("\n".join(lines))
    return [sys.executable, "-m", "pipeline", *SMALL, *words]


def sweep(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(folder / "runs")}
    return subprocess.run(command(folder, *words), cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def summary(folder: Path) -> dict:
    (found,) = folder.glob("runs/sweeps/*/summary.json")
    return json.loads(found.read_text())


def attempts(folder: Path) -> dict[str, int]:
    return {path.name: len(list((path / "attempts").iterdir())) for path in folder.glob("runs/sequences_csv-*")}


def test_sweep__ends_in_a_table_and_figures_and_skips_what_is_complete(tmp_path: Path) -> None:
    done = sweep(tmp_path, "sweep.seeds=[0,1]")
    assert done.returncode == 0, done.stderr
    place = Path(done.stdout.splitlines()[-1].removeprefix("sweep: "))
    assert place.parent == tmp_path / "runs" / "sweeps"
    assert (place / "figures" / "gaps.png").stat().st_size > 10_000
    found = summary(tmp_path)
    assert (found["runs"], found["failed"]) == (8, 0)
    assert {(row["variant"], row["lambda"]) for row in found["table"]} == {
        (name, lam) for name in ("bcfw", "bcpfw_gap") for lam in ("0.1", "1/n")
    }
    assert {row["value"] for row in found["table"]} == {0.1, 0.25}
    with (place / "runs.csv").open() as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["done"] * 8

    gone = Path(found["jobs"][3]["run"])
    manifest = json.loads((gone / "manifest.json").read_text())
    manifest["stages"].pop("solve")
    manifest.pop("seal")
    (gone / "manifest.json").write_text(json.dumps(manifest))
    again = sweep(tmp_path, "sweep.seeds=[0,1]")
    assert again.returncode == 0
    assert "8 runs, 7 complete" in again.stderr
    assert attempts(tmp_path) == {name: 1 + (name == gone.name) for name in attempts(tmp_path)}


def test_sweep__goes_on_past_a_failed_run_and_says_so(tmp_path: Path) -> None:
    done = sweep(tmp_path, "sweep.seeds=[0]")
    assert done.returncode == 0, done.stderr
    bad = Path(summary(tmp_path)["jobs"][1]["run"])
    other = json.loads((bad / "manifest.json").read_text())
    other["science"]["seed"], other["key"] = 99, "0" * 64
    other["stages"].pop("solve")
    other.pop("seal")
    (bad / "manifest.json").write_text(json.dumps(other))
    last = Path(summary(tmp_path)["jobs"][3]["run"])
    (last / "manifest.json").unlink()
    done = sweep(tmp_path, "sweep.seeds=[0]")
    assert done.returncode == 1
    assert "FAILED bcpfw_gap λ=0.1 seed=0: " in done.stdout
    assert "belongs to another run" in done.stdout
    assert "Traceback" not in done.stderr
    found = summary(tmp_path)
    assert [job["status"] for job in found["jobs"]] == ["complete", "failed", "complete", "done"]
    assert found["figures"] == ["gaps.png"]


def test_sweep__killed_goes_on_where_it_was(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(tmp_path / "runs")}
    words = command(tmp_path, "sweep.seeds=[0,1,2]")
    process = subprocess.Popen(
        words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("2/12"):
            break
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stderr.close()
    time.sleep(2.0)  # its workers notice
    done = sweep(tmp_path, "sweep.seeds=[0,1,2]")
    assert done.returncode == 0, done.stderr
    jobs = summary(tmp_path)["jobs"]
    complete = [job["status"] for job in jobs].count("complete")
    assert 2 <= complete < 12
    assert {job["status"] for job in jobs} == {"complete", "done"}


def test_sweep__refuses_what_it_does_not_know(tmp_path: Path) -> None:
    for words, message in (
        (("sweep.only=[none]",), "sweep.only: no variant 'none'; there are: bcfw, "),
        (("sweep.lambdas=[2/n]",), "sweep.lambdas: expected numbers > 0 or 1/n, got '2/n'"),
        (("+sweep.seed=1",), "sweep.seed: unknown key"),
    ):
        done = sweep(tmp_path, *words)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("experiment", SWEEPS)
def test_plan__every_sweep_of_conf_is_good(experiment: str) -> None:
    given = [f"+experiment={experiment}", "dataset.root=somewhere", "sweep.workers=1"]
    options = sweep_options(composed(*given))
    jobs = plan(options, given, lambda words: composed(*words), 626, {}, experiment)
    each = max(len(options.lambdas), 1) * max(len(options.tolerances), 1) * len(options.seeds)
    assert len(jobs) == len(options.variants) * each + len(options.paths)
    assert len({job.settings.run_key({}) for job in jobs}) == len(jobs)
    assert {job.settings.path.lam for job in jobs if job.lam == "1/n"} <= {1 / 626}
    for job in jobs:
        assert job.settings.tracking.kind == "none"
        if options.rebase_passes:
            assert job.settings.solver.rebase_steps == round(626 * options.rebase_passes)


def test_plan__tells_tolerances_apart_and_takes_paths_as_they_are() -> None:
    options = SweepOptions(
        variants={"a": ["solver=bcfw_gap", "path=single"], "b": ["path=single", "path.relative=true"]},
        paths={"p": ["path=regpath", "path.eps=0.2"]}, lambdas=["1/n"], tolerances=[0.1, 1e-3], seeds=[3, 4], passes=7,
    )  # fmt: skip
    options.check()
    given = ["dataset=ocr", "dataset.root=x", "run.until=solve"]
    *solves, path = plan(options, given, lambda words: composed(*words), 5, {}, "x")
    assert [(job.variant, job.tolerance, job.seed) for job in solves] == [
        (name, tolerance, seed) for seed in (3, 4) for tolerance in (0.1, 1e-3) for name in ("a", "b")
    ]
    assert [job.settings.path.tolerance for job in solves] == 2 * [0.1, 0.1, 1e-3, 1e-3]
    assert {(job.settings.solver.max_passes, job.settings.run.until) for job in solves if job.variant == "a"} == {
        (7, "solve")
    }
    assert solves[2].name == "a λ=1/n tolerance=0.001 seed=3"
    assert (path.name, path.settings.path.kind, path.settings.path.eps, path.seed) == ("p seed=3", "regpath", 0.2, 3)
    assert (path.settings.solver.max_passes, path.settings.run.until) == (float("inf"), "verify")
    (only,) = plan(dataclasses.replace(options, only=["p"]), given, lambda words: composed(*words), 5, {}, "x")
    assert only.variant == "p"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tolerances": [0.1, 0.0]}, "sweep.tolerances: expected numbers > 0, got 0.0"),
        ({"paths": {"a": []}}, "sweep.paths: there is a variant named 'a' too"),
        ({"only": ["q"], "paths": {"p": []}}, "sweep.only: no variant 'q'; there are: a, p"),
    ],
)
def test_sweep_options__name_the_key(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SweepOptions(variants={"a": []}, **wrong).check()


def test_plan__refuses_the_same_run_twice() -> None:
    options = SweepOptions(variants={"a": []}, seeds=[1, 1])
    with pytest.raises(ConfigError, match="asked for twice"):
        plan(options, ["dataset=ocr", "dataset.root=x", "path=single"], lambda words: composed(*words), 3, {}, "x")


def test_band__is_the_median_between_the_extremes() -> None:
    import numpy as np

    x = np.arange(5.0)
    traces = [{"passes": x, "gap": scale * 10.0**-x} for scale in (1.0, 4.0, 2.0)]
    at, middle, least, most = band(traces, "passes")
    np.testing.assert_allclose(middle, 2.0 * 10.0**-at)
    np.testing.assert_allclose(least, 10.0**-at)
    np.testing.assert_allclose(most, 4.0 * 10.0**-at)
    assert first_at(traces[0], "passes", 0.01) == 2.0
    assert first_at(traces[0], "passes", 1e-9) == np.inf


def test_compare__says_which_run_has_no_gaps(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no gap trace here"):
        compare("methods", [("a", "", 0, tmp_path)], tmp_path)
