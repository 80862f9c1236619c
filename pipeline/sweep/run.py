"""A sweep: many ordinary runs over a bounded number of worker processes, a table, and figures over all of them.

The runs are the jobs that Hydra's launcher has composed (`launcher`). Each has its own run directory and resumes on its own:
the same command skips the runs that are complete and continues the others. A run that fails, or whose worker dies twice,
does not stop the rest. The directory of a sweep, `<run.root>/sweeps/<experiment>-<key>`, depends only on the keys of its
runs.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gapwise.pipeline.compute.local import check_packages, check_scheduler
from gapwise.pipeline.config.run_options import ComputeOptions, ConfigError, SweepOptions, default_workers
from gapwise.pipeline.config.settings import Settings, fingerprint, sweep_options
from gapwise.pipeline.errors import (
    BAD_CONFIGURATION,
    DONE,
    FAILED,
    INTERRUPTED,
    one_line,
    refuse,
    refuse_setup,
)
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.result import complete
from gapwise.pipeline.run import locations
from gapwise.pipeline.rundir import LockedError, RunDir, locked, read_json, shell_line, write_json
from gapwise.pipeline.saved import interruption, saved_of_run
from gapwise.pipeline.stage_graph import stages
from gapwise.pipeline.sweep import table
from gapwise.pipeline.sweep.folds import choose_lambda
from gapwise.pipeline.sweep.plan import Asked, Planned, count_blocks, make_shared, plan
from gapwise.pipeline.sweep.workers import Task, run_tasks
from gapwise.pipeline.tracking.mlflow import SweepTracker
from gapwise.records import Record, flat
from gapwise.storage.backend import Location, location
from gapwise.storage.format import FORMAT_VERSION

SAY_SECONDS = 30.0
"""Seconds between two reports on the runs in progress."""


@dataclass
class Sweep:
    """The runs, what is known about each (`table.row`), and the sweep's directory."""

    jobs: list[Planned]
    options: SweepOptions

    def __post_init__(self) -> None:
        directories = [None if job.settings is None else locations(job.settings, job.source)[0] for job in self.jobs]
        self.rows = [table.row(job, where) for job, where in zip(self.jobs, directories, strict=True)]
        self.key = fingerprint(
            {"format": FORMAT_VERSION, "runs": sorted({where.key for where in directories if where})}
        )
        self.settings = next(job.settings for job in reversed(self.jobs) if job.settings is not None)
        """Of the last run, which stand for those of all: of a cross-validation the one on all training blocks."""
        experiments = {job.experiment for job in self.jobs}
        self.experiment = experiments.pop() if len(experiments) == 1 else None
        if self.folds:
            self.experiment = f"{self.experiment or self.settings.data_name}-cv"
        name = self.experiment or ("sweep" if self.options.variants else "multirun")
        self.folder = location(self.settings.run.root) / "sweeps" / f"{name}-{self.key[:8]}"

    @property
    def folds(self) -> bool:
        """Whether the runs are the folds of a cross-validation and the run on all training blocks."""
        return self.options.cv is not None

    @property
    def figure(self) -> str | None:
        """Name of the figure over all runs."""
        return self.options.figure if self.options.variants and not self.folds else None

    def far(self, todo: Mapping[int, Planned]) -> ComputeOptions | None:
        """Options of the remote workers that take the runs, one each; None if the runs stay on this machine."""
        options = [job.settings.compute for job in todo.values() if job.settings is not None]
        return options[0] if options and options[0].kind == "cluster" else None


def run_batch(asked: Sequence[Asked]) -> int:
    """Run the jobs of a sweep; returns the exit code: 0, 1 if any failed, 2 if any was refused, 130 or 143."""
    with Stop(ends_process=True) as stop:
        try:
            options = sweep_options(asked[-1].cfg)
            jobs = plan(asked, stop)
            refused = [job for job in jobs if job.settings is None]
            for job in refused:
                print(f"error: {job.name}: {job.error}", file=sys.stderr)
            if len(refused) == len(jobs) or (refused and options.cv is not None):
                return max(FAILED if job.status == "failed" else BAD_CONFIGURATION for job in refused)
            whole = Sweep(jobs, options)
            check_packages(whole.settings.tracking)
            if whole.folds:
                _check_folds(whole, stop)
        except (ValueError, OSError) as error:
            return refuse_setup(error)
        except (Interrupted, KeyboardInterrupt):
            return interrupted(stop)
        return carry_out(whole, stop)


def _check_folds(whole: Sweep, stop: Stop) -> None:
    """DataError if there are fewer training blocks than folds; makes the features that those of the folds are taken from."""
    from gapwise.stages.datasets import DataError

    blocks = count_blocks(whole.settings, whole.jobs[-1].source, stop)
    if int(whole.options.cv or 0) > blocks:
        asked = f"sweep.cv: {whole.options.cv} folds of {blocks} training blocks"
        raise DataError(f"{asked}; ask for at most as many folds as blocks")


def carry_out(whole: Sweep, stop: Stop) -> int:
    """Run what is not done yet, draw the figures, write the summary; returns the exit code."""
    if str(whole.folder).startswith("memory://"):
        text = "run.root: memory:// belongs to one process, and a sweep has many; use a directory or s3://"
        return refuse(ConfigError(text), BAD_CONFIGURATION)
    try:
        with locked(whole.folder / "lock"):
            return _sweep(whole, stop)
    except (LockedError, OSError, RuntimeError) as error:
        return interrupted(stop, saved_of(whole.rows)) if stop() else refuse(error, FAILED)
    except KeyboardInterrupt:
        return interrupted(stop, saved_of(whole.rows))


def _sweep(whole: Sweep, stop: Stop) -> int:
    from gapwise.stages.reports.tables import write_csv

    started, rows = time.monotonic(), whole.rows
    todo = _todo(whole)
    far = whole.far(todo)
    if far is not None:
        check_scheduler(far)
    here = whole.options.workers or default_workers()
    workers = min((far.workers or len(todo)) if far else here, max(len(todo), 1))
    finished = [location(row["run"]) for row in rows if row["status"] == "complete"]
    print(f"sweep: {len(rows)} runs, {len(finished)} complete; {workers} workers", file=sys.stderr, flush=True)
    tracker = SweepTracker(whole.settings.tracking, whole.folder)
    tracker.begin(_summary(whole), finished)
    if todo:
        prepare([*todo.values()], stop)
        alone = {} if far is None else {"compute": {"kind": "serial", "workers": 1}}
        command = shell_line()
        tasks = [
            Task(number, {**job.config, **alone}, job.experiment, job.overrides, command)
            for number, job in todo.items()
        ]
        run_tasks(tasks, workers, whole.folder, stop, *_reporting(rows, tracker), far)
    result, wrong = _summary(whole), False
    if (whole.figure or whole.folds) and not stop():
        try:
            result |= _folds(whole, stop) if whole.folds else _compare(whole)
        except Interrupted:
            pass
        except (ValueError, OSError, KeyError) as error:
            wrong = bool(refuse(error, FAILED, "figures: "))
    write_json(whole.folder / "summary.json", result)
    write_csv(whole.folder / "runs.csv", table.ranked(rows))
    _report(whole)
    rule = "─" * 88
    text = [rule, *table.lines(rows, time.monotonic() - started), rule, *result.get("text", ())]
    print("\n".join(text), flush=True)
    code = max(exit_code(rows), FAILED * wrong)
    half_way = stop() or "waiting" in result["statuses"]
    tracker.finish(result, "KILLED" if half_way else "FAILED" if code else "FINISHED")
    if stop():
        return interrupted(stop, saved_of(rows))
    print(f"sweep: {whole.folder}", flush=True)
    return code


def _todo(whole: Sweep) -> dict[int, Planned]:
    """The runs still to be done, by number; a run that is requested under two names is done once."""
    todo: dict[str, int] = {}
    for number, (job, row) in enumerate(zip(whole.jobs, whole.rows, strict=True)):
        if job.settings is None:
            continue
        if is_complete(RunDir(location(row["run"]), row["key"]), job.settings):
            row |= {"status": "complete", **table.facts(location(row["run"]))}
        else:
            todo.setdefault(row["run"], number)
    return {number: whole.jobs[number] for number in todo.values()}


def is_complete(directory: RunDir, settings: Settings) -> bool:
    """Whether the last requested stage is done."""
    try:
        if settings.run.until is None:
            return complete(directory, settings) is not None
        manifest = read_json(directory.path / "manifest.json")
        if manifest is None or settings.run.until not in manifest["stages"]:
            return False
        done, directory.manifest = manifest["stages"], manifest
        return directory.damaged() is None and not any(stages()[name].has_more(done, settings) for name in done)
    except (ValueError, KeyError):
        return False  # the run itself will say what is wrong


def _reporting(
    rows: list[table.Row], tracker: SweepTracker
) -> tuple[Callable[[int, Record], None], Callable[[list[int]], None]]:
    """Two callbacks for `run_tasks`: one records, prints and tracks the end of a run, one reports on runs in progress."""
    said = time.monotonic()

    def say(line: str) -> None:
        nonlocal said
        said = time.monotonic()
        print(line, file=sys.stderr, flush=True)

    def ended(number: int, outcome: Record) -> None:
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


def _compare(whole: Sweep) -> dict[str, object]:
    from gapwise.stages.reports.sweep_figures import compare_parts

    good = [row for row in whole.rows if row["status"] in ("complete", "done")]
    parts: dict[str, list[tuple[str, str, int, Location]]] = {}
    for row in good:
        run = (row["variant"], row["lambda"], row["seed"], location(row["run"]))
        parts.setdefault(row["dataset"], []).append(run)
    return compare_parts(str(whole.figure), parts, whole.folder, tuple(whole.settings.figures.formats))


def prepare(jobs: Sequence[Planned], stop: Stop) -> None:
    """Make the features that runs share, once, on all cores. Each run reports its own errors, so none are raised here."""
    made = set()
    for job in jobs:
        assert job.settings is not None
        path = locations(job.settings, job.source)[1]
        if path not in made and not stop():
            made.add(path)
            with contextlib.suppress(ValueError, OSError, RuntimeError, Interrupted):
                make_shared(job.settings, job.source, stop)


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

    def report(done: int, total: int, activity: str) -> None:
        nonlocal said
        stop.check()
        if time.monotonic() - said >= SAY_SECONDS:
            said = time.monotonic()
            print(f"losses at {done}/{total} lambdas · {activity}", file=sys.stderr, flush=True)

    return choose_lambda(whole.jobs, whole.folder, stop, report)


def _summary(whole: Sweep) -> Record:
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


def exit_code(rows: Sequence[table.Row]) -> int:
    """Of a table of runs: the worst one decides."""
    statuses = table.statuses(rows)
    return BAD_CONFIGURATION if "refused" in statuses else FAILED if "failed" in statuses else DONE


def saved_of(rows: Sequence[table.Row]) -> str:
    """How many runs are complete, and how many others have saved anything; empty if none has."""
    runs = {row["run"]: row["status"] in ("complete", "done") for row in rows if row["run"]}
    complete = sum(runs.values())
    begun = sum(bool(saved_of_run(location(run))) for run, is_complete in runs.items() if not is_complete)
    said = (f"{complete} complete" if complete else "", f"{begun} begun" if begun else "")
    return f"{' and '.join(filter(None, said))} of {len(runs)} runs" if complete or begun else ""


def interrupted(stop: Stop, saved: str = "") -> int:
    """Say what is saved and how to go on; returns the exit code of the signal."""
    print(interruption(saved, "no run had saved anything yet"), file=sys.stderr)
    return INTERRUPTED + stop.signal
