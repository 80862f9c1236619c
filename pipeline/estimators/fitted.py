"""What a fit has solved: a path or given lambdas, and the chosen lambda once more on all blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapwise.pipeline.estimators.certificate import ModelCertificate, certificate_of, ended_early
from gapwise.pipeline.estimators.solving import Solved
from gapwise.stages.choice.criteria import Criterion
from gapwise.stages.choice.grid import common_grid
from gapwise.stages.choice.held_out import Held, nearest, of_each
from gapwise.stages.choice.rules import Edge, edge_of, standard_error
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.storage.mixture import PathInMemory

if TYPE_CHECKING:
    from gapwise.storage.paths import SolvedPath

ENDINGS = {
    Status.PASS_LIMIT: ("at max_passes", "raise max_passes, or "),
    Status.TIME_LIMIT: ("at max_seconds", "raise max_seconds, or "),
    Status.BOUND_LIMIT: ("where the oracle's bounds are too loose", ""),
    Status.ROUNDING_LIMIT: (
        "where rounding hides whether the gap is small enough",
        "center and scale the features, or ",
    ),
    Status.STALLED: ("where exact passes no longer lowered the gap", "center and scale the features, or "),
}
"""Where a solve ended that was not done, and what helps."""
STRIDE = 2
"""Of the 16 lambdas a decade of `common_grid`."""


class Validated(NamedTuple):
    """What the held-out blocks say of lambdas of equal distance along a path, or of those that were given."""

    by: Criterion
    lams: np.ndarray
    """float64, (lambdas,), falling"""
    values: np.ndarray
    """float64, (lambdas,): means over the blocks, or over folds"""
    errors: np.ndarray
    """float64, (lambdas,): standard errors of these; NaN for a measure of all blocks together"""
    at_breakpoints: np.ndarray
    """float64, (breakpoints,): means over the blocks, or over folds"""

    @classmethod
    def of(cls, path: PathInMemory, by: Criterion, values: Sequence[HeldValues]) -> Validated:
        """From the values of all held-out blocks, those of each fold apart; lambdas that a fold's path does not reach are
        left out."""
        every = np.concatenate([fold.on_grid for fold in values], axis=1)
        known = ~np.isnan(every).any(axis=1)
        errors = np.array([standard_error(row) for row in every[known]])
        if not by.is_loss and len(values) == 1:
            errors = np.full(errors.size, np.nan)
        at_breakpoints = np.concatenate([fold.at_breakpoints for fold in values], axis=1)
        return cls(by, grid_of(path)[known], every[known].mean(axis=1), errors, at_breakpoints.mean(axis=1))

    def beside(self, path: SolvedPath) -> SolvedPath:
        """The path with these values."""
        path[f"validation_{self.by.name}"] = ("breakpoint", self.at_breakpoints)
        path["validated_lambda"] = ("validated", self.lams)
        path[f"validated_{self.by.name}"] = ("validated", self.values)
        path["validated_error"] = ("validated", self.errors)
        return path


class HeldValues(NamedTuple):
    """What one fold's held-out blocks say; NaN at lambdas that its path does not reach. A column a block, or one for all."""

    on_grid: np.ndarray
    """float64, (lambdas, columns): at those of `grid_of`"""
    at_breakpoints: np.ndarray
    """float64, (breakpoints, columns)"""

    @classmethod
    def of(
        cls, path: PathInMemory, fold: PathInMemory, held: Held, by: Criterion, spread: Spread,
        known: Mapping[float, np.ndarray] = MappingProxyType({}),
    ) -> HeldValues:  # fmt: skip
        """At the lambdas of `path`, of the models of `fold`: `path` itself, or that of the blocks outside a fold.

        `known`: the values at breakpoints that were measured before.
        """
        if path.end is None:
            values = values_of(fold["weights"], held, by, spread)
            return cls(values, values)
        breakpoints = path["weights"] if fold is path else models_of(fold, path["lambda"])
        on_grid = values_of(models_of(fold, grid_of(path)), held, by, spread)
        if known:
            return cls(on_grid, np.array([known[lam] for lam in path["lambda"].tolist()]))
        return cls(on_grid, values_of(breakpoints, held, by, spread))


def grid_of(path: PathInMemory) -> np.ndarray:
    """The lambdas, falling, among which one is chosen: of equal distance along a path, or those that were given."""
    return path["lambda"] if path.end is None else common_grid([path])[::STRIDE]


def models_of(path: PathInMemory, lams: np.ndarray) -> Iterator[np.ndarray]:
    """The model of each lambda; NaN where the path has ended."""
    for lam in lams.tolist():
        reached = path.end is not None and lam >= path.end
        yield path.weights_at(lam) if reached else np.full(path["weights"].shape[1], np.nan)


def values_of(models: Iterable[np.ndarray], held: Held, by: Criterion, spread: Spread) -> np.ndarray:
    """float64, (models, columns): of each model."""
    nothing = np.full(held.problem.n if by.is_loss else 1, np.nan)
    return of_each(models, lambda w: nothing if np.isnan(w).any() else held.values(w, by, spread))


class Fitted(NamedTuple):
    """All that the fitted attributes are made from."""

    path: Solved
    """On the blocks that are not held out."""
    options: PathOptions
    """Of `path`."""
    lam: float
    """The chosen lambda."""
    validated: Validated | None
    """What lambda was chosen on."""
    refit: Solved | None = None
    """On all blocks."""
    goal: PathOptions | None = None
    """Of `refit`."""

    @property
    def certificate_of_path(self) -> ModelCertificate:
        """That of `path`; of given lambdas at the chosen one."""
        return certificate_of(self.path, self.options, nearest(self.path.path, self.lam))

    @property
    def certificate(self) -> ModelCertificate:
        """That of the model at the chosen lambda."""
        if self.refit is None or self.goal is None:
            return self.certificate_of_path
        return certificate_of(self.refit, self.goal, 0)

    @property
    def edge(self) -> Edge | None:
        """The edge at which held-out blocks chose lambda, if they did."""
        if self.validated is None:
            return None
        (chosen,) = np.flatnonzero(self.validated.lams == self.lam)
        return edge_of(self.validated.lams, int(chosen), self.path.path.end)

    def said_of_edge(self, name: str) -> str:
        """What is to be said of a choice at an edge."""
        assert self.edge is not None
        said = f"{name}: lam {self.lam:.3g} was chosen {self.edge.words}"
        if self.edge is Edge.END:
            return said
        more = "give more lambdas" if self.path.path.end is None else "a smaller eps goes further down"
        if self.path.status is Status.LAMBDA_NEGLIGIBLE:
            more += ", or where no feature is far smaller than others or than the intercept: standardise them"
        return f"{said}; {more}"

    def warnings(self, name: str) -> Iterator[str]:
        """What is to be said of solves that ended before they were done.

        Of a path it does not matter where nothing more could be gained, if lambda was chosen well above that and is solved
        again.
        """
        unseen = self.refit is not None and self.edge is None and self.path.status is Status.STALLED
        if ended_early(self.path, self.options) and not unseen:
            yield _said_of(name, self.path, self.options, self.certificate_of_path)
        if self.refit is not None and self.goal is not None and ended_early(self.refit, self.goal):
            yield _said_of(name, self.refit, self.goal, self.certificate)


def _said_of(name: str, result: Solved, path: PathOptions, certificate: ModelCertificate) -> str:
    """The warning of a solve that a limit ended."""
    where, remedy = ENDINGS[result.status]
    ending = f"{name}: ended {where} ({result.status})"
    if path.can.finds_lambdas and certificate.holds:
        return f"{ending}; the path goes down to lam {certificate.lam_low:.3g} only; {remedy}raise eps"
    asked = f"{certificate.allowed:.3g} was asked for, at lam {float(result.path['lambda'][-1]):.3g}"
    return f"{ending} with a gap of {certificate.gap:.3g} where {asked}; {remedy}raise tolerance or eps"
