"""A sweep: many ordinary runs over a bounded number of worker processes, a table, and figures over all of them.

The runs are those of a Hydra multirun, the variants × lambdas × tolerances × seeds of an experiment (`plan`), or the folds
of a cross-validation (`folds`). Each has its own run directory and resumes on its own: the same command skips the runs that
are complete and continues the others. A run that fails, or whose worker dies twice, does not stop the rest. The directory
of a sweep, `<run.root>/sweeps/<experiment>-<key>`, depends only on the keys of its runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gapwise.parts import digest_of, sources
from gapwise.pipeline.compute.ready import check_scheduler
from gapwise.pipeline.config.run_options import ComputeOptions, ConfigError, TrackingOptions
from gapwise.pipeline.config.settings import Settings, fingerprint
from gapwise.pipeline.errors import BAD_CONFIGURATION, DONE, FAILED, INTERRUPTED, one_line, refuse
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.result import complete
from gapwise.pipeline.run import locations
from gapwise.pipeline.rundir import LockedError, RunDir, locked, read_json, shell_line, write_json
from gapwise.pipeline.saved import interruption, saved_of_run
from gapwise.pipeline.stage_graph import stages
from gapwise.pipeline.sweep import table
from gapwise.pipeline.sweep.folds import choose_lambda
from gapwise.pipeline.sweep.plan import Planned
from gapwise.pipeline.sweep.shared_features import prepare
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

    experiment: str | None
    jobs: list[Planned]
    workers: int
    tracking: TrackingOptions
    figure: str | None = None
    folds: bool = False
    """Whether the runs are the folds of a cross-validation and the run on all training blocks."""
    refits: bool = False
    """Whether the lambda that the folds pick is solved on all training blocks."""
    formats: tuple[str, ...] = ("png",)
    """Of the figures over all runs."""

    def __post_init__(self) -> None:
        directories = [None if job.settings is None else locations(job.settings, job.source)[0] for job in self.jobs]
        self.rows = [table.row(job, where) for job, where in zip(self.jobs, directories, strict=True)]
        self.key = fingerprint(
            {"format": FORMAT_VERSION, "runs": sorted({where.key for where in directories if where})}
        )
        root = location(next((job.settings.run.root for job in self.jobs if job.settings is not None), "."))
        name = self.experiment or "multirun"
        self.folder = root / "sweeps" / f"{name}-{self.key[:8]}"

    def far(self, todo: Mapping[int, Planned]) -> ComputeOptions | None:
        """Options of the remote workers that take the runs, one each; None if the runs stay on this machine."""
        options = [job.settings.compute for job in todo.values() if job.settings is not None]
        return options[0] if options and options[0].kind == "cluster" else None


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
    workers = min((far.workers or len(todo)) if far else whole.workers, max(len(todo), 1))
    finished = [location(row["run"]) for row in rows if row["status"] == "complete"]
    print(f"sweep: {len(rows)} runs, {len(finished)} complete; {workers} workers", file=sys.stderr, flush=True)
    tracker = SweepTracker(whole.tracking, whole.folder)
    tracker.begin(_summary(whole), finished)
    if todo:
        prepare([whole.jobs[number] for number in todo], stop)
        here = {} if far is None else {"compute": {"kind": "serial", "workers": 1}}
        command = shell_line()
        tasks = [
            Task(number, {**job.config, **here}, job.experiment, job.overrides, command) for number, job in todo.items()
        ]
        run_tasks(tasks, workers, whole.folder, stop, *_reporting(rows, tracker), far)
    result = _summary(whole)
    wrong, drawn = False, None if todo else drawn_before(whole)
    if drawn is not None:
        result |= {name: value for name, value in drawn.items() if name not in result}
    elif (whole.figure or whole.folds) and not stop():
        try:
            result |= _folds(whole, stop) if whole.folds else {**_compare(whole), DRAWN: drawn_from(whole)}
        except Interrupted:
            pass
        except (ValueError, OSError, KeyError) as error:
            wrong = bool(refuse(error, FAILED, "figures: "))
    write_json(whole.folder / "summary.json", result)
    write_csv(whole.folder / "runs.csv", rows)
    if drawn is None or not (whole.folder / "report.html").is_file():
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
    return compare_parts(str(whole.figure), parts, whole.folder, whole.formats)


DRAWN = "drawn_from"
"""Entry of summary.json: what its figures and tables were made from."""


def drawn_from(whole: Sweep) -> str:
    """Hash of the finished runs and their numbers, of which figure and formats are wanted, and of the code that draws."""
    from gapwise.stages import reports

    (folder,) = map(Path, reports.__path__)
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*.py")} | sources("gapwise.stages.reports")
    rows = [{name: value for name, value in row.items() if name not in ("status", "seconds")} for row in whole.rows]
    return fingerprint({"rows": rows, "figure": whole.figure, "formats": whole.formats, "code": digest_of(files)})


def drawn_before(whole: Sweep) -> Record | None:
    """summary.json with the figures and tables of an earlier command, if they would be the same now; otherwise None."""
    from gapwise.stages.reports.sweep_figures import figure_file

    try:
        before = read_json(whole.folder / "summary.json")
    except (ValueError, OSError):
        return None
    if whole.folds or not before or before.get(DRAWN) != drawn_from(whole):
        return None
    names = [f"{name.removesuffix('.png')}.{form}" for name in before.get("figures", ()) for form in whole.formats]
    return before if all(figure_file(whole.folder, name).is_file() for name in names) else None


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

    return choose_lambda(whole.jobs, whole.folder, stop, report, whole.refits)


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
