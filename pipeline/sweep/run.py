"""A sweep: many ordinary runs over a bounded number of worker processes, a table, and figures over all of them.

The runs are those of a Hydra multirun, the variants × lambdas × tolerances × seeds of an experiment (`plan`), or the folds
of a cross-validation (`folds`). Each has its own run directory and resumes on its own: the same command skips the runs that
are complete and continues the others. A run that fails, or whose worker dies twice, does not stop the rest. The directory
of a sweep, `<run.root>/sweeps/<experiment>-<key>`, depends only on the keys of its runs.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from gapwise.pipeline.compute.local import REMOTE, Compute
from gapwise.pipeline.compute.ready import check_packages, check_scheduler
from gapwise.pipeline.config.run_options import ComputeOptions, ConfigError, TrackingOptions, default_workers
from gapwise.pipeline.config.settings import Settings, explain, fingerprint, read
from gapwise.pipeline.errors import BAD_CONFIGURATION, DONE, FAILED, INTERRUPTED, one_line, refuse, refuse_setup
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.result import complete
from gapwise.pipeline.run import experiment_name, places
from gapwise.pipeline.rundir import LockedError, RunDir, flat, locked, read_json, shell_line, write_json
from gapwise.pipeline.stage_graph import stages
from gapwise.pipeline.stage_graph.featurize import make_features
from gapwise.pipeline.sweep import table
from gapwise.pipeline.sweep.folds import checked, choose_lambda, plan_folds
from gapwise.pipeline.sweep.outlook import ahead_of, most_seconds, outlook
from gapwise.pipeline.sweep.plan import EXPORT, Asked, Planned, SweepOptions, plan, plan_multirun, sweep_options
from gapwise.pipeline.sweep.workers import Task, run_tasks
from gapwise.pipeline.tracking.mlflow import SweepTracker
from gapwise.storage.backend import backend, location
from gapwise.storage.format import FORMAT_VERSION

SAY_SECONDS = 30.0
"""Seconds between two reports on the runs in progress."""


@dataclass
class Sweep:
    """The runs, what is known about each (`table.row`), and the sweep's directory."""

    experiment: str | None
    jobs: list[Planned]
    workers: int
    tracking: TrackingOptions
    figure: str | None = None
    folds: bool = False
    """Whether the runs are the folds of a cross-validation and the run on all training blocks."""
    formats: tuple[str, ...] = ("png",)
    """Of the figures over all runs."""

    def __post_init__(self) -> None:
        places_of = [None if job.settings is None else places(job.settings, job.source)[0] for job in self.jobs]
        self.rows = [table.row(job, where) for job, where in zip(self.jobs, places_of, strict=True)]
        self.key = fingerprint({"format": FORMAT_VERSION, "runs": sorted({where.key for where in places_of if where})})
        root = location(next((job.settings.run.root for job in self.jobs if job.settings is not None), "."))
        name = self.experiment or "multirun"
        self.folder = root / "sweeps" / f"{name}-{self.key[:8]}"

    def far(self, todo: Mapping[int, Planned]) -> ComputeOptions | None:
        """Options of the remote workers that take the runs, one each; None if the runs stay on this machine."""
        options = [job.settings.compute for job in todo.values() if job.settings is not None]
        return options[0] if options and options[0].kind in REMOTE else None


def sweep(cfg: DictConfig) -> int:
    """Run the sweep that `cfg` describes; returns the exit code: 0, 1 if any run failed, 2 for a bad configuration."""
    with Stop() as stop:
        try:
            whole = described(cfg, experiment_name() or "sweep", _given(), stop)
        except (ValueError, OSError) as error:
            return refuse_setup(error)
        except (Interrupted, KeyboardInterrupt):
            return interrupted(stop)
        return carry_out(whole, stop)


def described(cfg: DictConfig, experiment: str, given: list[str], stop: Stop) -> Sweep:
    """The sweep that `cfg` describes, composed from the overrides `given`; makes the features of its data sets.

    Raises
    ------
    ValueError or OSError
        If the configuration is wrong or data cannot be read.
    Interrupted
        If a stop was requested.
    """
    options = sweep_options(cfg)
    base = read(cfg, experiment=experiment)
    check_packages(base.compute, base.tracking)
    if base.run.export is not None:
        raise ConfigError(EXPORT)
    jobs = _planned(options, base, experiment, given, stop)
    workers, formats = options.workers or default_workers(), tuple(base.figures.formats)
    return Sweep(experiment, jobs, workers, base.tracking, options.figure, formats=formats)


def _planned(options: SweepOptions, base: Settings, experiment: str, given: list[str], stop: Stop) -> list[Planned]:
    """The runs of all data sets, whose features are made. One that is not installed is left out, and said so."""
    jobs, missing = list[Planned](), []
    if not options.datasets:
        source = _source(base)
        _features(base, source, stop)
        return plan(options, given, compose_words, _blocks(base, source), source, experiment)
    if any(word.startswith("dataset=") for word in given):
        raise ConfigError(
            f"dataset: {experiment} runs on {', '.join(options.datasets)}; choose among them with sweep.only=[...], or add "
            "one with '+sweep.datasets.NAME=[dataset=...]'"
        )
    for name in options.wanted_datasets:
        words = [*given, *options.datasets[name]]
        try:
            settings = read(compose_words(words), experiment=experiment)
            source = _source(settings)
            _features(settings, source, stop)
        except (ValueError, OSError) as error:
            if name in options.only:
                raise
            missing.append(f"{name}: {explain(error)}")
            continue
        jobs += plan(options, words, compose_words, _blocks(settings, source), source, experiment, name)
    for line in missing:
        print(f"sweep: left out {line}", file=sys.stderr, flush=True)
    if not jobs:
        raise ConfigError("sweep.datasets: none of them can be read; give dataset.root or set GAPWISE_DATA")
    return jobs


def multirun(asked: Sequence[Asked]) -> int:
    """Run the jobs of a Hydra multirun; returns the exit code: 0, 1 if any failed, 2 if any was refused."""
    with Stop() as stop:
        jobs, workers, tracking = plan_multirun(asked, _source)
        try:
            for options in [job.settings.compute for job in jobs if job.settings is not None][:1]:
                check_packages(options, tracking)
        except ConfigError as error:
            return refuse_setup(error)
        for job in jobs:
            if job.error:
                print(f"error: {job.name}: {job.error}", file=sys.stderr)
        experiments = {job.experiment for job in jobs}
        whole = Sweep(experiments.pop() if len(experiments) == 1 else None, jobs, workers, tracking)
        if all(job.settings is None for job in jobs):
            return _exit_code(whole.rows)
        return carry_out(whole, stop)


def cross_validation(cfg: DictConfig) -> int:
    """Run the folds that `cfg` asks for (`sweep.cv`); returns the exit code: 0, 1 if any run failed, 2 if `cfg` is bad."""
    with Stop() as stop:
        try:
            settings = checked(cfg, experiment_name())
            check_packages(settings.compute, settings.tracking)
            source = _source(settings)
            _features(settings, source, stop)
            jobs, workers = plan_folds(cfg, settings, source, _blocks(settings, source))
        except (ValueError, OSError) as error:
            return refuse_setup(error)
        except (Interrupted, KeyboardInterrupt):
            return interrupted(stop)
        name = f"{settings.experiment or settings.dataset['name']}-cv"
        return carry_out(Sweep(name, jobs, workers, settings.tracking, folds=True), stop)


def carry_out(whole: Sweep, stop: Stop) -> int:
    """Run what is not done yet, draw the figures, write the summary; returns the exit code."""
    if not backend(whole.folder).is_shared(whole.folder):
        text = "run.root: memory:// belongs to one process, and a sweep has many; use a directory or s3://"
        return refuse(ConfigError(text), BAD_CONFIGURATION)
    try:
        with locked(whole.folder / "lock"):
            return _sweep(whole, stop)
    except (LockedError, OSError, RuntimeError) as error:
        return interrupted(stop) if stop() else refuse(error, FAILED)
    except KeyboardInterrupt:
        return interrupted(stop)


def _sweep(whole: Sweep, stop: Stop) -> int:
    from gapwise.stages.reports.tables import write_csv

    started, rows = time.monotonic(), whole.rows
    todo = _todo(whole)
    far = whole.far(todo)
    if far is not None:
        check_scheduler(far)
    workers = min((far.workers or len(todo)) if far else whole.workers, max(len(todo), 1))
    there = [location(row["run"]) for row in rows if row["status"] == "complete"]
    ahead = [ahead_of(job.settings) for job in todo.values() if job.settings is not None]
    about = outlook(ahead, whole.folder.parent.parent, workers) + most_seconds(
        [job.settings.solver.max_seconds for job in todo.values() if job.settings is not None], workers
    )
    print(f"sweep: {len(rows)} runs, {len(there)} complete; {workers} workers; {about}", file=sys.stderr, flush=True)
    tracker = SweepTracker(whole.tracking, whole.folder)
    tracker.begin(_summary(whole), there, anew=any(_only_shown(job) for job in whole.jobs))
    if todo:
        _prepare([whole.jobs[number] for number in todo], stop)
        here = {} if far is None else {"compute": {"kind": "serial", "workers": 1}}
        command = shell_line()
        tasks = [
            Task(number, {**job.config, **here}, job.experiment, job.overrides, command) for number, job in todo.items()
        ]
        run_tasks(tasks, workers, whole.folder, stop, *_reporting(rows, tracker), far)
    found = _summary(whole)
    wrong = False
    if (whole.figure or whole.folds) and not stop():
        try:
            found |= _folds(whole, stop) if whole.folds else _compare(whole)
        except Interrupted:
            pass
        except (ValueError, OSError, KeyError) as error:
            wrong = bool(refuse(error, FAILED, "figures: "))
    write_json(whole.folder / "summary.json", found)
    write_csv(whole.folder / "runs.csv", rows)
    _report(whole)
    rule = "─" * 88
    text = [rule, *table.lines(rows, time.monotonic() - started), rule, *found.get("text", ())]
    print("\n".join(text), flush=True)
    code = max(_exit_code(rows), FAILED * wrong)
    half_way = stop() or "waiting" in found["statuses"]
    tracker.finish(found, "KILLED" if half_way else "FAILED" if code else "FINISHED")
    if stop():
        return interrupted(stop)
    print(f"sweep: {whole.folder}", flush=True)
    return code


def _todo(whole: Sweep) -> dict[int, Planned]:
    """The runs still to be done, by number; a run that is requested under two names is done once."""
    todo: dict[str, int] = {}
    for number, (job, row) in enumerate(zip(whole.jobs, whole.rows, strict=True)):
        if job.settings is None:
            continue
        if _is_complete(RunDir(location(row["run"]), row["key"]), job.settings):
            row |= {"status": "complete", **table.facts(location(row["run"]))}
        elif not _only_shown(job):
            todo.setdefault(row["run"], number)
    return {number: whole.jobs[number] for number in todo.values()}


def _only_shown(job: Planned) -> bool:
    """Whether nothing is to be run and existing results are only displayed again."""
    asked = None if job.settings is None else job.settings.run.stage
    return asked is not None and not stages()[asked].computes


def _is_complete(directory: RunDir, settings: Settings) -> bool:
    """Whether the last requested stage is done."""
    try:
        shown = settings.run.stage is None or not stages()[settings.run.stage].computes
        if shown and settings.run.until is None:
            return complete(directory, settings) is not None
        manifest = read_json(directory.path / "manifest.json")
        if settings.run.until is None or manifest is None or settings.run.until not in manifest["stages"]:
            return False
        done = manifest["stages"]
        return not any(stages()[name].has_more(done, settings) for name in done)
    except (ValueError, KeyError):
        return False  # the run itself will say what is wrong


def _reporting(
    rows: list[table.Row], tracker: SweepTracker
) -> tuple[Callable[[int, dict[str, Any]], None], Callable[[list[int]], None]]:
    """Two callbacks for `run_tasks`: one records, prints and tracks the end of a run, one reports on runs in progress."""
    said = time.monotonic()

    def say(line: str) -> None:
        nonlocal said
        said = time.monotonic()
        print(line, file=sys.stderr, flush=True)

    def ended(number: int, outcome: dict[str, Any]) -> None:
        run = rows[number]["run"]
        for row in rows:
            if row["run"] == run:
                row |= {**outcome, **table.facts(location(run))}
        left = sum(row["status"] == "waiting" for row in rows)
        words = {"done": f"{outcome.get('seconds', 0):.1f} s", "failed": f"FAILED: {outcome.get('error')}"}
        say(
            f"{len(rows) - left}/{len(rows)} {rows[number]['name']} · {words.get(outcome['status'], outcome['status'])}"
        )
        mlflow_status = {"done": "FINISHED", "failed": "FAILED"}.get(outcome["status"], "KILLED")
        tracker.ended(location(run), mlflow_status)

    def going_on(numbers: list[int]) -> None:
        if time.monotonic() - said >= SAY_SECONDS:
            for number in numbers:
                say(f"  {rows[number]['name']} · {table.last_line(location(rows[number]['run']))}")

    return ended, going_on


def _prepare(jobs: Sequence[Planned], stop: Stop) -> None:
    """Make the features that runs share, once, on all cores. Each run reports its own errors, so none are raised here."""
    made = set()
    for job in jobs:
        assert job.settings is not None
        path = places(job.settings, job.source)[1]
        if path not in made and not stop():
            made.add(path)
            with contextlib.suppress(ValueError, OSError, RuntimeError, Interrupted):
                _features(job.settings, job.source, stop)


def _features(settings: Settings, source: Mapping[str, object], stop: Stop) -> None:
    _, path, key = places(settings, source)
    with Compute(settings.compute, stop) as compute:
        make_features(settings, source, path, key, compute, lambda done, total, what: stop.check())


def _blocks(settings: Settings, source: Mapping[str, object]) -> int:
    from gapwise.stages.featurize import open_problem

    return int(open_problem(places(settings, source)[1], "train").n)


def _source(settings: Settings) -> Mapping[str, object]:
    from gapwise.pipeline.data import source_of

    return source_of(settings)


def _given() -> list[str]:
    from hydra.core.hydra_config import HydraConfig

    return list(HydraConfig.get().overrides.task)


def compose_words(overrides: list[str]) -> DictConfig:
    """The configuration of these overrides, within a command of Hydra's."""
    from hydra import compose

    return compose("config", overrides)


def _compare(whole: Sweep) -> dict[str, object]:
    from gapwise.stages.reports.sweep_figures import compare_parts

    good = [row for row in whole.rows if row["status"] in ("complete", "done")]
    parts: dict[str, list[Any]] = {}
    for row in good:
        run = (row["variant"], row["lambda"], row["seed"], location(row["run"]))
        parts.setdefault(row["dataset"], []).append(run)
    return compare_parts(str(whole.figure), parts, whole.folder, whole.formats)


def _report(whole: Sweep) -> None:
    """Write report.html of the sweep; a sweep is done without it."""
    try:
        from gapwise.stages.reports.page.sweep import write_sweep_report

        write_sweep_report(whole.folder)
    except Exception as error:
        print(f"the report could not be made: {one_line(error)}", file=sys.stderr)


def _folds(whole: Sweep, stop: Stop) -> dict[str, object]:
    missing = [row["name"] for row in whole.rows if row["status"] not in ("complete", "done")]
    if missing:
        raise ValueError(f"lambda is chosen once all runs are there; still missing: {', '.join(missing)}")
    said = time.monotonic()

    def report(done: int, total: int, what: str) -> None:
        nonlocal said
        stop.check()
        if time.monotonic() - said >= SAY_SECONDS:
            said = time.monotonic()
            print(f"losses at {done}/{total} lambdas · {what}", file=sys.stderr, flush=True)

    return choose_lambda(whole.jobs, whole.folder, report)


def _summary(whole: Sweep) -> dict[str, Any]:
    """The content of summary.json, which is also logged to MLflow."""
    statuses = table.statuses(whole.rows)
    return {
        "format_version": FORMAT_VERSION,
        "key": whole.key,
        "experiment": whole.experiment,
        "figure": whole.figure,
        "command": shell_line(),
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


def interrupted(stop: Stop) -> int:
    """Say how to go on; returns the exit code of the signal."""
    print("interrupted: the same command continues from what its runs have committed", file=sys.stderr)
    return INTERRUPTED + stop.signal
