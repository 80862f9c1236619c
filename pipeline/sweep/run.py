"""A sweep: many ordinary runs over a bounded number of worker processes, a table, and figures over all of them.

The runs are those of a Hydra multirun, or the variants × lambdas × tolerances × seeds of an experiment (`plan`).
Each lies in its own run directory and resumes singly: a sweep that was interrupted or killed, issued again, skips what is
complete and goes on with what is not. A run that fails, or whose worker dies twice, does not stop the others. Where a sweep
lies, `<run.root>/sweeps/<experiment>-<key>`, depends on the science of its runs only.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from pipeline.compute.local import REMOTE, Compute
from pipeline.config.run_options import ComputeOptions, ConfigError, TrackingOptions, default_workers
from pipeline.config.settings import Settings, fingerprint, read
from pipeline.interrupt import Interrupted, Stop
from pipeline.run import BAD_CONFIGURATION, DONE, FAILED, INTERRUPTED, complete, experiment_name, places
from pipeline.rundir import LockedError, RunDir, flat, locked, read_json, write_json
from pipeline.stage_graph import make_features
from pipeline.sweep import table
from pipeline.sweep.plan import EXPORT, Asked, Planned, plan, plan_multirun, sweep_options
from pipeline.sweep.workers import Task, run_tasks
from pipeline.tracking.mlflow import SweepTracker
from storage.backend import backend
from storage.places import place

FORMAT_VERSION = 2
SAY_SECONDS = 30.0
"""Between two looks at the runs that go on."""


@dataclass
class Sweep:
    """What is to be run, what is known of each run (`sweep_table.row`), and where the sweep lies."""

    experiment: str | None
    jobs: list[Planned]
    workers: int
    tracking: TrackingOptions
    figure: str | None = None

    def __post_init__(self) -> None:
        places_of = [None if job.settings is None else places(job.settings, job.source)[0] for job in self.jobs]
        self.rows = [table.row(job, where) for job, where in zip(self.jobs, places_of, strict=True)]
        self.key = fingerprint({"format": FORMAT_VERSION, "runs": sorted({where.key for where in places_of if where})})
        root = place(next((job.settings.run.root for job in self.jobs if job.settings is not None), "."))
        name = self.experiment or "multirun"
        self.folder = root / "sweeps" / f"{name}-{self.key[:8]}"

    def far(self, todo: Mapping[int, Planned]) -> ComputeOptions | None:
        """The workers of other machines that are to do the runs, one run each, if that was asked for."""
        options = [job.settings.compute for job in todo.values() if job.settings is not None]
        return options[0] if options and options[0].kind in REMOTE else None


def sweep(cfg: DictConfig) -> int:
    """All runs of the experiment that `cfg` describes; the exit code: 0, or 1 if any failed, 2 for a bad configuration."""
    from stages.datasets import DataError

    experiment = experiment_name() or "sweep"
    with Stop() as stop:
        try:
            options = sweep_options(cfg)
            base = read(cfg, experiment=experiment)
            if base.run.export is not None:
                raise ConfigError(EXPORT)
            source = _source(base)
            _features(base, source, stop)
            jobs = plan(options, _given(), _compose, _blocks(base, source), source, experiment)
        except (DataError, OSError) as error:
            return _refuse(error, FAILED)
        except (ConfigError, ValueError) as error:
            return _refuse(error, BAD_CONFIGURATION)
        except (Interrupted, KeyboardInterrupt):
            return _interrupted(stop)
        return _guarded(
            Sweep(experiment, jobs, options.workers or default_workers(), base.tracking, options.figure), stop
        )


def multirun(asked: Sequence[Asked]) -> int:
    """All runs of a Hydra multirun; the exit code: the largest of 0, 1 if any failed, 2 if any was refused."""
    with Stop() as stop:
        jobs, workers, tracking = plan_multirun(asked, _source)
        for job in jobs:
            if job.error:
                print(f"error: {job.name}: {job.error}", file=sys.stderr)
        experiments = {job.experiment for job in jobs}
        whole = Sweep(experiments.pop() if len(experiments) == 1 else None, jobs, workers, tracking)
        if all(job.settings is None for job in jobs):
            return _exit_code(whole.rows)
        return _guarded(whole, stop)


def _guarded(whole: Sweep, stop: Stop) -> int:
    if not backend(whole.folder).is_shared(whole.folder):
        return _refuse(ConfigError("run.root: memory:// belongs to one process; a sweep has many"), BAD_CONFIGURATION)
    try:
        with locked(whole.folder / "lock"):
            return _sweep(whole, stop)
    except (LockedError, OSError, RuntimeError) as error:
        return _interrupted(stop) if stop() else _refuse(error, FAILED)
    except KeyboardInterrupt:
        return _interrupted(stop)


def _sweep(whole: Sweep, stop: Stop) -> int:
    started, rows = time.monotonic(), whole.rows
    todo = _todo(whole)
    far = whole.far(todo)
    workers = min((far.workers or len(todo)) if far else whole.workers, max(len(todo), 1))
    there = [place(row["run"]) for row in rows if row["status"] == "complete"]
    print(f"sweep: {len(rows)} runs, {len(there)} complete; {workers} workers", file=sys.stderr)
    tracker = SweepTracker(whole.tracking, whole.folder)
    tracker.begin(_summary(whole), there, anew=any(_only_shown(job) for job in whole.jobs))
    if todo:
        _prepare([whole.jobs[number] for number in todo], stop)
        here = {} if far is None else {"compute": {"kind": "serial", "workers": 1}}
        tasks = [Task(number, {**job.config, **here}, job.experiment, job.overrides) for number, job in todo.items()]
        run_tasks(tasks, workers, whole.folder, stop, *_reporting(rows, tracker), far)
    found = _summary(whole)
    wrong = False
    if whole.figure and not stop():
        try:
            found |= _compare(whole)
        except (ValueError, OSError, KeyError) as error:
            wrong = bool(_refuse(error, FAILED, "figures: "))
    write_json(whole.folder / "summary.json", found)
    table.write_csv(whole.folder / "runs.csv", rows)
    rule = "─" * 88
    text = [rule, *table.lines(rows, time.monotonic() - started), rule, *found.get("text", ())]
    print("\n".join(text), flush=True)
    code = max(_exit_code(rows), FAILED * wrong)
    half_way = stop() or "waiting" in found["statuses"]
    tracker.finish(found, "KILLED" if half_way else "FAILED" if code else "FINISHED")
    if stop():
        return _interrupted(stop)
    print(f"sweep: {whole.folder}", flush=True)
    return code


def _todo(whole: Sweep) -> dict[int, Planned]:
    """The runs still to be done, by their numbers. A run asked for twice, by names that mean the same, is done once."""
    todo: dict[str, int] = {}
    for number, (job, row) in enumerate(zip(whole.jobs, whole.rows, strict=True)):
        if job.settings is None:
            continue
        if _is_complete(RunDir(place(row["run"]), row["key"]), job.settings):
            row |= {"status": "complete", **table.facts(place(row["run"]))}
        elif not _only_shown(job):
            todo.setdefault(row["run"], number)
    return {number: whole.jobs[number] for number in todo.values()}


def _only_shown(job: Planned) -> bool:
    """Whether nothing is to be run, but what is there to be shown (again) in MLflow."""
    return job.settings is not None and job.settings.run.stage == "sync"


def _is_complete(directory: RunDir, settings: Settings) -> bool:
    """Whether the last stage that is wanted is done."""
    try:
        if settings.run.stage in (None, "sync") and settings.run.until is None:
            return complete(directory, settings) is not None
        manifest = read_json(directory.path / "manifest.json")
        return settings.run.until is not None and manifest is not None and settings.run.until in manifest["stages"]
    except (ValueError, KeyError):
        return False  # the run itself will say what is wrong


def _reporting(
    rows: list[table.Row], tracker: SweepTracker
) -> tuple[Callable[[int, dict[str, Any]], None], Callable[[list[int]], None]]:
    """What is said, noted and shown when a run ends, and now and then of those that go on."""
    said = time.monotonic()

    def say(line: str) -> None:
        nonlocal said
        said = time.monotonic()
        print(line, file=sys.stderr, flush=True)

    def ended(number: int, outcome: dict[str, Any]) -> None:
        run = rows[number]["run"]
        for row in rows:
            if row["run"] == run:
                row |= {**outcome, **table.facts(place(run))}
        left = sum(row["status"] == "waiting" for row in rows)
        words = {"done": f"{outcome.get('seconds', 0):.1f} s", "failed": f"FAILED: {outcome.get('error')}"}
        say(
            f"{len(rows) - left}/{len(rows)} {rows[number]['name']} · {words.get(outcome['status'], outcome['status'])}"
        )
        mlflow_status = {"done": "FINISHED", "failed": "FAILED"}.get(outcome["status"], "KILLED")
        tracker.ended(place(run), mlflow_status)

    def going_on(numbers: list[int]) -> None:
        if time.monotonic() - said >= SAY_SECONDS:
            for number in numbers:
                say(f"  {rows[number]['name']} · {table.last_line(place(rows[number]['run']))}")

    return ended, going_on


def _prepare(jobs: Sequence[Planned], stop: Stop) -> None:
    """Features that several runs share, made once by all cores; what goes wrong is the runs' to tell."""
    made = set()
    for job in jobs:
        assert job.settings is not None
        path = places(job.settings, job.source)[1]
        if path not in made and not stop():
            made.add(path)
            with contextlib.suppress(ValueError, OSError, RuntimeError, Interrupted):
                _features(job.settings, job.source, stop)


def _features(settings: Settings, source: Mapping[str, Any], stop: Stop) -> None:
    _, path, key = places(settings, source)
    with Compute(settings.compute, stop) as compute:
        make_features(settings.dataset, path, key, compute, lambda done, total, what: stop.check())


def _blocks(settings: Settings, source: Mapping[str, Any]) -> int:
    from stages.featurize import open_problem

    return int(open_problem(places(settings, source)[1], "train").n)


def _source(settings: Settings) -> Mapping[str, Any]:
    from stages.datasets import open_dataset

    return open_dataset(settings.dataset["name"], settings.dataset).source()


def _given() -> list[str]:
    from hydra.core.hydra_config import HydraConfig

    return list(HydraConfig.get().overrides.task)


def _compose(overrides: list[str]) -> DictConfig:
    from hydra import compose

    return compose("config", overrides)


def _compare(whole: Sweep) -> dict[str, Any]:
    from stages.reports.comparison import compare

    good = [row for row in whole.rows if row["status"] in ("complete", "done")]
    runs = [(row["variant"], row["lambda"], row["seed"], place(row["run"])) for row in good]
    return compare(str(whole.figure), runs, whole.folder) if runs else {}


def _summary(whole: Sweep) -> dict[str, Any]:
    """summary.json, and what MLflow shows of the sweep."""
    statuses = table.statuses(whole.rows)
    return {
        "format_version": FORMAT_VERSION,
        "key": whole.key,
        "experiment": whole.experiment,
        "figure": whole.figure,
        "command": " ".join(sys.orig_argv),
        "updated_ms": int(1000 * time.time()),
        "runs": len(whole.rows),
        "failed": statuses.get("failed", 0),
        "statuses": statuses,
        "common": table.common([flat(job.settings.science) for job in whole.jobs if job.settings is not None]),
        "jobs": whole.rows,
    }


def _exit_code(rows: Sequence[table.Row]) -> int:
    statuses = table.statuses(rows)
    return BAD_CONFIGURATION if "refused" in statuses else FAILED if "failed" in statuses else DONE


def _interrupted(stop: Stop) -> int:
    print("interrupted: the same command goes on from what its runs have committed", file=sys.stderr)
    return INTERRUPTED + stop.signal


def _refuse(error: Exception, code: int, where: str = "") -> int:
    print(f"error: {where}{' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
    return code
