"""The composed jobs of a sweep as runs: named by what tells them apart, with their data, or with why they cannot be run."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from omegaconf import DictConfig

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.run_options import ConfigError, SweepOptions, default_workers
from gapwise.pipeline.config.settings import Settings, fingerprint, read, resolved, sweep_options
from gapwise.pipeline.errors import one_line
from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.run import locations
from gapwise.pipeline.stage_graph.featurize import make_features
from gapwise.storage.backend import Location
from gapwise.storage.files import read_json
from gapwise.storage.results import read_path

EXPORT = "run.export: exports one run, and this is a sweep of many (DVC: dvc exp run --queue -S 'seed=1,2')"
PER_BLOCK = "1/n"
"""A value of `path.lambda` in sweeps: one over the number of training blocks."""


@dataclass(frozen=True)
class Asked:
    """A composed job: its configuration, experiment and overrides."""

    cfg: DictConfig
    experiment: str | None
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class Planned:
    """One run of a sweep. Without settings it cannot be run, and `status` and `error` say why."""

    name: str
    variant: str
    dataset: str
    """Names in the experiment; empty where it has none."""
    experiment: str | None
    overrides: tuple[str, ...] = ()
    lam: str = ""
    """As the command has it: a number or `1/n`; empty for a path."""
    config: Mapping[str, object] = dataclasses.field(default_factory=dict)
    settings: Settings | None = None
    source: Mapping[str, object] = dataclasses.field(default_factory=dict)
    status: str = "waiting"
    error: str = ""


def plan(asked: Sequence[Asked], stop: Stop) -> list[Planned]:
    """The runs, in order. They share the cores: `compute=threads` without a number of workers gets an equal share.

    A data set of `sweep.datasets` whose files are not there is left out, unless `sweep.only` names it.

    Raises
    ------
    ConfigError
        If that leaves nothing.
    Interrupted
        If a stop was requested.
    """
    jobs, missing = list[Planned](), dict[str, str]()
    sources: dict[str, Mapping[str, object]] = {}
    for job, name in zip(asked, names(asked), strict=True):
        try:
            jobs.append(_planned(job, name, len(asked), sources, stop))
        except (ValueError, OSError) as error:
            from gapwise.stages.datasets import DataError

            options, absent = job.cfg.sweep, isinstance(error, DataError | OSError)
            if absent and options.dataset and options.dataset not in options.only:
                missing[options.dataset] = one_line(error)
                continue
            status = "failed" if absent else "refused"
            refused = Planned(name, str(options.get("variant", "")), str(options.get("dataset", "")), job.experiment)
            jobs.append(dataclasses.replace(refused, status=status, error=one_line(error)))
    for dataset, why in missing.items():
        print(f"sweep: left out {dataset}: {why}", file=sys.stderr, flush=True)
    if not jobs:
        raise ConfigError("sweep.datasets: none of them can be read; give dataset.root or set GAPWISE_DATA")
    return jobs


def names(asked: Sequence[Asked]) -> Iterator[str]:
    """What tells each job apart: its data set, its variant, and the overrides in which it differs from others of these."""
    alike: dict[tuple[str, str], set[str]] = {}
    groups = [(str(job.cfg.sweep.dataset), str(job.cfg.sweep.variant)) for job in asked]
    for job, group in zip(asked, groups, strict=True):
        alike[group] = alike.get(group, {*job.overrides}) & {*job.overrides}
    for job, group in zip(asked, groups, strict=True):
        own = (word for word in job.overrides if word not in alike[group])
        yield " ".join(filter(None, (*group, *own))) or job.experiment or "run"


def _planned(job: Asked, name: str, number: int, sources: dict[str, Mapping[str, object]], stop: Stop) -> Planned:
    """One run; ValueError or OSError says why it cannot be run."""
    from gapwise.pipeline.data import source_of

    options, cfg = sweep_options(job.cfg), copy.deepcopy(job.cfg)
    per_block = cfg.path.get("lambda") == PER_BLOCK
    if per_block:
        cfg.path["lambda"] = 1.0  # until the blocks are counted
    settings = read(cfg, job.experiment, job.overrides)
    if settings.run.export is not None and number > 1:
        raise ConfigError(EXPORT)
    if options.cv is not None:
        _check_folds(settings, options)
    data = fingerprint(settings.dataset)
    if data not in sources:
        sources[data] = source_of(settings)
    if per_block:
        cfg.path["lambda"] = 1.0 / count_blocks(settings, sources[data], stop)
    cfg.sweep, cfg.tracking = None, {"kind": "none", "uri": None}  # the sweep itself is tracked
    if options.cv is not None:
        cfg.path.eps = settings.path.eps  # that of choosing
        cfg.run.refit = None  # once the folds have chosen lambda
    if settings.compute.kind == "threads" and settings.compute.workers is None:
        cfg.compute.workers = max(1, default_workers() // min(options.workers or default_workers(), number))
    settings = dataclasses.replace(read(cfg, job.experiment), tracking=settings.tracking, run=settings.run)
    lam = "" if "lambda" in settings.path.can.unread else PER_BLOCK if per_block else f"{settings.path.lam:g}"
    return Planned(
        name,
        options.variant,
        options.dataset,
        job.experiment,
        job.overrides,
        lam,
        resolved(cfg),
        settings,
        sources[data],
    )


def _check_folds(settings: Settings, options: SweepOptions) -> None:
    """ConfigError if these settings cannot be cross-validated."""
    validation = settings.dataset.get("validation")
    if settings.run.until is not None:
        raise ConfigError(f"run.until: sweep.cv={options.cv} needs the losses of whole runs; leave it out")
    if validation is not None and not (isinstance(validation, Mapping) and "fold" in validation):
        raise ConfigError(
            f"dataset.validation: sweep.cv={options.cv} makes splits of its own; add dataset.validation=null"
        )


def make_shared(settings: Settings, source: Mapping[str, object], stop: Stop) -> None:
    """Make the features of these settings on all cores, unless they are there."""
    _, path, key = locations(settings, source)
    with Compute(settings.compute, stop) as compute, stop.at_once():
        make_features(settings, source, path, key, compute, lambda done, total, activity: stop.check())


def count_blocks(settings: Settings, source: Mapping[str, object], stop: Stop) -> int:
    """Number of training blocks: what a finished run recorded where the features are gone, else of the features.

    So a sweep whose runs are all there is shown without them. Features that are there, or that no run has used, are checked
    or made.
    """
    from gapwise.stages.featurize import open_problem
    from gapwise.storage.features import is_complete

    _, path, key = locations(settings, source)
    known = None if is_complete(path) else _recorded(path.parent.parent, key)
    if known is not None:
        return known
    make_shared(settings, source, stop)
    return int(open_problem(path, "train").n)


def _recorded(root: Location, key: str) -> int | None:
    """Number of training blocks of the features with this key, from any run below `root` that solved something on them."""
    for manifest in root.glob("*/manifest.json"):
        with contextlib.suppress(ValueError, OSError, KeyError):
            if (read_json(manifest) or {})["stages"]["featurize"]["key"] == key:
                return int(read_path(manifest.parent / "path.zarr", ())[1]["n"])
    return None
