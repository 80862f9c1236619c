"""Options as a user writes them, with their checks: of all methods, of block-coordinate methods, and of the path.

Every choice is independent of the others: "BCPFW + gap sampling + cache" is a YAML preset, not a class. Options of a single
method or path rule are declared in its own file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from gapwise.stages.solver.codes import SAMPLERS, STEP_RULES
from gapwise.stages.solver.path.rules import path_rule, rules

if TYPE_CHECKING:  # they import numba, or this file
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.path.rule import PathRule


class Status(StrEnum):
    """How a solve ended."""

    CONVERGED = "CONVERGED"
    PASS_LIMIT = "PASS_LIMIT"
    """`solver.max_passes` or `path.max_breakpoints` is reached."""
    ORACLE_LIMIT = "ORACLE_LIMIT"
    TIME_LIMIT = "TIME_LIMIT"
    INTERRUPTED = "INTERRUPTED"
    LAMBDA_NEGLIGIBLE = "LAMBDA_NEGLIGIBLE"
    """A path ended where (lambda / 2) ||w||^2 is below 1 % of eps and the hinge is above it."""
    ROUNDING_LIMIT = "ROUNDING_LIMIT"
    """A path ended where rounding could make up a visible share of eps; or, at a given lambda, the method has nothing left
    to gain but rounding."""
    BOUND_LIMIT = "BOUND_LIMIT"
    """The bounds of an approximate oracle are too loose for the tolerance; its own gap is far below."""
    STALLED = "STALLED"
    """No limit is reached, but a thousand exact passes have not lowered the gap; or no cell holds between two lambdas which
    are a millionth apart."""
    LOSS_RISES = "LOSS_RISES"
    """A path ended where the loss on held-out blocks had clearly risen (`stages.choice.rising_loss`)."""


ENDED = frozenset({Status.CONVERGED, Status.LAMBDA_NEGLIGIBLE, Status.ROUNDING_LIMIT, Status.LOSS_RISES})
"""How a path ends that no limit of passes, calls or time has cut off."""

STALLED, LEAST_FALL = 1000, 1e-6
"""A lambda is given up when this many certificates in a row have not lowered the least gap of as many before by this share:
a gap that falls like 1 / t still does so after a million passes."""

CACHES = ("none", "gap")
AVERAGED_BCFW = "averages of bcfw: solver=mpbcfw solver.multiplane.approximate_passes=0"
MOVING, AT_MEAN = EXACT_PASSES = ("moving", "at_mean")
WARM_STARTS = ("none", "keep_primal", "keep_dual")
WHOLE, LOSS_RISES = "whole", "loss_rises"
PATH_ENDS = (WHOLE, LOSS_RISES)


def check(name: str, value: object, ok: bool, expected: str) -> None:
    """Raise ValueError, naming the key, unless `ok`."""
    if not ok:
        raise ValueError(f"{name}: expected {expected}, got {value!r}")


def check_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError, naming the key and listing the choices, unless `value` is one of them."""
    check(name, value, value in choices, "one of " + ", ".join(choices))


@dataclass
class MethodOptions:
    """The options of every method: its name, and when it stops."""

    name: str = "bcpfw_gap_cache"
    """Name of the preset, for run directories and tables."""
    method: str = "bcfw"
    """The method: a file of `stages/solver/methods`."""
    max_passes: float = math.inf
    """Effective passes (oracle calls of steps and of gap passes / n) per value of lambda."""
    max_oracle_calls: float = math.inf
    """Per value of lambda."""
    max_seconds: float = math.inf
    """Seconds of solving in the whole stage, over all invocations."""
    averaging: str = "none"
    """The average of iterates that is certified, which is not w(alpha): one of `averages`."""

    averages: ClassVar[tuple[str, ...]] = ("none",)
    certifies: ClassVar[bool] = True
    """Whether the method holds a feasible dual point."""
    two_points: ClassVar[bool] = False
    """Whether it certifies a w that is not w(alpha), which only some rules of paths can take."""
    any_metric: ClassVar[bool] = False
    """Whether it takes norms and inner products of weights from `problems.moves` only, as kernels need."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        for name in ("max_passes", "max_oracle_calls", "max_seconds"):
            check(f"solver.{name}", getattr(self, name), getattr(self, name) > 0, "a number > 0 (or .inf)")
        expected = " or ".join(self.averages) + f" (method={self.method}; {AVERAGED_BCFW})"
        check("solver.averaging", self.averaging, self.averaging in self.averages, expected)

    def check_problem(self, problem: Problem) -> None:
        """Raises ValueError if the method cannot solve this problem."""


@dataclass
class CacheOptions:
    """Oracle caching (O16 3.3): a cached labelling is taken when it improves by max(F g_i, (nu / n) g)."""

    kind: str = "none"
    F: float = 0.25
    nu: float = 0.01
    capacity: int = 50
    """Labellings kept per block; those with alpha > 0 are never evicted."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        check_one_of("solver.cache.kind", self.kind, CACHES)
        check("solver.cache.F", self.F, self.F >= 0, "a number >= 0")
        check("solver.cache.nu", self.nu, self.nu >= 0, "a number >= 0")
        check("solver.cache.capacity", self.capacity, self.capacity >= 1, "an integer >= 1")


@dataclass
class BlockOptions(MethodOptions):
    """The options that block-coordinate methods share."""

    step: str = "pairwise"
    cache: CacheOptions = field(default_factory=CacheOptions)
    rebase_steps: int = 0
    """Steps between two points where the state can be committed; 0: ten per block."""

    any_metric: ClassVar[bool] = True

    def check(self) -> None:
        """Raises ValueError naming the key."""
        MethodOptions.check(self)
        check_one_of("solver.step", self.step, tuple(STEP_RULES))
        self.cache.check()
        check("solver.rebase_steps", self.rebase_steps, self.rebase_steps >= 0, "an integer >= 0")


@dataclass
class BcfwOptions(BlockOptions):
    """The choices in O16 and LJ13."""

    sampler: str = "gap"
    degree: float = 1.0
    """Gap sampling draws block i with probability proportional to g_i ** degree; `max_gap` is greedy."""
    refresh_every: int = 10
    """Effective passes between exact gap passes; 0: only to confirm convergence."""
    line_search: bool = True
    """Whether a move has the length that raises the dual most; if not, it is 2n / (k + 2n) at step k of a lambda (LJ13 Alg.
    4)."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        BlockOptions.check(self)
        check_one_of("solver.sampler", self.sampler, SAMPLERS)
        if not self.line_search:
            check("solver.step", self.step, self.step == "fw", "fw, for line_search=false")
            check("solver.cache.kind", self.cache.kind, self.cache.kind == "none", "none, for line_search=false")
        check("solver.degree", self.degree, self.degree > 0, "a number > 0")
        check("solver.refresh_every", self.refresh_every, self.refresh_every >= 0, "an integer >= 0")


@dataclass
class CachedPassOptions(BlockOptions):
    """The options of `accelerated`, which certifies a mean of its points."""

    two_points: ClassVar[bool] = True

    cache: CacheOptions = field(default_factory=lambda: CacheOptions(kind="gap"))
    exact_passes: str = MOVING
    """`moving`: BCFW passes, which move w while they call the oracle, until the mean seems good enough; `at_mean`: exact
    passes are made at the mean, which takes fewer calls and more cached passes."""
    n_best: int = 1
    """Labellings that an oracle call at the mean returns, all of which are cached; 0: as many as pay (`oracles.by_cost`)."""

    def check_problem(self, problem: Problem) -> None:
        """Raises ValueError if several labellings are asked for and the structure's oracle returns one."""
        from gapwise.stages.solver.oracles import check_listing

        check_listing(problem, self.n_best)

    def check(self) -> None:
        """Raises ValueError naming the key."""
        BlockOptions.check(self)
        check_one_of("solver.exact_passes", self.exact_passes, EXACT_PASSES)
        check("solver.n_best", self.n_best, self.n_best >= 0, "an integer >= 0")
        only = f"1, for exact_passes={MOVING}"
        check("solver.n_best", self.n_best, self.n_best == 1 or self.exact_passes == AT_MEAN, only)
        check("solver.cache.kind", self.cache.kind, self.cache.kind == "gap", f"gap, for method={self.method}")


@dataclass
class MultiplaneGroup:
    """The group `solver.multiplane`; the letters are S15's."""

    unused_iterations: int = 10
    """T: a labelling leaves its block's working set when no oracle has returned it for this many outer iterations."""
    approximate_passes: int = 1000
    """M: the most approximate passes of an outer iteration."""
    rounds: int = 1
    """Steps of a block each time an approximate pass visits it; S15 makes one."""

    def check(self) -> None:
        """Raises ValueError naming the key."""
        for name in ("unused_iterations", "rounds"):
            check(f"solver.multiplane.{name}", getattr(self, name), getattr(self, name) >= 1, "an integer >= 1")
        passes = self.approximate_passes
        check("solver.multiplane.approximate_passes", passes, passes >= 0, "an integer >= 0")


@dataclass
class MultiplaneOptions(BlockOptions):
    """The options of `mpbcfw`; `cache.capacity` is S15's N, the largest working set of a block."""

    step: str = "fw"
    sampler: str = "permutation"
    """Of exact passes; approximate passes visit every block once, in a new permutation."""
    cache: CacheOptions = field(default_factory=lambda: CacheOptions(kind="gap", capacity=1000))
    multiplane: MultiplaneGroup = field(default_factory=MultiplaneGroup)

    averages: ClassVar[tuple[str, ...]] = ("none", "weighted", "two_track")

    def check(self) -> None:
        """Raises ValueError naming the key."""
        BlockOptions.check(self)
        check_one_of("solver.sampler", self.sampler, SAMPLERS)
        check("solver.cache.kind", self.cache.kind, self.cache.kind == "gap", f"gap, for method={self.method}")
        self.multiplane.check()


OPTIONS: dict[str, type[MethodOptions]] = {
    "bcfw": BcfwOptions,
    "accelerated": CachedPassOptions,
    "mpbcfw": MultiplaneOptions,
}
"""Options by method, so that a configuration can be read without numba, which the methods' own files import. A method that
is not listed here declares its `Options` in its file."""


@dataclass
class PathOptions:
    """Which values of lambda are solved, and to which tolerance."""

    rule: str = "two_sided"
    """The file of `stages/solver/path/rules` that says which lambdas are solved."""
    eps: float = 0.1
    kappa: float = 0.0
    """A breakpoint is solved to kappa eps; 0: the rule's own share."""
    lambda_min: float = 0.0
    """The path may stop here before its end; the certificate then holds from here up. If 0, a path on data that are not
    separable ends once (lambda / 2) ||w||^2 is below 1 % of eps (`path.rule.negligible`)."""
    lambdas: list[float] = field(default_factory=list)
    """The lambdas of a grid, in the order they are solved."""
    lam: float = 0.01
    """`path.lambda`: the lambda of a single solve."""
    tolerance: float = 0.1
    """Duality gap to which a lambda of a grid or a single one is solved."""
    relative: bool = False
    """`tolerance` bounds gap / dual instead; on a path whose rule allows it, `eps` bounds gap / primal."""
    warm_start: str = "keep_dual"
    max_breakpoints: int = 100_000
    end: str = WHOLE
    """`loss_rises`: the path may end sooner, where the loss on held-out blocks has clearly risen."""

    def __post_init__(self) -> None:
        if self.kappa == 0.0 and self.rule in rules():
            self.kappa = self.can.kappa

    def for_method(self, options: MethodOptions) -> PathOptions:
        """The same with the share that the rule prefers for this method; only for a kappa that nobody gave."""
        apart = self.can.kappa_apart
        return replace(self, kappa=self.can.kappa if apart is None else apart) if options.two_points else self

    def check(self) -> None:
        """Raises ValueError naming the key."""
        check_one_of("path.rule", self.rule, rules())
        check_one_of("path.warm_start", self.warm_start, WARM_STARTS)
        check("path.eps", self.eps, 0 < self.eps < math.inf, "a number > 0")
        check(
            "path.kappa",
            self.kappa,
            0 < self.kappa <= 0.9999,
            "a number in (0, 1), at most 0.9999; 0 for the rule's own",
        )
        check("path.lambda_min", self.lambda_min, self.lambda_min >= 0, "a number >= 0")
        check("path.lambda", self.lam, 0 < self.lam < math.inf, "a number > 0")
        check("path.tolerance", self.tolerance, self.tolerance > 0, "a number > 0")
        check("path.max_breakpoints", self.max_breakpoints, self.max_breakpoints >= 1, "an integer >= 1")
        check_one_of("path.end", self.end, PATH_ENDS)
        if self.end == LOSS_RISES:
            by_rule = f"{WHOLE}, as path.rule={self.rule}"
            check("path.end", self.end, self.can.finds_lambdas, f"{by_rule} is given its lambdas")
            check("path.end", self.end, not self.can.open_ended, f"{by_rule} may be stopped anywhere")
        self.can.check(self)

    @property
    def can(self) -> type[PathRule]:
        """The rule, whose class says what it can do."""
        return path_rule(self.rule)

    @property
    def given(self) -> tuple[float, ...]:
        """The given lambdas, in the order they are solved; () where the rule finds them."""
        return self.can.lambdas(self)
