"""Cross-validation of one configuration (`sweep.cv`): what is made of the finished runs of its folds.

Fold k is the ordinary run with `dataset.validation={folds: cv, fold: k}`; the last run has all training blocks and is what
the configuration describes without `sweep.cv`. All have keys and directories of their own, so each resumes on its own, and
what is complete, in another sweep or alone, is not run again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.run import locations
from gapwise.pipeline.sweep.plan import Planned
from gapwise.records import Record
from gapwise.storage.backend import Location


def choose_lambda(
    jobs: Sequence[Planned], folder: Location, stop: Stop, report: Callable[[int, int, str], None]
) -> dict[str, object]:
    """Choose lambda on the finished runs; writes cross_validation.json, .csv and a figure into `folder`.

    With `run.refit` it is then solved on all training blocks, which leaves refit/ and model/ there.

    Returns
    -------
    dict
        For summary.json: figures, text (lines for a person), cross_validation (the single numbers).
    """
    from gapwise.stages.choice.folds import FinishedRun, cross_validated, lines, table
    from gapwise.stages.reports.sweep_charts import Out, folds
    from gapwise.stages.reports.tables import write_csv
    from gapwise.storage.files import write_json

    runs = []
    for job in jobs:
        assert job.settings is not None
        directory, features, _ = locations(job.settings, job.source)
        runs.append(FinishedRun(directory.key, directory.path, features))
    assert jobs[-1].settings is not None
    asked = jobs[-1].settings.run
    result = cross_validated(runs[:-1], runs[-1], folder, report, asked.criterion, asked.pick)
    write_json(folder / "cross_validation.json", result)
    write_csv(folder / "cross_validation.csv", table(result))
    drawn = Out(folder).figure("cross_validation", folds(result))
    numbers = {name: value for name, value in result.items() if isinstance(value, int | float)}
    chosen: dict[str, object] = {"figures": [drawn], "cross_validation": numbers}
    if not jobs[-1].settings.asks_for_refit:
        return {**chosen, "text": lines(result)}
    again = _refitted(jobs[-1], result["best_lambda"], folder, stop, report)
    gap = f"a gap of {again['gap']:.3g}, {again['gap'] / again['primal']:.2g} of the objective"
    said = f"λ {again['lambda']:.3g} to {gap} · test loss {again['test_loss']:.3g}"
    text = [*lines(result)[:-1], f"{'refit':>8}  {said}"]
    return {**chosen, "text": [*text, f"{'model':>8}  {folder / 'model'}"], "refit": again}


def _refitted(
    whole: Planned, lam: float, folder: Location, stop: Stop, report: Callable[[int, int, str], None]
) -> Record:
    """Solve lambda on all training blocks, from the dual point of their path on, and write the model; its numbers."""
    from gapwise.stages.featurize import open_problem
    from gapwise.stages.model.from_run import model_of
    from gapwise.stages.refit import measure, refit
    from gapwise.stages.solve import Session
    from gapwise.storage.features import open_features
    from gapwise.storage.format import REFIT
    from gapwise.storage.paths import open_path

    settings = whole.settings
    assert settings is not None
    directory, features, _ = locations(settings, whole.source)
    problem, store = open_problem(features, "train"), open_features(features)
    with Compute(ComputeOptions(), stop) as compute:
        spread = compute.spread(features, folder / ".tmp-weights", False)
        session = Session(spread=spread, stop=stop, every_seconds=settings.checkpoint.every_seconds)
        status = refit(
            problem, open_path(directory.path), lam, folder / REFIT,
            options=settings.solver, seed=settings.seed, key=directory.key, session=session, report=report,
        )  # fmt: skip
        if status == "INTERRUPTED":
            raise Interrupted(stop.signal)
        if not (folder / REFIT / "path.zarr").is_dir():
            raise ValueError(f"refit: solver.max_seconds was over before λ {lam:g} was solved; give more")
        measures = measure(store, folder / REFIT, spread)
    model_of(directory.path, lam, trust=True, refit=folder / REFIT).save(folder / "model")
    return {**measures, "status": str(status)}
