"""What a sweep is made of: variants × lambdas × seeds, each an ordinary run's configuration.

A variant is a name and the overrides that make it, as a command line would give them: `bcfw: [solver=bcfw]`. They come
after the user's own, so that `solver.degree=2` on the command line holds for every variant that does not set it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline.config import ConfigError, Settings, read, typed

FIGURES = ("methods", "staleness", "regimes", "work")


@dataclass
class SweepOptions:
    """The group `sweep` of an experiment."""

    figure: str = "methods"
    """What the runs are shown as, see `stages.comparison`."""
    variants: dict[str, list[str]] = field(default_factory=dict)
    """Name to overrides."""
    only: list[str] = field(default_factory=list)
    """The variants that are wanted now; none named: all."""
    lambdas: list[Any] = field(default_factory=list)
    """Values of `path.lambda`; `1/n` stands for one over the number of training blocks. Empty: as configured."""
    seeds: list[int] = field(default_factory=lambda: [0])
    passes: float | None = None
    """`solver.max_passes` of the variants without a cache; null: as configured."""
    cached_passes: float | None = None
    """The same of those with one: in a pass they make many more steps, and spend more seconds."""
    rebase_passes: float | None = None
    """`solver.rebase_steps` as a multiple of n: how fine snapshots can be. null: as configured."""
    workers: int | None = None
    """Processes; null: as many as there are cores."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        if self.figure not in FIGURES:
            raise ValueError(f"sweep.figure: expected one of {', '.join(FIGURES)}, got {self.figure!r}")
        if not self.variants:
            raise ValueError("sweep.variants: expected at least one, as in {bcfw: [solver=bcfw]}")
        unknown = [name for name in self.only if name not in self.variants]
        if unknown:
            raise ValueError(f"sweep.only: no variant {unknown[0]!r}; there are: {', '.join(self.variants)}")
        for value in self.lambdas:
            if value != "1/n" and not (isinstance(value, int | float) and 0 < value < math.inf):
                raise ValueError(f"sweep.lambdas: expected numbers > 0 or 1/n, got {value!r}")
        if not self.seeds or min(self.seeds) < 0:
            raise ValueError(f"sweep.seeds: expected integers >= 0, got {self.seeds!r}")
        for name in ("passes", "cached_passes", "rebase_passes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"sweep.{name}: expected a number > 0, or null, got {value!r}")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"sweep.workers: expected an integer >= 1, or null, got {self.workers!r}")


@dataclass(frozen=True)
class Planned:
    """One run of a sweep."""

    variant: str
    lam: str
    """As the sweep names it: a number, 1/n, or empty."""
    seed: int
    config: dict[str, Any]
    settings: Settings

    @property
    def name(self) -> str:
        return " ".join(
            word for word in (self.variant, f"λ={self.lam}" if self.lam else "", f"seed={self.seed}") if word
        )


def sweep_options(cfg: DictConfig) -> SweepOptions:
    """The group `sweep` of `cfg`, checked; ConfigError names the key."""
    options: SweepOptions = typed("sweep", cfg.sweep, SweepOptions())
    return options


def composed(variant: list[str], given: list[str], compose: Callable[[list[str]], DictConfig]) -> DictConfig:
    """One variant's configuration: the command line's overrides, then its own; jobs are not tracked singly."""
    own = [word for word in given if not word.split("=", 1)[0].lstrip("+~").startswith("sweep")]
    cfg = compose([*own, *variant, "tracking=none", "compute=serial"])
    OmegaConf.set_struct(cfg, False)
    cfg.sweep = None
    return cfg


def plan(
    options: SweepOptions, given: list[str], compose: Callable[[list[str]], DictConfig], blocks: int, experiment: str
) -> list[Planned]:
    """Every run of the sweep, variants within seeds within lambdas: the first results compare all variants.

    Parameters
    ----------
    given : list of str
        The command line's overrides.
    compose : callable
        Overrides to configuration.
    blocks : int
        Training blocks n, for `1/n`.
    """
    names = options.only or list(options.variants)
    configs = {name: composed(options.variants[name], given, compose) for name in names}
    jobs = []
    for lam in options.lambdas or [""]:
        for seed in options.seeds:
            for name, base in configs.items():
                cfg = copy.deepcopy(base)
                cfg.seed = seed
                if lam != "":
                    cfg.path["lambda"] = 1.0 / blocks if lam == "1/n" else float(lam)
                passes = options.passes if cfg.solver.cache.kind == "none" else options.cached_passes
                if passes is not None:
                    cfg.solver.max_passes = passes
                if options.rebase_passes is not None:
                    cfg.solver.rebase_steps = max(1, round(options.rebase_passes * blocks))
                settings = read(cfg, experiment=experiment)
                label = lam if isinstance(lam, str) else f"{lam:g}"
                config: Any = OmegaConf.to_container(cfg, resolve=True)
                jobs.append(Planned(name, label, seed, config, settings))
    if len({(job.variant, job.lam, job.seed) for job in jobs}) < len(jobs):
        raise ConfigError("sweep: the same variant, lambda and seed are asked for twice")
    return jobs
