"""The audit of a path: every breakpoint recomputed and compared, then what its rule certifies between them.

What may differ is in `rounding`: relative to the path's own scales, and a small share of eps where
something is certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import count
from typing import ClassVar, TypeVar

import numpy as np

from gapwise.records import Facts
from gapwise.stages.certify.kernels import of_audit
from gapwise.stages.certify.oracle import OracleError
from gapwise.stages.certify.recompute import DualPoints, Rebuilt, Zero, rebuild, rebuild_zero
from gapwise.stages.certify.rounding import TOLERANCE, Slack, slack_of
from gapwise.stages.problems.capabilities import UPPER_BOUNDED, certainty_of
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.stored import check_array, check_supports

Made = TypeVar("Made")

REBUILDING, SAMPLING = "solved λ's recomputed", "λ's between them checked"
"""The two phases of an audit, as they are reported; where only given lambdas are certified there is no second."""

Report = Callable[[int, int, str], None]


class CertificateError(RuntimeError):
    """A certificate that does not hold; says which lambda and which number."""


class BaselessError(CertificateError):
    """Certificates with nothing to recompute them from: arrays that do not fit the problem, or a wrong max-oracle.

    `broken` has one line for each lambda concerned.
    """

    def __init__(self, broken: list[str]) -> None:
        super().__init__(broken[0])
        self.broken = broken


class Audit:
    """The checks over one path; what fails is collected in `broken`, each with its lambda.

    Parameters
    ----------
    arrays, attrs : mapping
        Those of path.zarr, without the weights; arrays have the layout's shapes.
    weights : callable
        weights(b): the stored weights (d,) of breakpoint b.
    kind : type
        What checks the claims of the path's rule: one of `cells.VERIFIERS`.
    asked_eps : float
        The eps at which a path that may be stopped anywhere was to end.

    Raises
    ------
    BaselessError
        If supports do not fit the problem, so that compiled code must not read them.
    """

    def __init__(
        self,
        problem: Problem,
        arrays: Mapping[str, np.ndarray],
        attrs: Facts,
        spread: Spread,
        report: Report,
        weights: Callable[[int], np.ndarray],
        kind: type[Given],
        asked_eps: float = math.inf,
    ) -> None:
        self.problem, self.arrays, self.attrs, self.weights = of_audit(problem), arrays, attrs, weights
        self.spread, self.report, self.asked_eps = spread, report, asked_eps
        self.duals = DualPoints(self.problem, arrays)
        self.broken: list[str] = []
        self.rounded: list[int] = []
        """Given lambdas that only rounding keeps from being confirmed to their tolerance."""
        self.rebuilt: list[Rebuilt] = []
        self.slacks: list[Slack] = []
        self.zero = Zero(0.0, 0.0, np.empty(0), 0.0)
        self.apart, self.of_path = bool(attrs["own_primal"]), kind.of_path
        """Whether w is the stored one, which then need not follow from the supports; whether a path is certified."""
        if faults := faults_of(self.problem, arrays, dual_point=bool(attrs["dual_point"])):
            raise BaselessError(faults)
        limited = attrs["status"] in ("PASS_LIMIT", "ORACLE_LIMIT", "BOUND_LIMIT", "STALLED")
        self.unfinished = limited and not float(arrays["gap"][-1]) <= self.allowed(-1)
        """Whether a limit came before the last lambda was solved to its tolerance."""
        self.verifier = kind(self)

    def where(self, b: int) -> str:
        """Breakpoint b, in words."""
        return where(self.arrays, b)

    def allowed(self, b: int) -> float:
        """The gap that breakpoint b claims to stay below."""
        return float(self.attrs["eps"]) * (float(self.arrays["dual"][b]) if self.attrs["relative"] else 1.0)

    def breakpoints(self) -> list[Rebuilt]:
        """All breakpoints recomputed and compared with what is stored; BaselessError if the max-oracle is wrong."""
        dual = bool(self.attrs["dual_point"])
        duals = self.duals if dual else None

        def recomputed(b: int, inner: Spread) -> Rebuilt:
            weights = check_array("weights", self.weights(b), (self.problem.d,), np.float64)
            return rebuild(self.problem, self.arrays, b, weights, self.apart, inner, duals=duals)

        try:
            self.zero = rebuild_zero(self.problem, self.spread)
        except OracleError as error:
            raise BaselessError([f"w = 0: {error}"]) from error
        self.rebuilt = self._each(self.arrays["lambda"].size, REBUILDING, recomputed, self.where)
        self.slacks = [self._slack(b, r) for b, r in enumerate(self.rebuilt)]
        for b, r in enumerate(self.rebuilt):
            faults = self._faults(b, r, self.slacks[b], dual)
            by_rounding = self._slack(b, r, by_rounding=True)
            if faults and not self.of_path and not self._faults(b, r, by_rounding, dual, by_rounding=True):
                self.rounded.append(b)
            else:
                self.broken += faults
        for b, hinge in enumerate(self.arrays["hinge"]):
            if self.bounded or self.mixed(b):
                self.rebuilt[b] = as_claimed(self.rebuilt[b], float(hinge))
        return self.rebuilt

    def _each(
        self, total: int, task: str, make: Callable[[int, Spread], Made], where: Callable[[int], str]
    ) -> list[Made]:
        """make(k, spread) for each k below `total`; BaselessError with a line for each that cannot be made."""
        made, baseless, done = dict[int, Made](), dict[int, Exception](), count(1)

        def at(k: int, inner: Spread) -> None:
            try:
                made[k] = make(k, inner)
            except (IndexError, ValueError) as error:
                baseless[k] = error
            self.report(next(done), total, task)

        self.spread.points(at, total)
        if baseless:
            raise BaselessError([f"{where(k)}: {baseless[k]}" for k in sorted(baseless)])
        return [made[k] for k in range(total)]

    @property
    def bounded(self) -> bool:
        """Whether hinges are bounds on those of an approximate oracle."""
        return certainty_of(self.problem) == UPPER_BOUNDED

    def mixed(self, b: int) -> bool:
        """Whether the hinge of breakpoint b is a bound: its w mixes those of its neighbours, and no oracle was called."""
        return self.apart and self.of_path and int(self.arrays["oracle_calls"][b]) == 0

    def _faults(self, b: int, r: Rebuilt, slack: Slack, dual: bool, *, by_rounding: bool = False) -> list[str]:
        """What differs at breakpoint b by more than `slack`; `by_rounding`: its gap may exceed the goal by rounding, too."""
        A, where, faults = self.arrays, self.where(b), list[str]()
        expected = {
            "gap": (r.gap, slack.value),
            "hinge": (r.hinge, slack.value),
            "loss_dual": (r.ell, slack.value),
            "norm2": (r.norm2, slack.norm2),
            "primal": (r.primal, slack.value),
            "dual": (r.dual, slack.value),
        }
        if "dual_norm2" in A:
            expected["dual_norm2"] = r.dual_norm2, slack.dual_norm2
        stale = ("gap", "hinge", "primal") if not self.attrs["certified"] and dual else ()
        unknown = () if dual else ("gap", "loss_dual", "dual")
        looser = max(float(A["bound_slack"][b]), 0.0) if self.bounded else 0.0
        looser = math.inf if self.mixed(b) else looser
        for name, (value, allowed) in expected.items():
            stored = float(A[name][b])
            above = allowed + (looser if name in ("gap", "hinge", "primal") else 0.0)
            if name not in stale + unknown and not -allowed <= stored - value <= above:
                faults.append(
                    f"{where}: {name} is stored as {stored:.9g}, recomputed {value:.9g}{slack.note(abs(stored - value))}"
                )
        if not r.rebuild_error <= slack.weights:
            faults.append(
                f"{where}: the stored weights differ by {r.rebuild_error:.3g} of the largest from those of the supports"
            )
        if not dual:
            if self.attrs["certified"]:
                faults.append(f"{where}: said to be certified, without a dual point")
            return faults
        if not abs(r.primal - r.dual - r.gap) <= slack.value:
            faults.append(f"{where}: primal - dual is {r.primal - r.dual:.9g}, the block gaps sum to {r.gap:.9g}")
        if not r.simplex_error <= slack.simplex:
            faults.append(f"{where}: a block's weights leave the simplex by {r.simplex_error:.3g}")
        if not r.gap >= -slack.value:
            faults.append(f"{where}: the duality gap {r.gap:.9g} is negative")
        goal = self._goal(r)
        most = goal + slack.value if by_rounding else goal * (1.0 + slack.bound)
        if not stale and self.verifier.claims(b) and not r.gap <= most:
            faults.append(f"{where}: the duality gap {r.gap:.9g} is above {goal:.9g}{slack.note(r.gap - goal)}")
        return faults

    def _goal(self, r: Rebuilt) -> float:
        """The gap that a recomputed breakpoint may have."""
        return float(self.attrs["eps"]) * (r.dual if self.attrs["relative"] else 1.0)

    def _slack(self, b: int, r: Rebuilt, *, by_rounding: bool = False) -> Slack:
        """What may differ at breakpoint b, or what rounding alone may do; where nothing is claimed, no eps limits it."""
        lam = float(self.arrays["lambda"][b])
        if by_rounding:
            return slack_of(r, self.zero, lam, math.inf, apart=self.apart, tolerance=0.0)
        certified = bool(self.attrs["certified"] and self.attrs["dual_point"]) and self.verifier.claims(b)
        return slack_of(r, self.zero, lam, self._goal(r) if certified else math.inf)

    def bound(self, *breakpoints: int) -> float:
        """The share of eps by which a bound that rests on these breakpoints may exceed eps."""
        return max([TOLERANCE, *(self.slacks[b].bound for b in breakpoints if 0 <= b < len(self.slacks))])

    def sampled(self, samples: int, seed: int) -> list[dict[str, float]]:
        """Exact passes at random lambdas: from a tenth of the last breakpoint (or the path's end) to above its top."""
        lams, eps = self.arrays["lambda"], float(self.attrs["eps"])
        draws = drawn(lams, float(self.verifier.closed()[-1]), float(self.attrs["lam_top"]), samples, seed).tolist()
        gaps = self._each(
            samples,
            SAMPLING,
            lambda k, inner: self.verifier.gap_at(draws[k], inner),
            lambda k: f"lambda {draws[k]:.9g} (sampled)",
        )
        most = eps * (1.0 + self.bound(*range(len(self.slacks))))
        self.broken += [
            f"lambda {lam:.9g} (sampled): an exact pass finds a gap of {gap:.9g} > {eps:g}"
            for lam, gap in zip(draws, gaps, strict=True)
            if not gap <= most
        ]
        return [{"lambda": lam, "gap": gap} for lam, gap in zip(draws, gaps, strict=True)]


class Given:
    """The verifier of `grid` and `single`: given lambdas, each certified on its own, and nothing between them.

    It gets the `Audit`, with all breakpoints rebuilt, and adds what does not hold to its `broken`. So a wrong certificate
    raises no error here.
    """

    of_path: ClassVar[bool] = False
    """Whether lambdas between the solved ones are certified as well."""

    def __init__(self, audit: Audit) -> None:
        self.audit, self.arrays, self.attrs, self.broken = audit, audit.arrays, audit.attrs, audit.broken

    def claims(self, b: int) -> bool:
        """Whether the path claims that breakpoint b is solved to its tolerance: not if a limit was reached first."""
        return str(self.attrs["status_meanings"][self.arrays["status"][b]]) == "CONVERGED"

    def intervals(self) -> list[float]:
        """The worst gaps between breakpoints (gap / primal for a relative goal); [] where only breakpoints are certified."""
        self.broken += [
            f"{self.audit.where(b)}: lambda_low is no number" for b in np.flatnonzero(np.isnan(self.closed())).tolist()
        ]
        if "cell_low" in self.arrays:
            lam = float(self.arrays["lambda"][0])
            self.broken.append(f"lambda {lam:.9g} and below: models between lambdas that were given one by one")
        return []

    def closed(self) -> np.ndarray:
        """The lower ends of the certified intervals, in path order: here each lambda itself."""
        return np.asarray(self.arrays["lambda_low"])

    def gap_at(self, lam: float, spread: Spread = HERE) -> float:
        """The gap (or gap / primal) at lambda by an exact pass at w(lambda), less the dual value that certifies it."""
        return math.nan


def as_claimed(r: Rebuilt, hinge: float) -> Rebuilt:
    """A breakpoint with the hinge that the path claims, where that is the larger one.

    Recomputed bounds may be tighter than those that the path rests on. Then they confirm them, and what the path says of
    the lambdas around is checked for the numbers from which it was derived; `bound_slack` then is that of its bounds.
    """
    more = max(hinge - r.hinge, 0.0)
    return r._replace(gap=r.gap + more, hinge=r.hinge + more, primal=r.primal + more, bound_slack=r.bound_slack + more)


def drawn(lams: np.ndarray, closed: float, top: float, samples: int, seed: int) -> np.ndarray:
    """Random lambdas from a tenth of the last of `lams` (or where the path is closed) to above the largest."""
    bottom, top = float(np.fmax(closed, 0.1 * float(lams[-1]))), 1.1 * max(top, float(lams[0]))
    return np.exp(np.random.default_rng(seed).uniform(np.log(bottom), np.log(top), samples))


def where(arrays: Mapping[str, np.ndarray], b: int) -> str:
    """Breakpoint b, in words."""
    return f"lambda {float(arrays['lambda'][b]):.9g} (breakpoint {b})"


def faults_of(problem: Problem, arrays: Mapping[str, np.ndarray], *, dual_point: bool) -> list[str]:
    """A line for each breakpoint whose supports refer to what is not there, if the path has dual points."""
    A = arrays
    try:
        check_array("lambda", A["lambda"], (A["lambda"].size or 1,), np.float64, finite=True)
    except ValueError as error:
        return [f"lambda of every breakpoint: {error}"]
    faults = []
    names = ("support_alpha", "support_loss", "support_label", "label_offset")
    for b in range(A["lambda"].size if dual_point else 0):
        try:
            check_supports(problem, A["support_offset"][b], *(A[name] for name in names))
        except ValueError as error:
            faults.append(f"{where(A, b)}: {error}")
    return faults
