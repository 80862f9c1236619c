"""The table of a sweep's runs: one row per run for programs (runs.csv, summary.json), one line for the terminal."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean, stdev

from gapwise.pipeline.rundir import RunDir, read_json
from gapwise.pipeline.sweep.plan import Planned
from gapwise.records import Record
from gapwise.stages.certify.verdict import CLAIMED, Doubt, read_verdict, verdict_of
from gapwise.stages.solver.options import Status
from gapwise.storage.backend import Location
from gapwise.storage.files import listed
from gapwise.storage.format import measures_of

Row = Record
COLUMNS = (
    ("λ's", "breakpoints", "d"),
    ("passes", "passes", ".1f"),
    ("gap", "gap", ".2g"),
    ("best λ", "best_lambda", ".3g"),
    ("val. loss", "validation_loss", ".4g"),
    ("test loss", "test_loss", ".4g"),
    ("solving s", "solve_seconds", ".1f"),
)
"""Heading, name in the row, format."""
WORK = ("effective_passes", "seconds")
"""What every lambda of a path took."""
WORST = ("failed", "refused", "interrupted", "waiting")
"""Statuses of an unfinished run; a finished one is `complete` (before this sweep) or `done` (by it)."""


LIMITS = {
    "PASS_LIMIT": "its passes",
    "ORACLE_LIMIT": "its oracle calls",
    "TIME_LIMIT": "its seconds",
}
"""Ends of a solve short of its tolerance, and what to call a budget that is not known."""


def row(job: Planned, directory: RunDir | None) -> Row:
    """The row of a run that has not begun; a job that cannot be run has no directory."""
    settings, path = job.settings, None if job.settings is None else job.settings.path
    tolerance = None if path is None or "tolerance" in path.can.unread else path.tolerance
    return {
        "name": job.name, "dataset": job.dataset, "variant": job.variant,
        "lambda": job.lam, "tolerance": tolerance, "seed": None if settings is None else settings.seed,
        "experiment": job.experiment, "status": job.status, "seconds": 0.0, "error": job.error, "breakpoints": None,
        "passes": None, "gap": None, "certified": None, "doubt": "", "best_lambda": None,
        "validation_loss": None, "test_loss": None,
        "solve_seconds": None, "solve_status": "", "budget": budget(job), "commit": "", "made": "", "load": None,
        "key": directory.key if directory else "", "run": str(directory.path) if directory else "",
    }  # fmt: skip


def budget(job: Planned) -> str:
    """What a run may spend on each lambda, in words; empty if nothing limits it."""
    solver = None if job.settings is None else job.settings.solver
    limits = () if solver is None else (
        (solver.max_passes, "passes"), (solver.max_oracle_calls, "oracle calls"), (solver.max_seconds, "s"),
    )  # fmt: skip
    return ", ".join(f"{most:g} {unit}" for most, unit in limits if most < math.inf)


def facts(directory: Location) -> Row:
    """Columns read from a finished run; fewer if it was asked to stop at an earlier stage."""
    return origin(directory) | (solved_facts(directory) or unsolved_facts(directory))


def origin(directory: Location) -> Row:
    """From the manifest: the commit that began a run, the day, and the machine's load average when its solve ended."""
    row: Row = {}
    with contextlib.suppress(ValueError, KeyError, OSError):
        manifest = read_json(directory / "manifest.json") or {}
        row = {"commit": manifest.get("commit") or "", "made": str(manifest["created"]).partition("T")[0]}
        row["load"] = manifest["stages"]["solve"].get("load")
    return row


def solved_facts(directory: Location) -> Row:
    """Columns of the solved path; nothing if there is none."""
    row: Row = {}
    with contextlib.suppress(ValueError, KeyError, OSError):
        result = read_json(directory / "result.json")
        if result is None:
            from gapwise.storage.results import read_path

            path, attrs = read_path(directory / "path.zarr", (*WORK, *CLAIMED).__contains__)
            passes, seconds = (path[name].tolist() for name in WORK)
            verdict = read_verdict(directory, path, attrs)
        else:
            passes, seconds = ([record[name] for record in result["path"]] for name in WORK)
            verdict = verdict_of(result["verdict"])
        row["breakpoints"] = len(passes)
        row["passes"] = round(float(sum(passes)), 3)
        row |= {"gap": verdict.largest_gap, "certified": verdict.certified, "doubt": verdict.doubt or ""}
        row["solve_seconds"] = round(float(sum(seconds)), 3)
        if result is not None:
            row["solve_status"] = result["status"]
            best, served = result["evaluate"], measures_of(result)
            row |= {"best_lambda": best["best_lambda"], "test_loss": served["test_loss"]}
            row["validation_loss"] = best.get("validation_loss")
    return row


def unsolved_facts(directory: Location) -> Row:
    """The same of a run whose time was over before its lambda was solved, from its last snapshot; nothing if it has none."""
    row: Row = {}
    with contextlib.suppress(ValueError, KeyError, OSError, IndexError):
        from gapwise.stages.reports.gap_trace import read_gap_trace

        last = {name: float(column[-1]) for name, column in read_gap_trace(directory).items()}
        row["passes"], row["solve_seconds"] = round(last["passes"], 3), round(last["seconds"], 3)
        row["gap"] = last["gap"] if math.isfinite(last["gap"]) else None
        row |= {"certified": False, "doubt": Doubt.UNFINISHED}
        row["solve_status"] = "TIME_LIMIT"
    return row


def last_line(directory: Location) -> str:
    """The last line a run in progress has logged, without date and level."""
    logs = listed(directory, "invocations/*/pipeline.log")
    said = logs[-1].read_text(encoding="utf-8", errors="replace").splitlines() if logs else []
    told = [line.split(" INFO ", 1)[1] for line in said if " INFO " in line]
    return told[-1] if told else "has begun"


def statuses(rows: Sequence[Row]) -> dict[str, int]:
    """How many runs have each status."""
    return dict(Counter(row["status"] for row in rows))


def lines(rows: Sequence[Row], seconds: float) -> list[str]:
    """The table of all runs that have begun, the errors below it, and a line that counts them."""
    wide = max(len(row["name"]) for row in rows)
    out = [f"{'run':<{wide}}  {'status':<11}" + "".join(f"{head:>10}" for head, _, _ in COLUMNS) + "  directory"]
    for row in (row for row in ranked(rows) if row["status"] != "waiting"):
        status = row["status"].upper() if row["status"] in WORST[:2] else row["status"]
        numbers = "".join(f"{_number(row[name], form):>10}" for _, name, form in COLUMNS)
        out.append(f"{row['name']:<{wide}}  {status:<11}{numbers}  {row['run'].rsplit('/', 1)[-1]}".rstrip())
    for row in rows:
        if row["status"] in WORST[:2]:
            out.append(f"{row['status'].upper()} {row['name']}: {row['error']}")
    out += [
        f"{name or 'all'}, {len(losses)} seeds: {column.replace('_', ' ')} {mean(losses):.4g} ± {stdev(losses):.2g}"
        for (name, column), losses in over_seeds(rows).items()
    ]
    out += _cut_off(rows)
    counts = statuses(rows)
    present = sum(number for status, number in counts.items() if status not in WORST)
    rest = "".join(f", {counts[status]} {status}" for status in WORST if counts.get(status))
    out.append(f"{present} of {len(rows)} runs there{rest} · {seconds:.0f} s")
    return out


def ranked(rows: Sequence[Row]) -> list[Row]:
    """The rows by their validation loss, the least first; those without one follow in their own order."""
    return sorted(rows, key=lambda row: math.inf if row.get("validation_loss") is None else row["validation_loss"])


def over_seeds(rows: Sequence[Row]) -> dict[tuple[str, str], list[float]]:
    """Losses of runs that differ in their seeds alone, two or more, by their common name and the column."""
    losses: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        name = " ".join(word for word in row["name"].split(" ") if not word.startswith("seed="))
        for column in ("validation_loss", "test_loss"):
            if name != row["name"] and row.get(column) is not None:
                losses.setdefault((name, column), []).append(row[column])
    return {key: values for key, values in losses.items() if len(values) > 1}


def _cut_off(rows: Sequence[Row]) -> list[str]:
    """Which runs are not certified, and why; whether budgets differ."""
    out = []
    cut: dict[str, list[str]] = {}
    endless: dict[str, list[str]] = {}
    doubted: dict[str, list[str]] = {}
    stalled: list[str] = []
    for row in rows:
        within = row["budget"] or LIMITS.get(row["solve_status"], "its limits")
        if row["doubt"] == Doubt.NO_DUAL_POINT:
            endless.setdefault(within, []).append(row["name"])
        elif row["doubt"] == Doubt.UNFINISHED and row["solve_status"] == Status.STALLED:
            stalled.append(row["name"])
        elif row["doubt"] == Doubt.UNFINISHED:
            cut.setdefault(within, []).append(row["name"])
        elif row["doubt"]:
            doubted.setdefault(row["doubt"], []).append(row["name"])
    for within, names in cut.items():
        out.append(f"not to the tolerance within {within}: {_few(names)}; gap and losses are those at that limit")
    if stalled:
        out.append(f"not to the tolerance, because exact passes no longer lowered the gap: {_few(stalled)}")
    for within, names in endless.items():
        out.append(f"without a dual point, so nothing is certified: {_few(names)}; losses are those after {within}")
    out += [f"not certified, {doubt}: {_few(names)}" for doubt, names in doubted.items()]
    if (cut or endless) and len(budgets := {row["budget"] or "no limit" for row in rows if row["solve_status"]}) > 1:
        out.append(f"budgets differ ({'; '.join(sorted(budgets))}): compare runs of the same budget only")
    return out


def _few(names: Sequence[str]) -> str:
    """The first four names, and how many more there are."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def common(dicts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """The items that all mappings share."""
    first = dict(dicts[0]) if dicts else {}
    return {key: value for key, value in first.items() if all(key in d and d[key] == value for d in dicts[1:])}


def _number(value: object, form: str) -> str:
    return format(value, form) if isinstance(value, int | float) else "–"
