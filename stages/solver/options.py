"""Named choices of the solver and of the path, as a user writes them; checked here, turned into flags in `loop`.

Every choice is independent of the others: "BCPFW + gap sampling + cache" is a YAML preset, not a class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "CONVERGED"
    PASS_LIMIT = "PASS_LIMIT"
    ORACLE_LIMIT = "ORACLE_LIMIT"
    TIME_LIMIT = "TIME_LIMIT"
    INTERRUPTED = "INTERRUPTED"


SAMPLERS = ("uniform", "permutation", "gap", "max_gap")
STEPS = ("fw", "pairwise", "away", "best")
CACHES = ("none", "gap")
AVERAGES = ("none", "weighted")
SCHEDULES = ("steps", "accelerated", "multiplane_half")
PATHS = ("regpath", "heuristic", "grid", "single")
RULES = ("one_sided", "two_sided", "paper")
WARM_STARTS = ("none", "keep_primal", "keep_dual")


def _check(name: str, value: Any, ok: bool, expected: str) -> None:
    if not ok:
        raise ValueError(f"{name}: expected {expected}, got {value!r}")


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    _check(name, value, value in choices, "one of " + ", ".join(choices))


@dataclass
class CacheOptions:
    """Oracle caching (O16 3.3): a cached labelling is taken when it improves by max(F g_i, (nu / n) g)."""

    kind: str = "none"
    F: float = 0.25
    nu: float = 0.01
    capacity: int = 50
    """Labellings kept per block; those with alpha > 0 are never evicted."""

    def check(self) -> None:
        _one_of("solver.cache.kind", self.kind, CACHES)
        _check("solver.cache.F", self.F, self.F >= 0, "a number >= 0")
        _check("solver.cache.nu", self.nu, self.nu >= 0, "a number >= 0")
        _check("solver.cache.capacity", self.capacity, self.capacity >= 1, "an integer >= 1")


@dataclass
class AccelerationOptions:
    """The proximal-point wrapper over cached passes (DESIGN 2.8)."""

    c: float = 0.036
    """kappa = c sqrt(lambda Lambda), Lambda the data's own scale; see `accelerated.kappa_of`."""
    rounds: int = 2
    """Moves a visit: between the block's own atoms after the first."""
    cached_passes: int = 2
    """Cached passes between two recentrings."""
    inner_target: float = 0.55
    """The inner loop ends when its gap is below this share of the exact pass's; a lower one where kappa is large."""
    skip_share: float = 0.07
    """A block whose gap is below this share of the mean one sits out three visits."""
    unused_passes: int = 15
    """Labellings without weight not chosen for this many exact passes are dropped."""

    def check(self) -> None:
        for name in ("c", "rounds", "cached_passes", "inner_target", "unused_passes"):
            _check(f"solver.acceleration.{name}", getattr(self, name), getattr(self, name) > 0, "a number > 0")
        _check("solver.acceleration.skip_share", self.skip_share, self.skip_share >= 0, "a number >= 0")


@dataclass
class SolverOptions:
    """One member of the block-coordinate Frank-Wolfe family, and when it stops."""

    name: str = "bcpfw_gap_cache"
    """Name of the preset, for run directories and tables."""
    schedule: str = "steps"
    """`steps`: one block after another as the sampler says, exact passes in between. `accelerated` and
    `multiplane_half`: exact passes alternate with passes over the cache alone, with and without momentum."""
    acceleration: AccelerationOptions = field(default_factory=AccelerationOptions)
    sampler: str = "gap"
    degree: float = 1.0
    """Gap sampling draws block i with probability proportional to g_i ** degree; greedy is `max_gap`."""
    step: str = "pairwise"
    cache: CacheOptions = field(default_factory=CacheOptions)
    refresh_every: int = 10
    """Effective passes between exact gap passes; 0: only to confirm convergence."""
    batch_size: int = 1
    """Blocks drawn at a time, whose oracles are called at the same w, side by side (`minibatch`)."""
    batch_step: bool = False
    """One batch Frank-Wolfe step over all blocks after each exact gap pass."""
    averaging: str = "none"
    rebase_steps: int = 0
    """Steps between rebase points (DESIGN 3.2); 0: ten per block."""
    max_passes: float = math.inf
    """Effective passes (oracle calls of steps and of gap passes / n) per value of lambda."""
    max_oracle_calls: float = math.inf
    """Per value of lambda."""
    max_seconds: float = math.inf
    """Seconds of solving of the whole stage, over all attempts."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        _one_of("solver.sampler", self.sampler, SAMPLERS)
        _one_of("solver.step", self.step, STEPS)
        _one_of("solver.averaging", self.averaging, AVERAGES)
        self.cache.check()
        self.acceleration.check()
        _one_of("solver.schedule", self.schedule, SCHEDULES)
        _check("solver.batch_size", self.batch_size, self.batch_size >= 1, "an integer >= 1")
        if self.schedule != "steps":
            _check("solver.batch_size", self.batch_size, self.batch_size == 1, f"1, for schedule={self.schedule}")
            _check("solver.cache.kind", self.cache.kind, self.cache.kind == "gap", f"gap, for schedule={self.schedule}")
            _check("solver.averaging", self.averaging, self.averaging == "none", f"none, for schedule={self.schedule}")
        if self.batch_step:
            _check("solver.averaging", self.averaging, self.averaging == "none", "none, for batch_step=true")
        _check("solver.degree", self.degree, self.degree > 0, "a number > 0")
        _check("solver.refresh_every", self.refresh_every, self.refresh_every >= 0, "an integer >= 0")
        _check("solver.rebase_steps", self.rebase_steps, self.rebase_steps >= 0, "an integer >= 0")
        for name in ("max_passes", "max_oracle_calls", "max_seconds"):
            _check(f"solver.{name}", getattr(self, name), getattr(self, name) > 0, "a number > 0 (or .inf)")


@dataclass
class PathOptions:
    """Which values of lambda are solved, and to which tolerance."""

    kind: str = "regpath"
    rule: str = "one_sided"
    eps: float = 0.1
    kappa: float = 0.0
    """A breakpoint is solved to kappa eps. 0: the rule's own, 0.7 for `two_sided`, 0.9 for the others."""
    lambda_min: float = 0.0
    """The path may stop here although it is not at its end; the certificate then holds from here up. At 0 a path over
    data that are not separable ends at 1e-12 of its top."""
    lambdas: list[float] = field(default_factory=list)
    """Of a grid, in the order they are solved."""
    lam: float = 0.01
    """`path.lambda`, of a single solve."""
    tolerance: float = 0.1
    """Duality gap at which a grid point or a single solve is done."""
    relative: bool = False
    """`tolerance` is on gap / dual instead; on a two-sided path `eps` is on gap / primal."""
    warm_start: str = "keep_dual"
    max_breakpoints: int = 100_000

    def __post_init__(self) -> None:
        if self.kappa == 0.0:
            self.kappa = 0.7 if self.rule == "two_sided" else 0.9

    def check(self) -> None:
        """Raises ValueError naming the key."""
        _one_of("path.kind", self.kind, PATHS)
        _one_of("path.rule", self.rule, RULES)
        _one_of("path.warm_start", self.warm_start, WARM_STARTS)
        two_sided = self.is_path and self.rule == "two_sided"
        _check(
            "path.rule", self.rule, not two_sided or self.kind == "regpath", "one_sided or paper for a heuristic path"
        )
        _check(
            "path.relative", self.relative, not self.relative or two_sided or not self.is_path, "path.rule=two_sided"
        )
        _check("path.eps", self.eps, 0 < self.eps < math.inf, "a number > 0")
        _check("path.kappa", self.kappa, 0 < self.kappa < 1, "a number in (0, 1); 0 for the rule's own")
        _check("path.lambda_min", self.lambda_min, self.lambda_min >= 0, "a number >= 0")
        _check("path.lambda", self.lam, 0 < self.lam < math.inf, "a number > 0")
        decreasing = all(a >= b for a, b in zip(self.lambdas, self.lambdas[1:], strict=False))
        if self.kind == "grid" and self.warm_start == "keep_primal":
            _check("path.lambdas", self.lambdas, decreasing, "decreasing values, for warm_start=keep_primal")
        _check("path.tolerance", self.tolerance, self.tolerance > 0, "a number > 0")
        _check("path.max_breakpoints", self.max_breakpoints, self.max_breakpoints >= 1, "an integer >= 1")
        if self.kind == "grid":
            ok = len(self.lambdas) > 0 and all(0 < value < math.inf for value in self.lambdas)
            _check("path.lambdas", self.lambdas, ok, "a list of numbers > 0")

    @property
    def is_path(self) -> bool:
        """Whether breakpoints are found by a rule, and not given."""
        return self.kind in ("regpath", "heuristic")
