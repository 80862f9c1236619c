"""A sweep from the command line: its runs resume one by one, a failed one stops no other, the rest make figures."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from fake_runs import fake_run
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import ConfigCompositionException, MissingConfigException
from omegaconf import OmegaConf
from omegaconf.errors import ConfigAttributeError

from gapwise.pipeline.config.read_once import read_once
from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import CONF, explain, read, resolved
from gapwise.pipeline.overview.words import duration
from gapwise.pipeline.rundir import RunDir, read_json, write_json
from gapwise.pipeline.stage_graph import flow
from gapwise.pipeline.sweep import table
from gapwise.pipeline.sweep.outlook import Upcoming, earlier_in, most_seconds, outlook, seconds_like, upcoming_of
from gapwise.pipeline.sweep.plan import SweepOptions, Variants, plan, sweep_options
from gapwise.pipeline.sweep.run import is_complete
from gapwise.stages.certify.verdict import Doubt
from gapwise.stages.reports.comparison import costs, lines
from gapwise.stages.reports.curves import band, first_at, value_at
from gapwise.stages.reports.sweep_figures import compare
from gapwise.stages.reports.tables import write_csv

ROOT = CONF.parent
TEXTS = {path.stem: path.read_text() for path in (CONF / "experiment").glob("*.yaml")}
SWEEPS = sorted(name for name, text in TEXTS.items() if "\nsweep:" in text and "\npapers:" not in text)
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
    (file,) = folder.glob("runs/sweeps/*/summary.json")
    return json.loads(file.read_text())


def invocations(folder: Path) -> dict[str, int]:
    return {path.name: len(list((path / "invocations").iterdir())) for path in folder.glob("runs/sequences_csv-*")}


@pytest.mark.slow
def test_sweep__ends_in_a_table_skips_what_is_complete_and_goes_on_past_a_failed_run(tmp_path: Path) -> None:
    done = sweep(tmp_path, "sweep.seeds=[1]")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[-1].removeprefix("sweep: "))
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
    again = sweep(tmp_path, "sweep.seeds=[1]")
    assert again.returncode == 0
    assert "4 runs, 3 complete; 1 workers; about " in again.stderr
    assert invocations(tmp_path) == {name: 1 + (name == unsolved.name) for name in invocations(tmp_path)}

    manifest = json.loads((other / "manifest.json").read_text())
    manifest["science"]["seed"], manifest["key"] = 99, "0" * 64
    manifest["stages"].pop("solve")
    manifest.pop("seal")
    write_json(other / "manifest.json", manifest, seal=True)
    (without / "manifest.json").unlink()
    failed = sweep(tmp_path, "sweep.seeds=[1]")
    assert failed.returncode == 1, "one run failed, the others did not"
    assert "FAILED bcpfw_gap λ=0.1 seed=1: " in failed.stdout
    assert "belongs to another run" in failed.stdout
    assert "Traceback" not in failed.stderr
    outcome = summary(tmp_path)
    assert [job["status"] for job in outcome["jobs"]] == ["complete", "failed", "complete", "done"]
    assert outcome["figures"] == ["gaps.png"]


@pytest.mark.slow
def test_sweep__killed_goes_on_where_it_was_and_is_shown_without_features(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(tmp_path / "runs")}
    words = command(tmp_path, "sweep.lambdas=[0.1]", "sweep.seeds=[0,1]")
    process = subprocess.Popen(
        words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("1/4"):
            break
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stderr.close()
    time.sleep(2.0)  # its workers notice
    done = sweep(tmp_path, "sweep.lambdas=[0.1]", "sweep.seeds=[0,1]")
    assert done.returncode == 0, done.stderr
    jobs = summary(tmp_path)["jobs"]
    complete = [job["status"] for job in jobs].count("complete")
    assert 1 <= complete < 4
    assert {job["status"] for job in jobs} == {"complete", "done"}

    shutil.rmtree(tmp_path / "runs" / "features")
    shown = sweep(tmp_path, "sweep.lambdas=[0.1]", "sweep.seeds=[0,1]")
    assert shown.returncode == 0, shown.stderr
    assert {job["status"] for job in summary(tmp_path)["jobs"]} == {"complete"}, (
        "of keys that the number of blocks is in"
    )
    assert not (tmp_path / "runs" / "features").exists(), "a sweep whose runs are there needs no features"


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.share(0.3)
@pytest.mark.parametrize("experiment", SWEEPS)
def test_plan__every_sweep_of_conf_is_good(experiment: str) -> None:
    given = [f"+experiment={experiment}", "dataset.root=somewhere", "sweep.workers=1", "sweep.seeds=[0,1]"]
    options = sweep_options(composed(*given))
    jobs = plan(options, given, lambda words: composed(*words), 626, {}, experiment)
    each = max(len(options.lambdas), 1) * max(len(options.tolerances), 1) * len(options.seeds)
    assert len(jobs) == len(options.variants) * each + len(options.paths)
    assert len({job.settings.run_key({}) for job in jobs}) == len(jobs)
    assert {job.settings.path.lam for job in jobs if job.lam == "1/n"} <= {1 / 626}
    for job in jobs:
        assert job.settings.tracking.kind == "none"
        if options.rebase_passes and hasattr(job.settings.solver, "rebase_steps"):  # or a method without blocks
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
    assert (path.name, path.settings.path.rule, path.settings.path.eps, path.seed) == ("p seed=3", "two_sided", 0.2, 3)
    assert (path.settings.solver.max_passes, path.settings.run.until) == (float("inf"), "verify")
    (only,) = plan(dataclasses.replace(options, only=["p"]), given, lambda words: composed(*words), 5, {}, "x")
    assert only.variant == "p"


def test_plan__composes_once_for_variants_of_the_same_presets() -> None:
    """What a shared composition gives is what a composition of its own gives, word for word."""
    variants = {
        "plain": ["solver=bcfw_gap", "path=single"],
        "deep": ["solver=bcfw_gap", "path=single", "solver.cache={kind: gap}", "solver.cache.nu=0.1"],
        "text": ["path=single", "solver=bcfw_gap", "dataset.root='a b'", "path.lambdas=[1,0.5]"],
        "adds": ["solver=bcfw_gap", "path=single", "+solver.cache.x=1"],
        "other": ["solver=bcpfw", "path=single", "solver.sampling=uniform"],
        "value": ["solver.max_seconds=9", "path=single"],
    }  # fmt: skip
    given = ["dataset=ocr", "dataset.root=x", "solver.max_passes=50", "sweep.workers=1"]
    asked = []
    made = Variants(given, lambda words: asked.append(words) or composed(*words))
    for variant in variants.values():
        alone = composed(*given[:-1], *variant, "tracking=none", "compute=serial")
        assert resolved(made.composed(variant)) == {**resolved(alone), "sweep": None}
    assert len(asked) == 4 + 1  # path=single, solver=bcfw_gap in another order is another composition
    of_hydra = ["solver=bcfw_gap", "path=single", "hydra.verbose=true"]
    assert resolved(made.composed(of_hydra)) == resolved(made.composed(of_hydra[:2]))
    with pytest.raises(ConfigCompositionException):
        made.composed(["solver=bcfw_gap", "path=single", "solver.max_passes=1,2"])
    wrong = ["solver=bcpfw", "path=single", "solver.cahce=1"]
    with pytest.raises(ConfigAttributeError) as error:
        made.composed(wrong)
    with pytest.raises(ConfigCompositionException) as from_hydra:
        composed(*given[:-1], *wrong)
    assert explain(error.value) == explain(from_hydra.value)
    assert explain(error.value).startswith("solver.cahce: unknown key (did you mean")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"figure": "bars"},
            "sweep.figure: expected one of frontier, methods, multiplane, paths, regimes, solvers, staleness, "
            "work, got 'bars'",
        ),
        ({"tolerances": [0.1, 0.0]}, "sweep.tolerances: expected numbers > 0, got 0.0"),
        ({"paths": {"a": []}}, "sweep.paths: there is a variant named 'a' too"),
        ({"only": ["q"], "paths": {"p": []}}, "sweep.only: no variant 'q'; there are: a, p"),
        ({"datasets": {"a": []}}, "sweep.datasets: there is a variant or path named 'a' too"),
        ({"seconds": 0.0}, "sweep.seconds: expected a number > 0, or null, got 0.0"),
    ],
)
def test_sweep_options__name_the_key(wrong: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SweepOptions(variants={"a": []}, **wrong).check()


def test_plan__data_sets_come_between_the_command_line_and_the_variant() -> None:
    options = SweepOptions(
        variants={"a": ["path=single", "solver=fw_like"], "b": ["path=single", "solver.step=pairwise"]},
        datasets={"small": ["dataset.size=small", "solver.step=away"], "large": ["dataset.size=large"]},
        only=["b", "large"], seconds=3.0,
    )  # fmt: skip
    options.check()
    assert (options.wanted, options.wanted_datasets) == (["b"], ["large"])
    everything = dataclasses.replace(options, only=["b"])
    assert everything.wanted_datasets == ["small", "large"]
    given = ["dataset=ocr", "dataset.root=x", "solver=bcfw", *everything.datasets["small"]]
    (job,) = plan(everything, given, lambda words: composed(*words), 5, {}, "x", "small")
    assert (job.name, job.dataset) == ("small b seed=0", "small")
    assert (job.settings.dataset["size"], job.settings.solver.step) == ("small", "pairwise")
    assert (job.settings.solver.max_seconds, table.row(job, None)["dataset"]) == (3.0, "small")
    assert dataclasses.replace(options, only=[]).wanted == ["a", "b"]


def test_most_seconds__are_those_of_all_workers_together() -> None:
    assert most_seconds([30.0] * 8, 2) == "; at most 2.0 min of solving, by solver.max_seconds"
    assert most_seconds([90.0, 1.0], 2) == "; at most 90 s of solving, by solver.max_seconds"
    assert most_seconds([30.0, np.inf], 2) == most_seconds([], 2) == ""


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


def test_plan__refuses_the_same_run_twice() -> None:
    options = SweepOptions(variants={"a": []}, seeds=[1, 1])
    with pytest.raises(ConfigError, match="asked for twice"):
        plan(options, ["dataset=ocr", "dataset.root=x", "path=single"], lambda words: composed(*words), 3, {}, "x")


def test_band__is_the_median_between_the_extremes() -> None:
    x = np.arange(5.0)
    traces = [{"passes": x, "gap": scale * 10.0**-x} for scale in (1.0, 4.0, 2.0)]
    passes, middle, least, most = band(traces, "passes")
    np.testing.assert_allclose(middle, 2.0 * 10.0**-passes)
    np.testing.assert_allclose(least, 10.0**-passes)
    np.testing.assert_allclose(most, 4.0 * 10.0**-passes)
    assert first_at(traces[0], "passes", 0.01) == 2.0
    assert first_at(traces[0], "passes", 1e-9) == np.inf
    unknown = {"passes": np.arange(3.0), "dual": np.array([np.nan, 0.01, np.nan])}
    assert value_at([unknown], "passes", 0.5, "dual") == pytest.approx(0.01)
    assert np.isnan(value_at([{**unknown, "dual": np.full(3, np.nan)}], "passes", 1.0, "dual"))
    assert first_at(unknown, "passes", 0.5, "dual") == 1.0


def test_costs__are_medians_over_seeds_relative_to_the_best_primal_of_their_lambda() -> None:
    def trace(best: float, gaps: list[float]) -> dict[str, np.ndarray]:
        gap = np.array(gaps)
        passes = np.arange(1.0, gap.size + 1)
        return {"lambda": 0 * gap + 0.25, "passes": passes, "seconds": 0.1 * passes, "primal": best + gap, "gap": gap}

    seeds = [trace(2.0, [1.0, 0.1, 0.03]), trace(2.0, [1.0, 1.0, 0.5]), trace(2.0, [0.15, 0.01, 0.001])]
    rows_of = costs(
        {("a", "1/n"): seeds, ("b", "1/n"): [trace(1.999, [0.1, 0.001])], ("a", "0.1"): [trace(8.0, [1.0])]}
    )
    assert [(row["variant"], row["lambda"], row["seeds"], row["value"]) for row in rows_of] == [
        ("a", "1/n", 3, 0.25), ("b", "1/n", 1, 0.25), ("a", "0.1", 1, 0.25),
    ]  # fmt: skip
    assert [row["passes_to_0.1"] for row in rows_of] == [2.0, 1.0, np.inf]  # a gap of 0.2, and of 0.9
    assert [row["passes_to_0.01"] for row in rows_of] == [np.inf, 2.0, np.inf]  # one seed of three gets to 0.02
    assert rows_of[0]["seconds_to_0.1"] == pytest.approx(0.2)
    assert [row["relative_gap"] for row in rows_of] == pytest.approx([0.03 / 2.0, 0.001 / 2.0, 1.0 / 9.0])
    text = lines(rows_of)
    assert [line.split()[0] for line in text] == ["λ", "0.1", "a", "b", "λ", "0.1", "a"]
    assert text[2].split()[1:8] == ["2", "/", "0.20", "not", "within", "3", "p"]
    # b ended after 2 passes: that is the budget which all of them had
    assert "gap at 2 p" in text[1]
    assert [row["equal_passes"] for row in rows_of] == [2.0, 2.0, 1.0]
    assert [row["relative_gap_at_equal"] for row in rows_of] == pytest.approx([0.1 / 2.0, 0.001 / 2.0, 1.0 / 9.0])


def test_table__names_the_budget_of_runs_that_were_cut_off_and_says_where_budgets_differ() -> None:
    def row(name: str, status: str, budget: str, doubt: str = "") -> dict:
        numbers = {
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


def test_plan__sets_rebase_steps_where_the_method_has_them_and_passes_for_all() -> None:
    options = SweepOptions(
        variants={name: [f"solver={name}"] for name in ("bcfw", "fw", "ssg")},
        passes=7,
        cached_passes=3,
        rebase_passes=2,
    )
    jobs = plan(options, ["dataset=ocr", "dataset.root=x", "path=single"], lambda words: composed(*words), 5, {}, "x")
    assert [job.settings.solver.max_passes for job in jobs] == [7, 7, 7]
    assert [getattr(job.settings.solver, "rebase_steps", None) for job in jobs] == [10, None, 10]


def test_plan__rows_say_what_each_run_may_spend() -> None:
    options = SweepOptions(
        variants={"a": ["path=single"], "b": ["path=single", "solver.max_oracle_calls=500"]},
        passes=60,
        cached_passes=60,
    )
    jobs = plan(options, ["dataset=ocr", "dataset.root=x", "solver=bcfw"], lambda words: composed(*words), 3, {}, "x")
    assert [table.row(job, None)["budget"] for job in jobs] == ["60 passes", "60 passes, 500 oracle calls"]


def test_outlook__goes_by_earlier_runs_that_are_alike(tmp_path: Path) -> None:
    def upcoming(*words: str, name: str = "toy") -> Upcoming:
        planned = upcoming_of(read(composed("dataset=ocr", "dataset.root=x", "solver=bcfw", *words)))
        return planned._replace(science={"dataset.name": name, "path.rule": planned.science["path.rule"], "seed": 7})

    assert upcoming("run.until=verify").stages == ("featurize", "init_path", "solve", "verify")
    assert outlook([upcoming()], tmp_path / "none", 2) == "how long they take is not known: no earlier run is like them"
    fake_run(tmp_path, "toy-bcfw-00000001")  # 10 s a stage
    fake_run(tmp_path, "toy-bcfw-00000002", done=("featurize", "init_path", "solve"), path_eps=0.01)
    fake_run(tmp_path, "ocr-bcfw-00000003", dataset_name="ocr")
    own = 10.0 * (len(flow()) - 1)
    assert outlook([upcoming()] * 20, tmp_path, 2) == f"about {duration(10 * own)}, going by earlier runs like them"
    assert outlook([upcoming()], tmp_path, 8) == f"about {duration(own)}, going by earlier runs like them"
    assert outlook([upcoming("run.until=solve")], tmp_path, 1) == "about 20 s, going by earlier runs like them"
    known, unknown = upcoming(), upcoming(name="usps")
    assert outlook([known, unknown], tmp_path, 1) == f"about {duration(2 * own)}, going by earlier runs like 1 of them"
    assert seconds_like(upcoming("path=single"), earlier_in(tmp_path)) is None
    assert outlook([], tmp_path, 1) == "nothing to solve"


def test_write_csv__keeps_numbers_as_they_are(tmp_path: Path) -> None:
    rows = [{"a": 3, "b": 0.1, "c": "x,y", "d": True}, {"a": None, "b": 1e-17, "c": "", "d": False, "e": float("inf")}]
    write_csv(tmp_path / "t.csv", rows)
    text = (tmp_path / "t.csv").read_bytes().decode()
    assert text == 'a,b,c,d,e\r\n3,0.1,"x,y",True,\r\n,1e-17,,False,inf\r\n'


TOY_RUN_FIGURE = """
SIZE = (3.0, 2.0)

def applies(run):
    return run.attrs["rule"] == "single"

def paint(figure, run):
    figure.subplots().plot(run.arrays["lambda"], run.arrays["gap"], "o")
"""
TOY_SWEEP_FIGURE = """
from gapwise.stages.reports.curves import read_curves
from gapwise.stages.reports.paint import figure_in

def make(runs, folder):
    curves = read_curves(runs)
    with figure_in(folder / "figures" / "toy.png", (3.0, 2.0)) as figure:
        for trace in curves["bcfw", "0.1"]:
            figure.subplots().plot(trace["passes"], trace["gap"])
    return {"figures": ["toy.png"], "table": [{"runs": len(runs)}], "text": [f"{len(runs)} toy run"]}
"""


@pytest.mark.long  # other parts of one's own are tested in test_parts.py
@pytest.mark.slow
def test_sweep__draws_figures_of_ones_own(tmp_path: Path) -> None:
    reports = tmp_path / "mine"
    for folder, text in (("run_figures", TOY_RUN_FIGURE), ("sweep_figures", TOY_SWEEP_FIGURE)):
        (reports / folder).mkdir(parents=True)
        (reports / folder / "toy.py").write_text(text)
    words = ("sweep.figure=toy", "sweep.only=[bcfw]", "sweep.lambdas=[0.1]", "sweep.seeds=[0]", "run.until=null")
    done = sweep(tmp_path, *words, f"parts={reports}")
    assert done.returncode == 0, done.stderr
    whole = Path(done.stdout.splitlines()[-1].removeprefix("sweep: "))
    outcome = summary(tmp_path)
    assert (outcome["figures"], outcome["table"]) == (["toy.png"], [{"runs": 1}])
    assert "1 toy run" in done.stdout
    (run,) = (Path(job["run"]) for job in outcome["jobs"])
    assert sorted(path.name for path in (run / "figures").iterdir()) == [
        "convergence.png",
        "toy.png",
    ]
    for picture in (run / "figures" / "toy.png", whole / "figures" / "toy.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")
    page = (whole / "report.html").read_text(encoding="utf-8")
    assert page.count('<img class="figure" alt="toy.png"') == 1
    assert f'href="../../{run.name}/report.html"' in page


def test_compare__says_which_run_has_no_gaps(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no gap trace here"):
        compare("methods", [("a", "", 0, tmp_path)], tmp_path)


def test_read_once__reads_no_file_again_and_does_without_what_hydra_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[object] = []
    load = OmegaConf.load
    monkeypatch.setattr(OmegaConf, "load", lambda file: loads.append(file) or load(file))
    words = ["+experiment=regpath_ocr", "dataset.root=x"]
    other = tmp_path / "other"
    (other / "solver").mkdir(parents=True)
    (other / "solver" / "elsewhere.yaml").write_text("name: elsewhere\n")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        with monkeypatch.context() as changed:
            changed.delattr(loader, "repository")
            assert not read_once()
        alone = compose("config", words)
        times = len(loads)
        assert times > 5
        assert read_once()
        assert read_once(), "again"
        shared = compose("config", words)
        assert len(loads) == 2 * times
        shared.path.eps = 0.123
        assert compose("config", words) == alone
        assert len(loads) == 2 * times
        with pytest.raises(MissingConfigException):
            compose("config", [*words, "solver=elsewhere"])
        there = compose("config", [*words, f"hydra.searchpath=[file://{other}]", "solver=elsewhere"])
        assert there.solver.name == "elsewhere", "files of another search path"
