"""What a path rule is: where a path starts, which lambda comes next, what is certified between breakpoints.

The rules are in `rules/`. Each has a verifier of the same name in `stages/certify/`, separate code that checks its
certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, cast

import numpy as np

from gapwise.stages.problems.certainty import ESTIMATE, EXACT, certainty_of
from gapwise.stages.solver.options import WHOLE, PathOptions, Status
from gapwise.stages.solver.path.capabilities import Capabilities
from gapwise.stages.solver.path.rules import path_rule

if TYPE_CHECKING:
    from gapwise.records import Json
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.objective import Certificate, Mixture, Product
    from gapwise.stages.solver.packed import ArraySpec


MARGIN = 1e-6
"""Share of eps that certificates between breakpoints leave unused, so that rounding of sums cannot break them."""

NEGLIGIBLE, PAST_TOP = 0.01, 1e-4
"""A path without `path.lambda_min` ends where (lambda / 2) ||w||^2 is at most this share of eps, as no smaller lambda can
matter: P* falls by about as much from there to lambda = 0. Where the hinge has not fallen by eps, lambda is also
at most this share of the top, ||psi~||^2 / (2 eps), above which w = 0 will do."""

UNSEEN = 0.1
"""A path ends where the bound on what rounding does to its values reaches this share of eps; see `rounding_floor`."""

WORST_SUM = 32.0
"""Bound on the rounding of psi = (1/n) sum_i psi_i, in units of machine epsilon times mean_i ||psi_i||: half the
length of a chunk of `stages.solver.state`, whose sums are plain ones, and a little for the terms themselves."""


def closing(eps: float) -> float:
    """The bound to which the certificates of intervals and cells are closed: eps less a margin for rounding."""
    return eps * (1.0 - MARGIN)


@dataclass(frozen=True)
class PathStart:
    """Where a path begins: the dual point of w = 0, and the lambdas above which nothing needs to be solved."""

    lam: float
    """First lambda to solve."""
    lam_top: float
    """From here up w = 0 (or the scaled first w, depending on the rule) is eps-optimal."""
    hinge_at_zero: float
    """R_0: mean of the largest losses."""
    psi_norm2: float
    """||psi~||^2, clipped to the cone."""
    labels: np.ndarray
    """truth's dtype, flat: max-oracle labellings at w = 0"""
    losses: np.ndarray
    """float64, (n,): their losses"""
    psi: np.ndarray
    """float64, (d,): psi~"""
    oracle_calls: int
    psi_scale: float = 0.0
    """mean_i ||psi_i|| of these labellings: the unit of rounding errors in psi"""

    def scalars(self) -> dict[str, Json]:
        """The numbers of the start, which are committed and stored as attributes."""
        arrays = ("labels", "losses", "psi")
        return {name: value for name, value in vars(self).items() if name not in arrays}


@dataclass(frozen=True)
class Tolerance:
    """The tolerance to which a lambda is solved."""

    gap: float
    relative: bool
    exact: bool = True
    """False: stale gaps decide, and nothing is certified."""


@dataclass(frozen=True)
class Solved:
    """What a rule is told about a lambda that has just been solved."""

    index: int
    """Breakpoints before it."""
    status: Status
    point: Certificate | None
    """None if the method does not certify."""
    weights: np.ndarray
    """float64, (d,): the certified w"""
    worst_hinge: Callable[[], float]
    """worst_hinge() -> the largest hinge of a block in units of the least loss of its wrong labellings"""
    oracle_calls: int
    """at this lambda; 0 where a mixture of solved points certified it"""
    passes: float = 0.0
    """effective passes at this lambda; at the first one with those of the path's start"""
    dual_weights: np.ndarray | None = None
    """float64, (d,): w(alpha) of the dual point, if `weights` is another point"""


@dataclass(frozen=True)
class Following:
    """What comes after a solved lambda: the next lambda (nan: the end), and how far down this one certifies."""

    lam: float
    low: float
    status: Status = Status.CONVERGED
    again: bool = False
    """Set if the first lambda did not cover everything above it: the larger lambda to start at instead."""


class PathRule(Protocol):
    """One rule on one path; it keeps as state what changes from lambda to lambda.

    Examples
    --------
    A rule that halves ``path.lambda`` two times. The base class of the rules with given lambdas has the other methods.

    >>> from gapwise.stages.solver.path.capabilities import OF_PATHS
    >>> from gapwise.stages.solver.path.given import Given
    >>> class Halving(Given):
    ...     capabilities = Capabilities(kappa=0.9, finds_lambdas=False, two_points=True, unread=("lambdas", *OF_PATHS))
    ...
    ...     @classmethod
    ...     def lambdas(cls, path):
    ...         return path.lam, path.lam / 2, path.lam / 4
    ...
    ...     @classmethod
    ...     def check(cls, path):
    ...         if path.lam <= 0.0:
    ...             raise ValueError(f"path.lambda: expected a number > 0, got {path.lam!r}")
    >>> rule = Halving.begin(PathOptions(lam=0.8), None)
    >>> solved = Solved(1, Status.CONVERGED, None, np.zeros(3), lambda: 0.0, oracle_calls=6)
    >>> rule.following(solved)
    Following(lam=0.2, low=0.4, status=<Status.CONVERGED: 'CONVERGED'>, again=False)

    Attributes
    ----------
    capabilities : Capabilities
        What the rule can do; the same for every path.
    specs : tuple of ArraySpec
        The arrays that `packed` returns.

    Notes
    -----
    Arguments of the methods:

    path : PathOptions
        The options of the section `path`.
    start : PathStart or None
        What `start` has returned.
    problem : Problem
        n blocks, d weights.
    spread : Spread
        Where oracles are called; does not change the result.
    arrays : mapping of arrays
        What `packed` has returned; for `bound`, the arrays of path.zarr.
    attrs : mapping
        The attributes beside them.
    lam : float64 array
        Values of lambda, of any shape.
    """

    capabilities: ClassVar[Capabilities]

    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""

    @classmethod
    def check(cls, path: PathOptions) -> None:
        """Raise ValueError, naming the key, if the rule does not support an option."""

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """The lambdas that are given, in the order they are solved; () if the rule finds them."""

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart | None:
        """Where the path begins; None if its lambdas are given."""

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule before its first lambda."""

    @classmethod
    def restored(
        cls,
        path: PathOptions,
        start: PathStart | None,
        arrays: Mapping[str, np.ndarray],
        attrs: Mapping[str, object],
    ) -> Self:
        """The rule in its packed state."""

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and JSON-able attributes."""

    def tolerance(self) -> Tolerance:
        """The tolerance of the next lambda."""

    def warm_start(self) -> str:
        """How the method gets to the next lambda."""

    def following(self, solved: Solved) -> Following:
        """The next lambda, or the end.

        Parameters
        ----------
        solved : Solved
            The lambda that has just been solved, with its certificate and weights.
        """

    def open_end(self) -> OpenEnded | None:
        """What is certified so far, if the path may be stopped anywhere (`capabilities.open_ended`)."""

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The model of every lambda as cells, from the largest lambda down; {} if only solved lambdas have one.

        In a cell w(lambda) = min(1, cell_scale / lambda) (t_0 w_above + t_1 w_below). Here above and below are breakpoints
        k - 1 and k by falling lambda, and w = 0 outside the path. Arrays are cell_interval (k), cell_low, cell_high,
        cell_primal (t, two columns), cell_scale, and others that the rule's certificates need.

        Parameters
        ----------
        solved : mapping of arrays, (breakpoints,) each
            lambda, lambda_low, gap, hinge, loss_dual and norm2 of all breakpoints, by falling lambda.
        """

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap (or gap / primal) at `lam`, from path.zarr; nan where nothing is certified."""


class TakesProduct(Protocol):
    """A rule that mixes solved points (`capabilities.takes_product`), so that it needs their inner products."""

    def use_product(self, product: Product) -> None:
        """Take <a, b> of two solved points by `product`, that of the problem's own metric."""


class Mixes(Protocol):
    """A rule that knows a primal point for a lambda between solved ones (`capabilities.mixes`)."""

    def mixture(self, lam: float) -> Mixture | None:
        """The best mixture of the solved points around lambda; None where there are none on both sides."""


def mixture_of(rule: PathRule, problem: Problem, lam: float) -> Mixture | None:
    """The mixture of a rule that has one; None where an oracle is approximate, whose bounds at the mixture may be worse."""
    exact = rule.capabilities.mixes and certainty_of(problem) == EXACT
    return cast("Mixes", rule).mixture(lam) if exact else None


class OpenEnded(Protocol):
    """What is certified so far of a path that may be stopped anywhere."""

    @property
    def reached(self) -> float:
        """The eps that is certified at every lambda so far."""

    @property
    def ended(self) -> Status | None:
        """How the path ends if `reached` is down at `path.eps`; else None."""

    @property
    def certified(self) -> list[float]:
        """`reached` after each solved lambda."""

    @property
    def supporting(self) -> list[int]:
        """Numbers, in the order they were solved, of the breakpoints that the certificate rests on."""

    def attributes(self) -> dict[str, Json]:
        """Attributes of path.zarr that say what is certified, `eps` among them."""


def negligible(path: PathOptions, point: Certificate, hinge_at_zero: float, psi_norm2: float) -> bool:
    """Whether the regulariser no longer matters to eps at a solved lambda; False where `path.lambda_min` says where to end.

    P* is concave in lambda with the slope ||w||^2 / 2: smaller lambdas can take about (lambda / 2) ||w||^2 off it. If the
    hinge is so close to eps that this might end the path, it is not negligible. At the top of a path, where w = 0 will do,
    the regulariser is small as well: the hinge must have fallen by eps from that of w = 0, or lambda far below the top.
    """
    goal, left = path.eps * (point.primal if path.relative else 1.0), point.lam * point.norm2
    in_reach = not path.relative and point.hinge - left <= path.eps
    unit = path.eps * (hinge_at_zero if path.relative else 1.0)
    past_top = hinge_at_zero - point.hinge >= goal or 2.0 * unit * point.lam <= PAST_TOP * psi_norm2
    return path.lambda_min == 0.0 and 0.5 * left <= NEGLIGIBLE * goal and past_top and not in_reach


def rounding_floor(path: PathOptions, start: PathStart, floor: float) -> float:
    """The least lambda of a path that rounding leaves meaningful; `floor` is the rule's share of the largest lambda.

    A rounding error e of psi is one of e / lambda in w, which moves the mean hinge by at most mean_i ||psi_i|| ||e|| /
    lambda, and ||e|| is at most WORST_SUM times machine epsilon times mean_i ||psi_i||.
    """
    unit = path.eps * (start.hinge_at_zero if path.relative else 1.0)
    bound = WORST_SUM * float(np.finfo(float).eps) * start.psi_scale**2
    return max(floor * start.lam_top, bound / (UNSEEN * unit) if unit > 0.0 else 0.0)


def where_it_ends(path: PathOptions, start: PathStart, floor: float, point: Certificate, low: float) -> Status | None:
    """How a path ends whose last `point` certifies down to `low` > 0; None if it goes on."""
    if low <= path.lambda_min:
        return Status.CONVERGED
    if negligible(path, point, start.hinge_at_zero, start.psi_norm2):
        return Status.LAMBDA_NEGLIGIBLE
    return Status.ROUNDING_LIMIT if low <= rounding_floor(path, start, floor) else None


def attributes_of(path: PathOptions) -> dict[str, Json]:
    """What path.zarr says of the options that its path was solved with."""
    return {
        "rule": path.rule,
        **({"descend": path.descend} if path.can.descends else {}),
        "eps": path.eps if path.can.finds_lambdas else path.tolerance,
        "relative": path.relative,
        "kappa": path.kappa,
        "lambda_min": path.lambda_min,
        **({"end": path.end} if path.end != WHOLE else {}),
    }


def certainty_of_path(problem: Problem, path: PathOptions) -> str:
    """What the gaps of a path are: estimates where stale gaps decide."""
    return certainty_of(problem) if path.can.exact else ESTIMATE


def rule_of(path: PathOptions) -> type[PathRule]:
    """The class of the rule that `path` asks for."""
    rule: type[PathRule] = path_rule(path.rule)
    return rule
