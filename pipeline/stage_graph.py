"""The stage graph: what each stage is given, in the order of the data flow, with its imports at its own door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.compute.local import Compute
from pipeline.config.settings import Settings
from pipeline.interrupt import Interrupted, Stop
from pipeline.progress import Progress, solver_line
from pipeline.rundir import RunDir, flat, locked
from pipeline.tracking.mlflow import Tracker
from storage.places import Place

if TYPE_CHECKING:
    from stages.parallel import Spread
    from stages.problems.protocol import Problem
    from stages.solver.path.rule import PathStart


@dataclass
class Job:
    """What a stage is given: settings, places, and ways to compute and to report."""

    settings: Settings
    dir: RunDir
    features_path: Place
    features_key: str
    compute: Compute
    progress: Progress
    stop: Stop
    tracker: Tracker
    start: PathStart | None = None
    """What init_path found, if it ran in this process: solve need not find it again."""

    @cached_property
    def train(self) -> Problem:
        from stages.featurize import open_problem

        return open_problem(self.features_path, "train")

    @cached_property
    def spread(self) -> Spread:
        """Ways to spread the blocks of this run's problems."""
        from stages.problems import calls_python
        from storage.features import open_features

        processes = self.compute.kind == "processes"
        python = processes and calls_python(open_features(self.features_path).meta["structure"])
        return self.compute.spread(self.features_path, self.dir.path / ".tmp-weights", python)

    def report(self, done: int, total: int, what: str) -> None:
        """Progress of a stage that commits nothing half-way: ends it if a stop was asked for."""
        self.stop.check()
        self.progress.report(done, total, what)


def _featurize(job: Job) -> dict[str, Any]:
    make_features(job.settings.dataset, job.features_path, job.features_key, job.compute, job.report)
    return {"key": job.features_key, "path": str(job.features_path)}


def make_features(
    dataset: Mapping[str, Any], path: Place, key: str, compute: Compute, report: Callable[[int, int, str], None]
) -> None:
    """The features of a data set at `path`, made unless they are there; waits while another process makes them."""
    from stages.featurize import featurize

    def waiting(holder: str) -> None:
        report(0, 0, f"waiting for the features that {holder} is making")

    with locked(path.with_name(f"{path.name}.lock"), waiting):
        featurize(dataset, path, key=key, map_blocks=compute.map_blocks, report=report)


def _init_path(job: Job) -> dict[str, Any]:
    from stages.init_path import init_path

    job.start = init_path(job.train, job.settings.path, job.spread)
    return {} if job.start is None else {"lambda": float(job.start.lam)}


def _solve(job: Job) -> dict[str, Any]:
    from stages.solve import solve
    from stages.solver.counts import TRACE

    total = len(job.settings.path.lambdas) if job.settings.path.kind == "grid" else 0
    status = solve(
        job.train,
        job.settings.solver,
        job.settings.path,
        job.dir.path,
        key=job.dir.key,
        seed=job.settings.seed,
        science=flat(job.settings.science),
        start=job.start,
        spread=job.spread,
        report=lambda at: job.progress.report(at["breakpoint"], total, solver_line(at, total)),
        stop=job.stop,
        every_seconds=job.settings.checkpoint.every_seconds,
        snapshot_passes=job.settings.snapshots.every_passes,
        observe=lambda rows: job.tracker.observe(dict(zip(TRACE, rows.T, strict=True))),
    )
    if status == "INTERRUPTED":
        raise Interrupted(job.stop.signal)
    if not (job.dir.path / "path.zarr").exists():
        raise ValueError(
            f"{job.dir.path}: solver.max_seconds={job.settings.solver.max_seconds:g} was over before the first lambda was "
            "solved; what was done is committed, and the same command with more seconds goes on from there"
        )
    if job.settings.snapshots.every_passes:
        from stages.reports.gap_trace import gap_trace

        gap_trace(job.train, job.dir.path, spread=job.spread, report=job.report)
    return {"status": str(status), "max_seconds": job.settings.solver.max_seconds}


def _verify(job: Job) -> dict[str, Any]:
    from stages.verify import verify

    found = verify(job.train, job.dir.path, spread=job.spread, report=job.report)
    return {"certified": bool(found["certified"])}


def _evaluate(job: Job) -> dict[str, Any]:
    from stages.evaluate import evaluate

    evaluate(job.features_path, job.dir.path, spread=job.spread, report=job.report)
    return figures(job)


def figures(job: Job) -> dict[str, Any]:
    """Draw what there is to see; part of evaluate, and alone as run.stage=figures."""
    from stages.reports.run_figures import draw
    from storage.features import open_features

    return {"figures": [path.name for path in draw(job.dir.path, open_features(job.features_path))]}


GRAPH: dict[str, Callable[[Job], dict[str, Any]]] = {
    "featurize": _featurize,
    "init_path": _init_path,
    "solve": _solve,
    "verify": _verify,
    "evaluate": _evaluate,
}
"""In the order of the data flow; each needs those before it."""
