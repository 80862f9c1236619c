"""What a path rule is: where a path starts, which lambda comes next, what is certified between breakpoints.

The rules are in `rules/`. Each has a verifier of the same name in `stages/certify/`, separate code that checks its
certificates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, cast

import numpy as np

from gapwise.stages.problems.capabilities import ESTIMATE, certainty_of
from gapwise.stages.solver.objective import Goal, Product, plain_product
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.cells import SolvedPoint, bound_of

if TYPE_CHECKING:
    from gapwise.records import Json
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.counts import ArraySpec
    from gapwise.stages.solver.objective import Certificate, Mixture


OF_GIVEN = ("lambdas", "lambda", "tolerance", "warm_start")
"""Keys of `path` that only rules of given lambdas read."""

OF_PATHS = ("eps", "kappa", "lambda_min")
"""Keys of `path` that only rules which find their lambdas read."""

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
    """float64, (d,): w(alpha) of the dual point, if the path's certificates need it; `weights` itself where that is it"""


@dataclass(frozen=True)
class Following:
    """What comes after a solved lambda: the next lambda (nan: the end), and how far down this one certifies."""

    lam: float
    low: float
    status: Status = Status.CONVERGED


@dataclass
class PathRule(ABC):
    """One rule on one path; it keeps as state what changes from lambda to lambda.

    What a rule can do and needs is said by class attributes; those of a rule that finds its lambdas are the defaults.

    Examples
    --------
    A rule that halves ``path.lambda`` two times.

    >>> from gapwise.stages.solver.path.rules.grid import Given
    >>> class Halving(Given):
    ...     unread = ("lambdas", *OF_PATHS)
    ...
    ...     @classmethod
    ...     def lambdas(cls, path):
    ...         return path.lam, path.lam / 2, path.lam / 4
    >>> rule = Halving.begin(PathOptions(lam=0.8), None)
    >>> solved = Solved(1, Status.CONVERGED, None, np.zeros(3), lambda: 0.0, oracle_calls=6)
    >>> rule.following(solved)
    Following(lam=0.2, low=0.4, status=<Status.CONVERGED: 'CONVERGED'>)

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

    kappa: ClassVar[float] = 0.9
    """Share of eps that a breakpoint is solved to, unless `path.kappa` says otherwise."""
    kappa_apart: ClassVar[float | None] = None
    """The same for methods whose w is not that of their dual point; None: `kappa`."""
    finds_lambdas: ClassVar[bool] = True
    """Whether it finds its lambdas itself, rather than their being given: it solves a path."""
    exact: ClassVar[bool] = True
    """Whether exact gaps decide. False: stale gaps do, and nothing is certified."""
    starts_exactly: ClassVar[bool] = False
    """Whether the first lambda begins with an exact pass, because it may need no step."""
    between: ClassVar[bool] = False
    """Whether the model changes between two breakpoints, so that losses are also measured there."""
    two_points: ClassVar[bool] = False
    """Whether the primal and the dual point of a lambda need not be each other's."""
    open_ended: ClassVar[bool] = False
    """Whether the path may be stopped anywhere, is then certified for the eps reached, and goes on to a smaller `path.eps`,
    which is no part of a run's key. `open_end` then returns an `OpenEnded`."""
    switches: ClassVar[bool] = False
    """Whether a method may go on with other steps at a lambda that takes many passes. A paper's rule is False: its passes
    are those of the paper's steps."""
    unread: ClassVar[tuple[str, ...]] = OF_GIVEN
    """The keys of `path` that it does not read."""

    path: PathOptions
    zero: PathStart
    """None of rules with given lambdas."""
    product: Product = field(default=plain_product, kw_only=True)
    """<a, b> of the weights of two solved points, in the problem's own metric."""

    @classmethod
    def certifies_path(cls) -> bool:
        """Whether it certifies lambdas that were not solved."""
        return cls.finds_lambdas and cls.exact

    @classmethod
    def of_two_points(cls) -> bool:
        """Whether certificates of its path rest on a primal and a dual point of each solved lambda."""
        return cls.finds_lambdas and cls.two_points

    @classmethod
    def check(cls, path: PathOptions) -> None:
        """Raise ValueError, naming the key, if the rule does not support an option."""
        return

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """The lambdas that are given, in the order they are solved; () if the rule finds them."""
        return ()

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart | None:
        """Where the path begins; None if its lambdas are given. Here where w = 0 ceases to be eps-optimal."""
        from gapwise.stages.solver.path.start import start_below_zero

        return start_below_zero(problem, path, spread)

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule before its first lambda."""
        return cls(path, cast("PathStart", start))

    @classmethod
    def restored(
        cls,
        path: PathOptions,
        start: PathStart | None,
        arrays: Mapping[str, np.ndarray],
        attrs: Mapping[str, object],
    ) -> Self:
        """The rule in its packed state; ValueError, naming the array, if one is not what `packed` gives."""
        return cls.begin(path, start)

    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return ()

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """Arrays of `specs`, and JSON-able attributes."""
        return {}, {}

    def goal(self) -> Goal:
        """What the next lambda is solved to: the share kappa of eps (O16 Alg. 6)."""
        return Goal(self.path.kappa * self.path.eps, self.path.relative, self.exact)

    def warm_start(self) -> str:
        """How the method gets to the next lambda."""
        return "keep_dual"

    def mixture(self, lam: float) -> Mixture | None:
        """The best mixture of the solved points around lambda, which may take no oracle call; None where there is none."""
        return None

    @abstractmethod
    def following(self, solved: Solved) -> Following:
        """The next lambda, or the end.

        Parameters
        ----------
        solved : Solved
            The lambda that has just been solved, with its certificate and weights.
        """

    def open_end(self) -> OpenEnded | None:
        """What is certified so far, if the path may be stopped anywhere (`open_ended`)."""
        return None

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
        return {}

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """The certified bound on the gap (or gap / primal) at `lam`, from path.zarr; nan where nothing is certified."""
        return bound_of(arrays, attrs, lam) if cls.certifies_path() else np.full(np.shape(lam), np.nan)


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


def negligible(path: PathOptions, eps: float, point: Certificate | SolvedPoint, start: PathStart) -> bool:
    """Whether the regulariser no longer matters to eps at a solved lambda; False where `path.lambda_min` says where to end.

    P* is concave in lambda with the slope ||w||^2 / 2: smaller lambdas can take about (lambda / 2) ||w||^2 off it. If the
    hinge is so close to eps that this might end the path, it is not negligible. At the top of a path, where w = 0 will do,
    the regulariser is small as well: the hinge must have fallen by eps from that of w = 0, or lambda far below the top.
    """
    most, left = eps * (point.primal if path.relative else 1.0), point.lam * point.norm2
    in_reach = not path.relative and point.hinge - left <= eps
    unit = eps * (start.hinge_at_zero if path.relative else 1.0)
    past_top = start.hinge_at_zero - point.hinge >= most or 2.0 * unit * point.lam <= PAST_TOP * start.psi_norm2
    return path.lambda_min == 0.0 and 0.5 * left <= NEGLIGIBLE * most and past_top and not in_reach


def rounding_floor(start: PathStart, unit: float, least: float) -> float:
    """The least lambda of a path that rounding leaves meaningful to a gap of `unit`; not below `least`, the rule's own.

    A rounding error e of psi is one of e / lambda in w, which moves the mean hinge by at most mean_i ||psi_i|| ||e|| /
    lambda, and ||e|| is at most WORST_SUM times machine epsilon times mean_i ||psi_i||.
    """
    bound = WORST_SUM * float(np.finfo(float).eps) * start.psi_scale**2
    return max(least, bound / (UNSEEN * unit) if unit > 0.0 else 0.0)


def certainty_of_path(problem: Problem, path: PathOptions) -> str:
    """What the gaps of a path are: estimates where stale gaps decide."""
    return certainty_of(problem) if path.can.exact else ESTIMATE
