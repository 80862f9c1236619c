"""The stage graph: what each stage is given, in the order of the data flow, with its imports at its own door."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.compute import Compute
from pipeline.config import Settings
from pipeline.interrupt import Interrupted, Stop
from pipeline.progress import Progress
from pipeline.rundir import RunDir, locked
from pipeline.tracking import Tracker

if TYPE_CHECKING:
    from storage.features import Features


@dataclass
class Job:
    """What a stage is given: settings, places, and ways to compute and to report."""

    settings: Settings
    dir: RunDir
    features_path: Path
    features_key: str
    compute: Compute
    progress: Progress
    stop: Stop
    tracker: Tracker

    @cached_property
    def features(self) -> Features:
        from storage.features import open_features

        return open_features(self.features_path)

    @cached_property
    def train(self) -> Any:
        from stages.featurize import open_problem

        return open_problem(self.features_path, "train")

    @cached_property
    def test(self) -> Any:
        from stages.featurize import open_problem

        return open_problem(self.features_path, "test")

    def report(self, done: int, total: int, what: str) -> None:
        """Progress of a stage that commits nothing half-way: ends it if a stop was asked for."""
        self.stop.check()
        self.progress.report(done, total, what)


def _featurize(job: Job) -> dict[str, Any]:
    from stages.featurize import featurize

    lock = job.features_path.with_name(f"{job.features_path.name}.lock")

    def waiting(holder: str) -> None:
        job.report(0, 0, f"waiting for the features that {holder} is making")

    with locked(lock, waiting):
        featurize(
            job.settings.dataset,
            job.features_path,
            key=job.features_key,
            map_blocks=job.compute.map_blocks,
            report=job.report,
        )
    return {"key": job.features_key, "path": str(job.features_path)}


def _init_path(job: Job) -> dict[str, Any]:
    from stages.init_path import init_path

    if not job.settings.path.is_path:
        return {}
    return {"lambda": float(init_path(job.train, job.settings.path).lam)}


def _solve(job: Job) -> dict[str, Any]:
    from stages.solve import solve

    status = solve(
        job.train,
        job.settings.solver,
        job.settings.path,
        job.dir.path,
        key=job.dir.key,
        seed=job.settings.seed,
        map_ranges=job.compute.map_ranges,
        report=job.progress.report,
        stop=job.stop,
        every_seconds=job.settings.checkpoint.every_seconds,
        observe=job.tracker.observe,
    )
    if status == "INTERRUPTED":
        raise Interrupted(job.stop.signal)
    return {"status": str(status), "max_seconds": job.settings.solver.max_seconds}


def _verify(job: Job) -> dict[str, Any]:
    from stages.verify import verify

    found = verify(
        job.train, job.dir.path, path=job.settings.path, map_ranges=job.compute.map_ranges, report=job.report
    )
    return {"certified": bool(found["certified"])}


def _evaluate(job: Job) -> dict[str, Any]:
    from stages.evaluate import evaluate

    evaluate(job.train, job.test, job.features, job.dir.path, map_ranges=job.compute.map_ranges, report=job.report)
    return figures(job)


def figures(job: Job) -> dict[str, Any]:
    from stages.figures import draw

    return {"figures": [path.name for path in draw(job.dir.path, job.features)]}


GRAPH: dict[str, Callable[[Job], dict[str, Any]]] = {
    "featurize": _featurize,
    "init_path": _init_path,
    "solve": _solve,
    "verify": _verify,
    "evaluate": _evaluate,
}
"""In the order of the data flow; each needs those before it."""
