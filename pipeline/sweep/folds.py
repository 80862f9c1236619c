"""Cross-validation of one configuration (`sweep.cv`): its folds as runs of a sweep, and what is made of them afterwards.

Fold k is the ordinary run with `dataset.validation={folds: cv, fold: k}`; the last run has all training blocks and is what
the configuration describes without `sweep.cv`. All have keys and directories of their own, so each resumes on its own, and
what is complete, in another sweep or alone, is not run again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

from omegaconf import DictConfig, OmegaConf

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.run_options import ComputeOptions, ConfigError, default_workers
from gapwise.pipeline.config.settings import Settings, read, resolved
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.run import locations
from gapwise.pipeline.sweep.plan import EXPORT, Planned, sweep_options
from gapwise.records import Record
from gapwise.storage.backend import Location

WHOLE = "all training blocks"
"""Name of the last run."""


def asks_for_folds(cfg: DictConfig) -> bool:
    """Whether `cfg` asks for cross-validation."""
    return (cfg.get("sweep") or {}).get("cv") is not None


def checked(cfg: DictConfig, experiment: str | None, overrides: Sequence[str] = ()) -> Settings:
    """The settings of the run on all training blocks; ConfigError if they cannot be cross-validated."""
    folds, settings = sweep_options(cfg).cv, read(cfg, experiment=experiment, overrides=overrides)
    if settings.run.export is not None:
        raise ConfigError(EXPORT)
    if settings.run.until is not None:
        raise ConfigError(f"run.until: sweep.cv={folds} needs the losses of whole runs; leave it out")
    if "validation" in settings.dataset:
        raise ConfigError(f"dataset.validation: sweep.cv={folds} makes splits of its own; add dataset.validation=null")
    return settings


def plan_folds(
    cfg: DictConfig, settings: Settings, source: Mapping[str, object], blocks: int
) -> tuple[list[Planned], int]:
    """The runs, folds first, and how many run at a time. ValueError if there are fewer training `blocks` than folds."""
    from gapwise.stages.datasets import DataError

    options = sweep_options(cfg)
    folds = int(options.cv or 0)
    if folds > blocks:
        raise DataError(f"sweep.cv: {folds} folds of {blocks} training blocks; ask for at most as many folds as blocks")
    workers = min(options.workers or default_workers(), folds + 1)
    jobs = []
    for fold in (*range(folds), None):
        own = copy.deepcopy(cfg)
        OmegaConf.set_struct(own, False)
        own.path.eps, own.sweep, own.tracking, own.run.refit = (
            settings.path.eps,
            None,
            {"kind": "none", "uri": None},
            None,
        )
        if settings.compute.kind == "threads" and settings.compute.workers is None:
            own.compute.workers = max(1, default_workers() // workers)
        if fold is not None:
            own.dataset.validation = {"folds": folds, "fold": fold}
        name = WHOLE if fold is None else f"fold {fold} of {folds}"
        config = resolved(own)
        of_run = read(own, experiment=settings.experiment)
        jobs.append(Planned(name, name, "", settings.seed, config, of_run, source, settings.experiment))
    return jobs, workers


def choose_lambda(
    jobs: Sequence[Planned], folder: Location, stop: Stop, report: Callable[[int, int, str], None], refits: bool
) -> dict[str, object]:
    """Choose lambda on the finished runs; writes cross_validation.json, .csv and a figure into `folder`.

    `refits`: whether it is then solved on all training blocks, which leaves refit/ and model/ there.

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
    if not refits:
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
