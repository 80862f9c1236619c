"""A sweep from the command line: its runs resume one by one, a failed one stops no other, the rest make figures."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from configs import composed
from fake_runs import fake_run
from omegaconf import OmegaConf
from real_runs import Done

from gapwise.pipeline.config.run_options import ConfigError, SweepOptions
from gapwise.pipeline.config.settings import CONF, read
from gapwise.pipeline.run import experiment_name
from gapwise.pipeline.rundir import RunDir, read_json, write_json
from gapwise.pipeline.stage_graph import flow
from gapwise.pipeline.sweep import table
from gapwise.pipeline.sweep.run import is_complete
from gapwise.pipeline.sweep.workers import one_run
from gapwise.stages.certify.verdict import Doubt

TEXTS = {path.stem: path.read_text() for path in (CONF / "experiment").glob("*.yaml")}
SWEEPS = sorted(name for name, text in TEXTS.items() if "\nsweep:" in text)
SMALL = (
    "+experiment=compare_family", "dataset=sequences_csv", "dataset.file=train.txt", "dataset.test_file=train.txt",
    "tracking=none", "sweep.only=[bcfw,bcpfw_gap]", "path.lambda=0.1,1/n", "solver.max_passes=12", "sweep.workers=1",
    "snapshots.rebase_passes=1",
)  # fmt: skip


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """Words of a small sweep in the current folder."""
    lines = ["P\tw=a\tw=b\nQ\tw=b\n", "Q\tw=c\n", "P\tw=a\nP\tw=c\nQ\tw=b\n", "Q\tw=b\nP\tw=d\n"]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAPWISE_RUNS", str(tmp_path / "runs"))
    return SMALL


@pytest.fixture
def sweep(given, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """sweep(*more, words=…): how the sweep's command ends, its runs one after the other in this process."""

    def one_by_one(tasks, workers, folder, stop, ended, waiting_for, far) -> None:
        for task in tasks:
            ended(task.number, one_run(task, "sweep"))

    monkeypatch.setattr("gapwise.pipeline.sweep.run.run_tasks", one_by_one)
    return lambda *more, words=words: given(*words, *more)


def summary(folder: Path) -> dict:
    (file,) = folder.glob("runs/sweeps/*/summary.json")
    return json.loads(file.read_text())


def invocations(folder: Path) -> dict[str, int]:
    return {path.name: len(list((path / "invocations").iterdir())) for path in folder.glob("runs/sequences_csv-*")}


def test_sweep__ends_in_a_table_skips_what_is_complete_and_goes_on_past_a_failed_run(tmp_path: Path, sweep) -> None:
    done = sweep("seed=1")
    assert done.code == 0, done.err
    folder = Path(done.out.splitlines()[-1].removeprefix("sweep: "))
    assert folder.parent == tmp_path / "runs" / "sweeps"
    assert (folder / "figures" / "gaps.png").stat().st_size > 10_000
    outcome = summary(tmp_path)
    assert (outcome["runs"], outcome["failed"]) == (4, 0)
    assert {(row["variant"], row["lambda"]) for row in outcome["table"]} == {
        (name, lam) for name in ("bcfw", "bcpfw_gap") for lam in ("0.1", "1/n")
    }
    assert {row["value"] for row in outcome["table"]} == {0.1, 0.25}
    with (folder / "runs.csv").open() as file:
        made = [*csv.DictReader(file)]
    assert [row["status"] for row in made] == ["done"] * 4
    assert all(float(row["load"]) >= 0.0 and row["made"].count("-") == 2 for row in made), "of which machine and day"

    unsolved, other, without = (Path(outcome["jobs"][k]["run"]) for k in (0, 1, 3))
    manifest = json.loads((unsolved / "manifest.json").read_text())
    manifest["stages"].pop("solve")
    manifest.pop("seal")
    write_json(unsolved / "manifest.json", manifest, seal=True)
    again = sweep("seed=1")
    assert again.code == 0
    assert "4 runs, 3 complete; 1 workers\n" in again.err
    assert invocations(tmp_path) == {name: 1 + (name == unsolved.name) for name in invocations(tmp_path)}

    manifest = json.loads((other / "manifest.json").read_text())
    manifest["science"]["seed"], manifest["key"] = 99, "0" * 64
    manifest["stages"].pop("solve")
    manifest.pop("seal")
    write_json(other / "manifest.json", manifest, seal=True)
    (without / "manifest.json").unlink()
    failed = sweep("seed=1")
    assert failed.code == 1, "one run failed, the others did not"
    assert "FAILED bcpfw_gap path.lambda=0.1: " in failed.out
    assert "belongs to another run" in failed.out
    assert "Traceback" not in failed.err
    outcome = summary(tmp_path)
    assert [job["status"] for job in outcome["jobs"]] == ["complete", "failed", "complete", "done"]
    assert outcome["figures"] == ["gaps.png"]


@pytest.mark.slow
def test_sweep__killed_goes_on_where_it_was_and_is_shown_without_features(tmp_path: Path, words, sweep) -> None:
    more = ("path.lambda=0.1", "seed=0,1")
    started = [sys.executable, "-m", "gapwise", *words, *more]
    process = subprocess.Popen(started, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("1/4"):
            break
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(30)
    process.stderr.close()
    assert not psutil.wait_procs(workers, timeout=60)[1], "its workers end with it"
    done = sweep(*more)
    assert done.code == 0, done.err
    jobs = summary(tmp_path)["jobs"]
    complete = [job["status"] for job in jobs].count("complete")
    assert 1 <= complete < 4
    assert {job["status"] for job in jobs} == {"complete", "done"}

    shutil.rmtree(tmp_path / "runs" / "features")
    shown = sweep(*more)
    assert shown.code == 0, shown.err
    assert {job["status"] for job in summary(tmp_path)["jobs"]} == {"complete"}, (
        "of keys that the number of blocks is in"
    )
    assert not (tmp_path / "runs" / "features").exists(), "a sweep whose runs are there needs no features"


def test_multirun__names_runs_by_what_tells_them_apart_and_does_none_twice(sweep, tmp_path: Path) -> None:
    words = ("-m", *SMALL[1:5], "sweep.workers=1", "path.eps=0.5")
    done = sweep("seed=1", "path.kappa=0.9,-1", "compute=serial,threads", words=words)
    assert done.code == 2, done.err
    assert "error: path.kappa=-1 compute=serial: path.kappa: expected" in done.err
    (table,) = tmp_path.glob("runs/sweeps/*/runs.csv")
    with table.open() as file:
        assert {row["name"]: row["status"] for row in csv.DictReader(file)} == {
            "path.kappa=0.9 compute=serial": "done", "path.kappa=0.9 compute=threads": "done",
            "path.kappa=-1 compute=serial": "refused", "path.kappa=-1 compute=threads": "refused",
        }  # fmt: skip
    (run,) = tmp_path.glob("runs/*/manifest.json")
    (invocation,) = (run.parent / "invocations").iterdir()
    assert "- seed=1" in (invocation / ".hydra" / "overrides.yaml").read_text()


def test_multirun__with_nothing_that_can_run_leaves_nothing(sweep, tmp_path: Path) -> None:
    for more in (("path.eps=-1,-2",), ("sweep.workers=0", "seed=1,2")):
        done = sweep(*more, words=("-m", *SMALL[1:5]))
        assert done.code == 2, done.err
        assert "expected" in done.err
        assert done.out == ""
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("experiment", SWEEPS)
def test_plan__every_sweep_of_conf_is_good(planned, experiment: str) -> None:
    root = ["dataset.root=somewhere"] if "root" in composed(f"+experiment={experiment}").dataset else []
    jobs = planned(f"+experiment={experiment}", "seed=0", *root)
    assert [job.error for job in jobs] == [""] * len(jobs)
    variants = composed(f"+experiment={experiment}").sweep.variants
    assert {job.variant for job in jobs} == {*variants}
    assert len({job.settings.run_key({}) for job in jobs}) == len({job.name for job in jobs}) == len(jobs)
    assert {job.settings.path.lam for job in jobs if job.lam == "1/n"} <= {1 / 626}
    assert {read(OmegaConf.create(job.config)).tracking.kind for job in jobs} == {"none"}


def test_plan__variants_come_within_values_within_data_sets_and_each_once(planned) -> None:
    words = ("+sweep.variants.a=[solver=bcfw_gap,solver.max_passes=7]", "+sweep.variants.b=[path.relative=true]",
             "+sweep.variants.p=[path=regpath,path.eps=0.2,path.lambda=0.01,path.tolerance=0.1,seed=3]",
             "+sweep.datasets.small=[dataset.size=small,solver.step=away]", "+sweep.datasets.large=[dataset.size=large]",
             "dataset=ocr", "dataset.root=x", "path=single", "solver=bcfw", "path.lambda=1/n", "path.tolerance=0.5,1e-3",
             "seed=3,4")  # fmt: skip
    jobs = planned(*words, "sweep.only=[small,a,p]")
    assert [job.name for job in jobs] == [
        "small a path.tolerance=0.5 seed=3", "small p", "small a path.tolerance=0.5 seed=4",
        "small a path.tolerance=0.001 seed=3", "small a path.tolerance=0.001 seed=4",
    ]  # fmt: skip
    first, path = (job.settings for job in jobs[:2])
    assert (first.solver.name, first.solver.step, first.solver.max_passes) == ("bcfw_gap", "away", 7)
    assert (path.path.rule, path.path.eps, jobs[1].lam, jobs[0].lam) == ("two_sided", 0.2, "", "1/n")
    assert [table.row(job, None)["tolerance"] for job in jobs[:2]] == [0.5, None]
    jobs = planned(*words[:2], *words[3:], "sweep.only=[b]")
    assert {(job.dataset, job.settings.path.relative) for job in jobs} == {("small", True), ("large", True)}


def test_jobs__are_composed_as_hydra_alone_composes_them(planned) -> None:
    """Jobs that choose the same presets share a composition, whatever the order of their words."""
    words = ("dataset=ocr", "dataset.root=x", "path=single")
    values = ("path.lambdas=[]", "figures.formats=[png,pdf]", "~path.end", "++path.end=whole")
    for job in planned("-m", *words, *values, "solver=bcfw_gap,bcpfw_gap", "path.lambda=0.5,0.25", "seed=1,2"):
        alone = composed(*job.overrides, "compute.workers=1", "tracking=none")
        alone.sweep = None
        assert {**job.config, "compute": None} == {**OmegaConf.to_container(alone, resolve=True), "compute": None}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"figure": "bars"}, "sweep.figure: expected one of frontier, methods, .*, work, got 'bars'"),
        ({"only": ["q"]}, "sweep.only: no variant 'q'; there are: a"),
        ({"datasets": {"a": []}}, "sweep.datasets: there is a variant named 'a' too"),
        ({"workers": 0}, "sweep.workers: expected an integer >= 1, or null, got 0"),
    ],
)
def test_sweep_options__name_the_key(wrong: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SweepOptions(variants={"a": []}, **wrong).check()


def test_data_sets__that_are_not_there_are_left_out_unless_they_are_asked_for(given, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAPWISE_DATA", str(tmp_path))
    done = given("+experiment=compare_solvers_quick", "sweep.only=[]")
    assert done.code == 2
    assert done.err.count("sweep: left out ") == 4
    assert "sweep.datasets: none of them can be read; give dataset.root or set GAPWISE_DATA" in done.err
    done = given("+experiment=compare_solvers_quick", "sweep.only=[ocr_small,bcfw]", "path.lambda=0.1")
    assert done.code == 1
    assert done.err.startswith("error: ocr_small bcfw: ")


def test_solve__out_of_time_is_done_only_for_snapshots_and_goes_on_with_more_seconds() -> None:
    facts = {"status": "TIME_LIMIT", "max_seconds": 2.0, "solved": False}

    def more(*words: str, **changes) -> bool:
        settings = read(composed("dataset=ocr", "dataset.root=x", *words))
        return flow()["solve"].has_more({"solve": {**facts, **changes}}, settings)

    assert not more("solver.max_seconds=2", "run.until=solve")
    assert more("solver.max_seconds=3", "run.until=solve")
    assert more("solver.max_seconds=2"), "verify needs a solved path"
    assert not more("solver.max_seconds=2", solved=True)
    assert not more("solver.max_seconds=3", status="CONVERGED")


def test_sweep__does_a_run_again_whose_last_wanted_stage_left_something_that_has_changed(tmp_path: Path) -> None:
    """As the run's own command does."""
    settings = read(composed("dataset=ocr", "dataset.root=x", "run.until=verify"))
    run = fake_run(tmp_path)
    write_json(run / "verify.json", {"certified": True})
    manifest = read_json(run / "manifest.json", seal=True)
    digest = hashlib.sha256((run / "verify.json").read_bytes()).hexdigest()
    manifest["stages"]["verify"]["outputs"] = {"verify.json": digest}
    write_json(run / "manifest.json", manifest, seal=True)
    assert is_complete(RunDir(run, manifest["key"]), settings)
    write_json(run / "verify.json", {"certified": False})
    assert not is_complete(RunDir(run, manifest["key"]), settings)


def test_science__has_of_snapshots_what_their_numbers_depend_on() -> None:
    def science(*words: str) -> dict:
        return read(composed("dataset=ocr", "dataset.root=x", *words)).science

    assert "snapshots" not in science("snapshots.test=true")
    assert science("snapshots.every_passes=1", "snapshots.keep=false")["snapshots"] == {"every_passes": 1.0}
    more = science("snapshots.every_passes=1", "snapshots.every_share=0.1", "snapshots.test=true")
    assert more["snapshots"] == {"every_passes": 1.0, "every_share": 0.1, "test": True}


def test_table__ranks_by_validation_loss_and_gives_mean_and_deviation_of_seeds() -> None:
    columns = dict.fromkeys(("breakpoints", "passes", "gap", "best_lambda", "solve_seconds"), 1)
    also = {"status": "done", "error": "", "run": "", "doubt": "", "budget": "", "solve_status": ""}
    losses = {"a seed=1": (0.3, 0.1), "a seed=2": (0.1, 0.3), "b seed=1": (0.2, 0.0), "c": (None, 0.05)}
    rows = [
        {**columns, **also, "name": name, "validation_loss": held_out, "test_loss": test}
        for name, (held_out, test) in losses.items()
    ]
    text = table.lines(rows, 1.0)
    assert [line.split("  ")[0] for line in text[1:5]] == ["a seed=2", "b seed=1", "a seed=1", "c"]
    assert text[5] == "a, 2 seeds: validation loss 0.2 ± 0.14"
    assert text[6] == "a, 2 seeds: test loss 0.2 ± 0.14"
    assert len(text) == 8


def test_table__names_the_budget_of_runs_that_were_cut_off_and_says_where_budgets_differ() -> None:
    def row(name: str, status: str, budget: str, doubt: str = "") -> dict:
        numbers = {
            "validation_loss": None,
            "breakpoints": 1,
            "passes": 60.0,
            "gap": 0.2,
            "best_lambda": 1.0,
            "test_loss": 0.1,
            "solve_seconds": 1.0,
        }
        return {
            "name": name,
            "status": "done",
            "error": "",
            "run": f"runs/{name}",
            **numbers,
            "solve_status": status,
            "budget": budget,
            "certified": not doubt,
            "doubt": doubt,
        }

    cut, good = row("a", "PASS_LIMIT", "60 passes", Doubt.UNFINISHED), row("b", "CONVERGED", "60 passes")
    text = table.lines([cut, good], 1.0)
    assert "gap" in text[0].split()
    assert text[3] == "not to the tolerance within 60 passes: a; gap and losses are those at that limit"
    assert not any("budgets differ" in line for line in text)
    text = table.lines([cut, row("b", "CONVERGED", "")], 1.0)
    assert text[4] == "budgets differ (60 passes; no limit): compare runs of the same budget only"
    assert len(table.lines([good, row("b", "CONVERGED", "")], 1.0)) == 4, "nothing was cut off"
    text = table.lines([good, {**cut, "solve_status": "STALLED"}], 1.0)
    assert text[3] == "not to the tolerance, because exact passes no longer lowered the gap: a"
    assert len(text) == 5
    text = table.lines([good, {**cut, "gap": None, "doubt": Doubt.NO_DUAL_POINT}], 1.0)
    assert text[2].split()[4] == "–"
    assert text[3] == "without a dual point, so nothing is certified: a; losses are those after 60 passes"
    text = table.lines([good, row("c", "CONVERGED", "", Doubt.ESTIMATE)], 1.0)
    assert text[3] == "not certified, gaps are estimates: c"


def test_launch__leaves_no_experiment_to_later_runs_of_its_process(given, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = given("-m", "+experiment=regpath_horseseg", "seed=1,2", "path.eps=-1", f"run.root={tmp_path}/runs")
    assert done.code == 2
    assert experiment_name() is None
