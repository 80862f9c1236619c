"""The commands that run a sweep: an experiment's variants, the folds of a cross-validation, a Hydra multirun.

Each finds out which runs its sweep has, and makes the features if it takes them; `run.carry_out` does the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from omegaconf import DictConfig

from gapwise.pipeline.compute.ready import check_packages
from gapwise.pipeline.config.run_options import ConfigError, default_workers
from gapwise.pipeline.config.settings import Settings, explain, read
from gapwise.pipeline.errors import refuse_setup
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.run import experiment_name, given_words
from gapwise.pipeline.sweep.folds import checked, plan_folds
from gapwise.pipeline.sweep.plan import EXPORT, Asked, Planned, SweepOptions, plan, plan_multirun, sweep_options
from gapwise.pipeline.sweep.run import Sweep, carry_out, exit_code, interrupted
from gapwise.pipeline.sweep.shared_features import count_blocks, make_shared


def sweep(cfg: DictConfig) -> int:
    """Run the sweep that `cfg` describes; returns the exit code: 0, 1 if any run failed, 2 for a bad configuration."""
    with Stop(ends_process=True) as stop:
        try:
            whole = described(cfg, experiment_name() or "sweep", given_words(), stop)
        except (ValueError, OSError) as error:
            return refuse_setup(error)
        except (Interrupted, KeyboardInterrupt):
            return interrupted(stop)
        return carry_out(whole, stop)


def described(cfg: DictConfig, experiment: str, given: list[str], stop: Stop) -> Sweep:
    """The sweep that `cfg` describes, composed from the overrides `given`.

    Raises
    ------
    ValueError or OSError
        If the configuration is wrong or data cannot be read.
    Interrupted
        If a stop was requested.
    """
    options = sweep_options(cfg)
    base = read(cfg, experiment=experiment, overrides=given)
    check_packages(base.tracking)
    if base.run.export is not None:
        raise ConfigError(EXPORT)
    jobs = _planned(options, base, experiment, given, stop)
    workers, formats = options.workers or default_workers(), tuple(base.figures.formats)
    return Sweep(experiment, jobs, workers, base.tracking, options.figure, formats=formats)


def _planned(options: SweepOptions, base: Settings, experiment: str, given: list[str], stop: Stop) -> list[Planned]:
    """The runs of all data sets. One that is not installed is left out, and said so."""
    jobs, missing = list[Planned](), []
    if not options.datasets:
        source = _source(base)
        return plan(options, given, compose_words, count_blocks(base, source, stop), source, experiment)
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
            blocks = count_blocks(settings, source, stop)
        except (ValueError, OSError) as error:
            if name in options.only:
                raise
            missing.append(f"{name}: {explain(error)}")
            continue
        jobs += plan(options, words, compose_words, blocks, source, experiment, name)
    for line in missing:
        print(f"sweep: left out {line}", file=sys.stderr, flush=True)
    if not jobs:
        raise ConfigError("sweep.datasets: none of them can be read; give dataset.root or set GAPWISE_DATA")
    return jobs


def multirun(asked: Sequence[Asked]) -> int:
    """Run the jobs of a Hydra multirun; returns the exit code: 0, 1 if any failed, 2 if any was refused."""
    with Stop(ends_process=True) as stop:
        jobs, workers, tracking = plan_multirun(asked, _source)
        try:
            if any(job.settings is not None for job in jobs):
                check_packages(tracking)
        except ConfigError as error:
            return refuse_setup(error)
        for job in jobs:
            if job.error:
                print(f"error: {job.name}: {job.error}", file=sys.stderr)
        experiments = {job.experiment for job in jobs}
        whole = Sweep(experiments.pop() if len(experiments) == 1 else None, jobs, workers, tracking)
        if all(job.settings is None for job in jobs):
            return exit_code(whole.rows)
        return carry_out(whole, stop)


def cross_validation(cfg: DictConfig) -> int:
    """Run the folds that `cfg` asks for (`sweep.cv`); returns the exit code: 0, 1 if any run failed, 2 if `cfg` is bad."""
    with Stop(ends_process=True) as stop:
        try:
            settings = checked(cfg, experiment_name(), given_words())
            check_packages(settings.tracking)
            source = _source(settings)
            make_shared(settings, source, stop)
            jobs, workers = plan_folds(cfg, settings, source, count_blocks(settings, source, stop))
        except (ValueError, OSError) as error:
            return refuse_setup(error)
        except (Interrupted, KeyboardInterrupt):
            return interrupted(stop)
        name = f"{settings.experiment or settings.data_name}-cv"
        refits = settings.asks_for_refit
        return carry_out(Sweep(name, jobs, workers, settings.tracking, folds=True, refits=refits), stop)


def _source(settings: Settings) -> Mapping[str, object]:
    from gapwise.pipeline.data import source_of

    return source_of(settings)


def compose_words(overrides: list[str]) -> DictConfig:
    """The configuration of these overrides, within a command of Hydra's."""
    from hydra import compose

    from gapwise.pipeline.config.read_once import read_once

    read_once()
    return compose("config", overrides)
