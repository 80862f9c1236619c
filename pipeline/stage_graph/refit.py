"""The chosen lambda once more on all training blocks, those included that chose it: the model that leaves home.

With `run.refit`; by default where `dataset.validation` holds blocks of one's own data out. No number of the run before this
step depends on it, so it is no part of the run's key, and a finished run goes on with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapwise.pipeline.stage_graph import Stage
from gapwise.pipeline.stage_graph.evaluate import draw_figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gapwise.pipeline.config.settings import Settings
    from gapwise.pipeline.job import Job
    from gapwise.pipeline.rundir import RunDir
    from gapwise.records import Facts


def run(job: Job) -> dict[str, object]:
    from gapwise.pipeline.interrupt import Interrupted
    from gapwise.pipeline.progress import solver_line
    from gapwise.stages.choice.held_out import join
    from gapwise.stages.featurize import open_problem
    from gapwise.stages.problems import calls_python
    from gapwise.stages.refit import measure, refit
    from gapwise.stages.solve import Session
    from gapwise.storage.features import is_complete, open_features
    from gapwise.storage.files import read_json, remove
    from gapwise.storage.format import REFIT
    from gapwise.storage.paths import open_path

    settings, folder, features = job.settings, job.dir.path / REFIT, open_features(job.features_path)
    joined, lam = folder / "joined", float(read_json(job.dir.path / "metrics.json")["best_lambda"])
    if not is_complete(joined):
        join(features, joined, job.report)
    python = job.compute.kind == "processes" and calls_python(features.meta["structure"])
    session = Session(
        spread=job.compute.spread(joined, folder / ".tmp-weights", python),
        report=lambda counters: job.progress.report(counters["breakpoint"], 0, solver_line(counters, 0)),
        stop=job.stop,
        every_seconds=settings.checkpoint.every_seconds,
    )
    status = refit(
        open_problem(joined, "train"), open_path(job.dir.path), lam, folder,
        options=settings.solver, seed=settings.seed, key=job.dir.key, session=session, report=job.report,
    )  # fmt: skip
    if status == "INTERRUPTED":
        raise Interrupted(job.stop.signal)
    if not (folder / "path.zarr").is_dir():
        raise ValueError(
            f"{folder}: solver.max_seconds={settings.solver.max_seconds:g} was over before λ {lam:g} was solved on all "
            "blocks; what was done is committed, and the same command with more seconds continues from there"
        )
    with job.stop.at_once():  # nothing is committed any more
        measure(features, folder, job.spread)
        remove(joined)
        draw_figures(job)  # those of predictions show this model's from now on
    return {"status": str(status), "max_seconds": settings.solver.max_seconds}


def wanted(settings: Settings) -> bool:
    return settings.refits


def unfinished(facts: Facts, settings: Settings) -> bool:
    """Whether a refit that ran out of time is now allowed more."""
    return facts["status"] == "TIME_LIMIT" and settings.solver.max_seconds > float(facts["max_seconds"])


def discard(job: Job) -> None:
    """Remove all of it; the solve begins again."""
    from gapwise.storage.files import remove
    from gapwise.storage.format import REFIT

    if (job.dir.path / REFIT).exists():
        remove(job.dir.path / REFIT)


def result(settings: Settings, directory: RunDir) -> Mapping[str, object]:
    from gapwise.pipeline.rundir import read_json
    from gapwise.stages.certify.verdict import verdict_in
    from gapwise.storage.format import REFIT

    folder = directory.path / REFIT
    verdict = verdict_in(read_json(folder / "verify.json"), folder / "verify.json")
    status = directory.manifest["stages"]["refit"]["status"]
    return {"refit": {**read_json(folder / "metrics.json"), "status": status, "verdict": verdict.record()}}


STAGE = Stage(
    "refit",
    run,
    wanted=wanted,
    outputs=(
        "refit/path.zarr",
        "refit/verify.json",
        "refit/metrics.json",
        "refit/predictions.npz",
        "refit/predictions",
    ),
    unfinished=unfinished,
    discard=discard,
    commits=True,
    result=result,
)
