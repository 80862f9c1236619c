"""A fit: a path or given lambdas, the choice of one on held-out blocks, its calibration, the solve of it on all blocks."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.estimators.data import Data, part
from gapwise.pipeline.estimators.fitted import Fitted, HeldValues, Validated
from gapwise.pipeline.estimators.plan import Plan
from gapwise.pipeline.estimators.solving import Solved, computing, digest, solved, spread_of
from gapwise.pipeline.interrupt import Stop
from gapwise.stages.choice.held_out import Held, nearest, start_of_all, supports_of
from gapwise.stages.choice.rising_loss import RisingLoss
from gapwise.stages.choice.rules import picked
from gapwise.stages.model.calibration import Calibration
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.options import LOSS_RISES, MethodOptions, PathOptions
from gapwise.stages.solver.supports import Supports
from gapwise.storage.backend import Location, location
from gapwise.storage.format import REFIT
from gapwise.storage.mixture import PathInMemory

log = logging.getLogger("gapwise")


class Source(NamedTuple):
    """How an estimator makes problems of its data."""

    problems: Callable[[Data, Data | None, Compute], AbstractContextManager[tuple[Problem, Held | None]]]
    """over both parts of the data"""
    divided: Callable[[Data, np.ndarray, Compute], AbstractContextManager[tuple[Problem, Problem, Held]]]
    """over all blocks, those not chosen, and the others"""
    digest: Callable[[Data], bytes]
    """of what determines the numbers besides the arrays of a problem"""
    options: Callable[[PathOptions], tuple[MethodOptions, PathOptions]]
    """of the solver for a path, and those of the path for this solver"""


class Former(NamedTuple):
    """The last fit of an estimator, at which the next may begin."""

    path: PathInMemory
    lam: float
    digest: str | None
    """of its data; None: it is not known"""

    def supports(self, known: str | None, path: PathOptions) -> Supports | None:
        """Its dual solution, if `path` can begin there on data of the digest `known`; the log says why not."""
        if path.can.finds_lambdas:
            log.info("warm_start: a path begins at its own first lambda, so this fit begins anew")
        elif known != self.digest:
            log.info("warm_start: the data differ from the last fit's, so this fit begins anew")
        elif not self.path.attrs["dual_point"]:
            log.info("warm_start: the last fit left no dual solution, so this fit begins anew")
        else:
            return supports_of(self.path, nearest(self.path, self.lam))
        return None


class Outcome(NamedTuple):
    """What a fit leaves."""

    fitted: Fitted
    calibration: Calibration | None
    uncalibrated: str | None
    """why there is no calibration where one was asked for"""
    digest: str | None
    """of the data of the last solve; None where nothing asks for it"""


@dataclass(frozen=True)
class Fit:
    """One fit that is going on."""

    plan: Plan
    source: Source
    compute: Compute
    stop: Stop | None
    run_dir: Location | None
    hashed: bool
    """whether digests of the data are needed"""

    def solve(
        self, problem: Problem, options: MethodOptions, path: PathOptions, data: Data, where: str = "",
        *, initial: Callable[[str | None], Supports | None] = lambda _: None, ending: RisingLoss | None = None,
        held_out: Callable[[], str] = str,
    ) -> tuple[Solved, str | None]:  # fmt: skip
        """Solve the problem over `data` in the folder `where` of the run's; returns the digest of the data, too."""
        known = digest(problem, self.source.digest(data)) if self.hashed else None
        run_dir = self.run_dir if self.run_dir is None or not where else self.run_dir / where
        result = solved(
            problem, options, path, seed=self.plan.seed, compute=self.compute, stop=self.stop, run_dir=run_dir,
            data=lambda: str(known), check=self.plan.verify, initial=initial(known), ending=ending,
            held_out=held_out,
        )  # fmt: skip
        return result, known

    def crossed(self, data: Data, options: MethodOptions, goal: PathOptions, path: PathInMemory) -> Validated:
        """The criterion on every fold, by the model of each lambda of `path` that the blocks outside the fold give."""
        values, by = [], self.plan.by
        for number, fold in enumerate(self.plan.folds):
            with self.source.divided(data, fold, self.compute) as (_, others, left_out):
                self.plan.check_held(left_out)
                apart, _ = self.solve(others, options, goal, part(data, ~fold), f"fold-{number}")
                values.append(HeldValues.of(path, apart.path, left_out, by, spread_of(self.compute)))
        return Validated.of(path, by, values)

    def calibrated(
        self, fitted: Fitted, held: Held | None, weight: np.ndarray | None
    ) -> tuple[Calibration | None, str | None]:
        """What the plan asks for, fitted on the held-out blocks of these weights, or why it cannot be."""
        if self.plan.calibration is None or held is None:
            return None, None
        from gapwise.stages.model.calibrate import calibration_of

        problem, w = held.problem, fitted.path.path.weights_at(fitted.lam)
        split, counted = f"the {problem.n:,} blocks held out in fit", np.ones(problem.truth.size, bool)
        try:
            spread = spread_of(self.compute)
            return calibration_of(problem, w, self.plan.calibration, split, counted, spread, weight), None
        except ValueError as error:  # an extra, for which no fit that is done is lost
            return None, f"{error}; calibration_ is None"


def fit(
    plan: Plan, data: Data, source: Source, run_dir: str | Location | None, *, warm_start: bool, former: Former | None
) -> Outcome:
    """Do what the plan says; `former` is the fit to begin at, if there is one."""
    chosen, by = plan.chosen, plan.by
    train, held = part(data, ~chosen), part(data, chosen) if chosen.any() else None
    options, path = source.options(plan.first)
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(Stop()) if run_dir is not None else None
        compute = stack.enter_context(computing(plan.workers, stop))
        where, spread = None if run_dir is None else location(run_dir), spread_of(compute)
        here = Fit(plan, source, compute, stop, where, hashed=run_dir is not None or warm_start)
        other: Held | None
        if plan.auto and held is not None:
            whole, problem, other = stack.enter_context(source.divided(data, chosen, compute))
        else:
            problem, other = stack.enter_context(source.problems(train, held, compute))
            whole = problem
        if other is not None:
            plan.check_held(other)
        ending = None
        if path.end == LOSS_RISES and other is not None:
            ending = RisingLoss(partial(other.values, by=by, spread=spread))
        result, known = here.solve(
            problem, options, path, train, ending=ending,
            initial=lambda known: None if former is None else former.supports(known, path),
            held_out=lambda: digest(other.problem) if other is not None else "",
        )  # fmt: skip
        validated = None
        if other is not None:
            measured = {} if ending is None else ending.known
            validated = Validated.of(
                result.path, by, [HeldValues.of(result.path, result.path, other, by, spread, measured)]
            )
        elif len(plan.folds) > 1:
            validated = here.crossed(data, options, path, result.path)
        fitted = Fitted(result, path, chosen_lambda(plan.pick, result, path, validated, len(train.y)), validated)
        calibration, uncalibrated = here.calibrated(fitted, other, None if held is None else held.relative)
        if plan.auto:
            log.info("lam %.3g was chosen; it is solved on all %s blocks", fitted.lam, f"{plan.n:,}")
            options, goal = source.options(plan.again(fitted.lam))
            again, known = here.solve(
                whole, options, goal, data, REFIT,
                initial=lambda _: start_of_all(whole, result.path, fitted.lam),
            )  # fmt: skip
            fitted = fitted._replace(refit=again, goal=goal)
    return Outcome(fitted, calibration, uncalibrated, known)


def chosen_lambda(pick: str, result: Solved, path: PathOptions, validated: Validated | None, n: int) -> float:
    """The lambda of the model, by what the held-out blocks say; else the nearest to 1/n."""
    lams = result.path["lambda"]
    if validated is not None:
        losses = validated.by.losses(validated.values)
        return float(validated.lams[picked(pick, validated.lams, losses, validated.errors)])
    if path.can.finds_lambdas:
        return max(1.0 / n, float(lams[-1]) if result.path.end is None else result.path.end)
    return float(lams[np.argmin(np.abs(np.log(lams * n)))])
