"""The solve: every lambda of the path, with commits along the way; then path.zarr and trace.zarr."""

from __future__ import annotations

import contextlib
import copy
import os
from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage
from gapwise.records import Facts
from gapwise.stages.solver.options import ENDED

if TYPE_CHECKING:
    from gapwise.pipeline.config.settings import Settings
    from gapwise.pipeline.export import Export
    from gapwise.pipeline.job import Job
    from gapwise.pipeline.rundir import RunDir
    from gapwise.stages.choice.rising_loss import RisingLoss


def run(job: Job) -> dict[str, object]:
    from gapwise.pipeline.interrupt import Interrupted
    from gapwise.pipeline.progress import solver_line
    from gapwise.records import flat
    from gapwise.stages.solve import Session, Spacing, Task, solve
    from gapwise.stages.solver.counts import CERTIFIED, TRACE

    snapshots = job.settings.snapshots
    given = job.settings.path.given
    total = len(given) if len(given) > 1 else 0
    settings = job.settings
    session = Session(
        spread=job.spread,
        report=lambda counters: job.progress.report(counters["breakpoint"], total, solver_line(counters, total)),
        stop=job.stop,
        committed=lambda rows: job.tracker.observe(dict(zip((*TRACE, CERTIFIED), rows.T, strict=False))),
        every_seconds=settings.checkpoint.every_seconds,
    )
    options = copy.copy(settings.solver)
    if snapshots.rebase_passes is not None and hasattr(options, "rebase_steps"):  # or a method without blocks
        options.rebase_steps = max(1, round(snapshots.rebase_passes * job.train.n))
    status = solve(
        Task(job.train, options, settings.path, settings.seed, start=job.start),
        job.dir.path,
        key=job.dir.key,
        science=flat(settings.science),
        snapshots=Spacing(snapshots.every_passes, snapshots.every_share),
        session=session,
        ending=ending_of(job),
    )
    if status == "INTERRUPTED":
        raise Interrupted(job.stop.signal)
    solved = (job.dir.path / "path.zarr").exists()
    if not solved and not (snapshots.every_passes and job.settings.run.until == "solve"):
        raise ValueError(
            f"{job.dir.path}: solver.max_seconds={job.settings.solver.max_seconds:g} was over before the first lambda was "
            "solved; what was done is committed, and the same command with more seconds continues from there"
        )
    if snapshots.every_passes:
        from gapwise.stages.featurize import open_problem
        from gapwise.stages.reports.gap_trace import gap_trace
        from gapwise.storage.files import remove

        test = open_problem(job.features_path, "test") if snapshots.test else None
        if gap_trace(job.train, job.dir.path, test=test, spread=job.spread, report=job.report) and not snapshots.keep:
            remove(job.dir.path / "snapshots.zarr")
    return {
        "status": str(status),
        "max_seconds": job.settings.solver.max_seconds,
        "load": round(os.getloadavg()[0], 2),
        **certified_of(job),
        **({} if solved else {"solved": False}),
    }


def ending_of(job: Job) -> RisingLoss | None:
    """What ends the path of `path.end=loss_rises`: the losses of the validation blocks."""
    from gapwise.stages.solver.options import LOSS_RISES

    if job.settings.path.end != LOSS_RISES:
        return None
    from gapwise.stages.choice.rising_loss import RisingLoss
    from gapwise.stages.featurize import open_problem
    from gapwise.stages.model.predict import predict
    from gapwise.stages.problems.held_out import VALIDATION

    held_out = open_problem(job.features_path, VALIDATION)
    return RisingLoss(lambda w: predict(held_out, w, job.spread, VALIDATION)[1])


def certified_of(job: Job) -> dict[str, object]:
    """The eps that is certified at every lambda, where `path.eps` only says where to stop."""
    path = job.dir.path / "path.zarr"
    if not job.settings.path.can.open_ended or not path.exists():
        return {}
    from gapwise.storage.results import read_path

    return {"certified": float(read_path(path, ())[1]["eps"])}


def unfinished(facts: Facts, settings: Settings) -> bool:
    """Whether a solve that is done has more to do.

    It does if it ran out of time and is now allowed more, or has no result for the stages after it; and with
    `path.rule=anytime`, whose path.eps is where to stop, if the eps that it certifies is above the one asked for.
    With snapshots and `run.until=solve` a solve may end before its first lambda is solved: the gap trace is its result.
    """
    if "certified" in facts and facts.get("status") in ENDED:  # of a path that goes on to a smaller eps
        return float(facts["certified"]) > settings.path.eps
    if facts.get("status") != "TIME_LIMIT":
        return False
    nothing = not facts.get("solved", True) and settings.run.until != "solve"
    return nothing or settings.solver.max_seconds > float(facts["max_seconds"])


def discard(job: Job) -> None:
    """Remove a damaged path; with snapshots also the state, because the snapshots that it refers to are gone."""
    from gapwise.storage.files import remove

    for name in ("path.zarr", *(("state",) if job.settings.snapshots.every_passes else ())):
        with contextlib.suppress(OSError):
            remove(job.dir.path / name)


def export(to: Export) -> None:
    from gapwise.pipeline.result import breakpoints
    from gapwise.pipeline.rundir import read_json
    from gapwise.storage.format import MEASURES

    records, _ = breakpoints(to.run)
    rows, passes, calls = [], 0.0, 0
    for number, record in enumerate(records):
        passes, calls = passes + record["effective_passes"], calls + record["oracle_calls"]
        facts = {name: record[name] for name in ("lambda", "gap", "primal", "dual", "status")}
        rows.append({"breakpoint": number, **facts, "passes": passes, "oracle_calls": calls})
    to.table("path.csv", rows)
    to.tree("path.zarr", *MEASURES)
    to.json(
        "solve.json",
        {
            "status": read_json(to.run / "manifest.json")["stages"]["solve"]["status"],
            "breakpoints": len(records),
            "last_lambda": records[-1]["lambda"],
            "effective_passes": passes,
            "oracle_calls": calls,
            "seconds": sum(record["seconds"] for record in records),
        },
    )


def result(settings: Settings, directory: RunDir) -> dict[str, object]:
    from gapwise.pipeline.result import breakpoints

    path, attrs = breakpoints(directory.path)
    solved = directory.manifest["stages"]["solve"]
    return {
        "status": solved["status"],
        "rule": attrs["rule"],
        "certainty": attrs["certainty"],
        **({"every_lambda_within": solved["certified"]} if "certified" in solved else {}),
        "problem": {"name": settings.data_name, "n": int(attrs["n"]), "d": int(attrs["d"])},
        "view": {"steps": attrs.get("view", ""), "cached": attrs.get("cached_view", "")},
        "path": path,
    }


STAGE = Stage(
    "solve",
    run,
    commits=True,
    outputs=("path.zarr", "trace.zarr"),
    unfinished=unfinished,
    discard=discard,
    export=export,
    result=result,
)
