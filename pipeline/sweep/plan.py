"""Which runs a sweep consists of: the jobs of a Hydra multirun, or data sets × variants × lambdas × tolerances × seeds.

A variant is a name and its overrides, as on a command line: `bcfw: [solver=bcfw]`. They come after the user's own, so
that `solver.degree=2` on the command line holds for every variant that does not set it. Paths are defined the same way,
one run each, and data sets, whose overrides come between the user's and the variant's.

Hydra's own sweeper cannot form this product: it crosses single overrides, while a variant is several at once; it knows
neither `1/n` before the data are read nor the passes before a variant is composed; and it composes every run (90 ms),
while here one composition per variant and copies of it (2 ms) are enough.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from gapwise.pipeline.config import groups
from gapwise.pipeline.config.run_options import MAX_SEED, ConfigError, TrackingOptions, default_workers
from gapwise.pipeline.config.settings import Settings, fingerprint, read, resolved, typed
from gapwise.stages.reports.sweep_figures import FIGURES
from gapwise.stages.solver.methods import methods, options_type

EXPORT = "run.export: exports one run, and this is a sweep of many (DVC: dvc exp run --queue -S 'seed=1,2')"


@dataclass
class SweepOptions:
    """The group `sweep` of an experiment."""

    figure: str = "methods"
    """The figure over all runs: a file of `gapwise.stages.reports.sweep_figures`."""
    variants: dict[str, list[str]] = field(default_factory=dict)
    """Name to overrides."""
    paths: dict[str, list[str]] = field(default_factory=dict)
    """The same for whole paths: each runs once, as configured, with the first seed and up to `verify`."""
    datasets: dict[str, list[str]] = field(default_factory=dict)
    """The same for data sets; none: the configured one. What is not installed is left out, unless `only` names it."""
    only: list[str] = field(default_factory=list)
    """The variants, paths and data sets to run; all data sets if it names none, all variants and paths if it names none."""
    lambdas: list[Any] = field(default_factory=list)
    """Values of `path.lambda`; `1/n` is one over the number of training blocks. Empty: as configured."""
    tolerances: list[float] = field(default_factory=list)
    """Values of `path.tolerance`, one run each. Empty: as configured."""
    seeds: list[int] = field(default_factory=lambda: [0])
    passes: float | None = None
    """`solver.max_passes` of variants without a cache; null: as configured."""
    cached_passes: float | None = None
    """The same for variants with a cache, whose passes take many more steps and more seconds."""
    seconds: float | None = None
    """`solver.max_seconds` of every run; null: as configured. More seconds continue the same runs."""
    rebase_passes: float | None = None
    """`solver.rebase_steps` as a multiple of n, the finest spacing of snapshots, for methods that have this key; null: as
    configured."""
    workers: int | None = None
    """Number of processes; null: one per core."""
    cv: int | None = None
    """Number of folds, of a cross-validation (`gapwise.pipeline.sweep.folds`), which has no variants."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"sweep.workers: expected an integer >= 1, or null, got {self.workers!r}")
        if self.cv is not None:
            if self.cv < 2:
                raise ValueError(f"sweep.cv: expected a number of folds >= 2, or null, got {self.cv!r}")
            if self.variants:
                raise ValueError(
                    "sweep.cv: validates one configuration, and this experiment has variants; leave out one"
                )
            return
        if self.figure not in FIGURES:
            raise ValueError(f"sweep.figure: expected one of {', '.join(FIGURES)}, got {self.figure!r}")
        if not self.variants:
            raise ValueError("sweep.variants: expected at least one, as in {bcfw: [solver=bcfw]}")
        both = [name for name in self.paths if name in self.variants]
        if both:
            raise ValueError(f"sweep.paths: there is a variant named {both[0]!r} too; give it another name")
        known = [*self.variants, *self.paths]
        both = [name for name in self.datasets if name in known]
        if both:
            raise ValueError(f"sweep.datasets: there is a variant or path named {both[0]!r} too; give it another name")
        known += self.datasets
        unknown = [name for name in self.only if name not in known]
        if unknown:
            raise ValueError(f"sweep.only: no variant {unknown[0]!r}; there are: {', '.join(known)}")
        for value in self.lambdas:
            if value != "1/n" and not (isinstance(value, int | float) and 0 < value < math.inf):
                raise ValueError(f"sweep.lambdas: expected numbers > 0 or 1/n, got {value!r}")
        for value in self.tolerances:
            if not 0 < value < math.inf:
                raise ValueError(f"sweep.tolerances: expected numbers > 0, got {value!r}")
        if not self.seeds or min(self.seeds) < 0 or max(self.seeds) > MAX_SEED:
            raise ValueError(f"sweep.seeds: expected integers from 0 to {MAX_SEED}, got {self.seeds!r}")
        for name in ("passes", "cached_passes", "seconds", "rebase_passes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"sweep.{name}: expected a number > 0, or null, got {value!r}")

    @property
    def wanted(self) -> list[str]:
        """The variants and paths to run."""
        return [name for name in self.only if name not in self.datasets] or [*self.variants, *self.paths]

    @property
    def wanted_datasets(self) -> list[str]:
        """The data sets to run on; empty: the configured one."""
        return [name for name in self.datasets if name in self.only] or [*self.datasets]


@dataclass(frozen=True)
class Planned:
    """One run of a sweep. Without settings it cannot be run, and `status` and `error` say why."""

    name: str
    variant: str
    lam: str
    """As the sweep names it: a number, `1/n`, or empty."""
    seed: int | None
    config: dict[str, object]
    settings: Settings | None
    source: Mapping[str, object]
    experiment: str | None
    overrides: tuple[str, ...] = ()
    tolerance: float | None = None
    """None unless the sweep sets one."""
    dataset: str = ""
    """As the sweep names it; empty where it has one data set."""
    status: str = "waiting"
    error: str = ""


@dataclass(frozen=True)
class Asked:
    """One composed job of a Hydra multirun."""

    cfg: DictConfig
    experiment: str | None
    overrides: tuple[str, ...]


def sweep_options(cfg: DictConfig) -> SweepOptions:
    """The group `sweep` of `cfg`, checked; ConfigError names the key."""
    options: SweepOptions = typed("sweep", cfg.sweep, SweepOptions())
    return options


def job_of_multirun(cfg: DictConfig) -> Asked | None:
    """`cfg` as a job of a multirun that Hydra's basic launcher runs; None for a single run or another launcher's job."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    hydra = HydraConfig.get()
    if hydra.mode != RunMode.MULTIRUN or not hydra.launcher._target_.endswith(".BasicLauncher"):
        return None
    return Asked(cfg, hydra.runtime.choices.get("experiment"), tuple(hydra.overrides.task))


def has_variants(cfg: DictConfig) -> bool:
    """Whether `cfg` describes a sweep over variants rather than one run."""
    return bool((cfg.get("sweep") or {}).get("variants"))


class Variants:
    """Configurations of a sweep's variants. Variants that choose the same presets share one composition of Hydra.

    `given` and `compose` are those of `plan`.
    """

    def __init__(self, given: Sequence[str], compose: Callable[[list[str]], DictConfig]):
        self.own = [word for word in given if not word.split("=", 1)[0].lstrip("+~").startswith("sweep")]
        self.compose = compose
        self.groups = groups()
        self.known: dict[tuple[str, ...], DictConfig] = {}

    def composed(self, variant: Sequence[str]) -> DictConfig:
        """The command line's overrides, then the variant's; the sweep does the tracking, not the run."""
        parsed = OverridesParser.create().parse_overrides([*variant])
        values = [word for word in parsed if word.key_or_group not in self.groups]
        if not all(map(_sets_value, values)):
            values = []
        words = tuple(str(word.input_line) for word in parsed if word not in values)
        if words not in self.known:
            self.known[words] = self.compose([*self.own, *words, "tracking=none", "compute=serial"])
        cfg = copy.deepcopy(self.known[words])
        for word in values:
            OmegaConf.update(cfg, word.key_or_group, word.value(), merge=True)
        OmegaConf.set_struct(cfg, False)
        cfg.sweep = None
        return cfg


def _sets_value(word: Override) -> bool:
    """Whether an override that chooses no preset is `key=value`: it adds nothing, deletes nothing, and is not for Hydra."""
    plain = word.type == OverrideType.CHANGE and word.package is None and not word.is_sweep_override()
    return plain and re.match(r"hydra[./]", word.key_or_group) is None


def plan(
    options: SweepOptions,
    given: list[str],
    compose: Callable[[list[str]], DictConfig],
    blocks: int,
    source: Mapping[str, object],
    experiment: str,
    dataset: str = "",
) -> list[Planned]:
    """All runs of the sweep, variants within tolerances within lambdas within seeds, so that the first results compare
    all variants; then the paths.

    Parameters
    ----------
    given : list of str
        The command line's overrides.
    compose : callable
        Composes a configuration from overrides.
    blocks : int
        Training blocks n, for `1/n`.
    source : mapping
        The data set's description of its files.
    dataset : str
        Which of the sweep's data sets it is; `given` then ends with its overrides.
    """

    def planned(
        name: str, cfg: DictConfig, settings: Settings, seed: int, lam: object = "", tolerance: float | None = None
    ) -> Planned:
        cfg.seed = seed
        label = lam if isinstance(lam, str) else f"{lam:g}"
        within = "" if tolerance is None else f"tolerance={tolerance:g}"
        parts = (dataset, name, f"λ={label}" if label else "", within, f"seed={seed}")
        words = " ".join(word for word in parts if word)
        own = dataclasses.replace(settings, seed=seed)
        return Planned(
            words, name, label, seed, resolved(cfg), own, source, experiment, tolerance=tolerance, dataset=dataset
        )

    wanted = options.wanted
    variants = Variants(given, compose)
    configs = {name: variants.composed(options.variants[name]) for name in wanted if name in options.variants}
    jobs = []
    of_all_seeds: dict[tuple[str, object, float | None], tuple[DictConfig, Settings]] = {}
    tolerances: list[float | None] = [*options.tolerances] or [None]
    for seed, lam, tolerance in itertools.product(options.seeds, options.lambdas or [""], tolerances):
        for name, base in configs.items():
            if (name, lam, tolerance) in of_all_seeds:
                jobs.append(planned(name, *of_all_seeds[name, lam, tolerance], seed, lam, tolerance))
                continue
            cfg = copy.deepcopy(base)
            if options.seconds is not None:
                cfg.solver.max_seconds = options.seconds
            if lam != "":
                cfg.path["lambda"] = 1.0 / blocks if lam == "1/n" else float(lam)
            if tolerance is not None:
                cfg.path.tolerance = tolerance
            cached = (cfg.solver.get("cache") or {}).get("kind", "none") != "none"
            passes = options.cached_passes if cached else options.passes
            if passes is not None:
                cfg.solver.max_passes = passes
            if options.rebase_passes is not None and _understands(cfg.solver, "rebase_steps"):
                cfg.solver.rebase_steps = max(1, round(options.rebase_passes * blocks))
            settings = read(cfg, experiment=experiment)
            of_all_seeds[name, lam, tolerance] = cfg, settings
            jobs.append(planned(name, cfg, settings, seed, lam, tolerance))
    for name in wanted:
        if name in options.paths:
            cfg = variants.composed([*options.paths[name], "run.until=verify"])
            jobs.append(planned(name, cfg, read(cfg, experiment=experiment), options.seeds[0]))
    if len({(job.variant, job.lam, job.tolerance, job.seed) for job in jobs}) < len(jobs):
        raise ConfigError("sweep: the same variant, lambda, tolerance and seed are asked for twice; remove one of them")
    return jobs


def _understands(solver: DictConfig, key: str) -> bool:
    """Whether the method of a configuration has this key."""
    name = str(solver.get("method", "bcfw"))
    return name in methods() and key in {field.name for field in dataclasses.fields(options_type(name))}


def plan_multirun(
    asked: Sequence[Asked], source: Callable[[Settings], Mapping[str, object]]
) -> tuple[list[Planned], int, TrackingOptions]:
    """The runs of a multirun, in its order; how many run at a time; how they are tracked.

    Runs are named by the overrides in which they differ. They share the cores: `compute=threads` without a number of
    workers gets an equal share. A job that cannot be run is also in the list, as refused or failed.

    Parameters
    ----------
    source : callable
        Returns a data set's description of its files; raises ValueError or OSError.
    """
    from gapwise.stages.datasets import DataError

    alike = set.intersection(*(set(job.overrides) for job in asked))
    options = [job.cfg.get("sweep") or {} for job in asked]
    wanted = next((o["workers"] for o in options if o.get("workers") is not None), None)
    workers = wanted if isinstance(wanted, int) and wanted >= 1 else default_workers()
    share = max(1, default_workers() // min(workers, len(asked)))
    jobs, tracking, sources = [], None, {}
    for job in asked:
        words = " ".join(word for word in job.overrides if word not in alike) or job.experiment or "run"
        refused = Planned(words, words, "", None, {}, None, {}, job.experiment, job.overrides)
        try:
            if wanted is not None and (not isinstance(wanted, int) or wanted < 1):
                raise ConfigError(f"sweep.workers: expected an integer >= 1, or null, got {wanted!r}")
            cfg = copy.deepcopy(job.cfg)
            settings = read(cfg, experiment=job.experiment, overrides=job.overrides)
            if settings.run.export is not None and len(asked) > 1:
                raise ConfigError(EXPORT)
        except ValueError as error:
            jobs.append(dataclasses.replace(refused, status="refused", error=_line(error)))
            continue
        tracking = tracking or settings.tracking
        OmegaConf.set_struct(cfg, False)
        cfg.sweep, cfg.tracking = None, {"kind": "none", "uri": None}
        if settings.compute.kind == "threads" and settings.compute.workers is None:
            cfg.compute.workers = share
        data = fingerprint(settings.dataset)
        try:
            if data not in sources:
                sources[data] = source(settings)
        except (ValueError, OSError) as error:
            fault = "failed" if isinstance(error, DataError | OSError) else "refused"
            jobs.append(dataclasses.replace(refused, status=fault, error=_line(error)))
            continue
        config = resolved(cfg)
        jobs.append(
            dataclasses.replace(refused, seed=settings.seed, config=config, settings=settings, source=sources[data])
        )
    return jobs, workers, tracking or TrackingOptions("none")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
