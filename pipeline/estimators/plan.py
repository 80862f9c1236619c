"""What a fit is asked to do: the parameters of an estimator, checked against its data before anything is solved."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from gapwise.pipeline.estimators.choices import (
    AUTO,
    FEWEST,
    PATH,
    PER_BLOCK,
    Lambdas,
    Seed,
    asked_lambda,
    is_number,
    is_word,
    path_options,
    refuse,
    seed_of,
    workers_of,
)
from gapwise.pipeline.estimators.held_out import held_out
from gapwise.stages.choice.criteria import Criterion, criterion_of
from gapwise.stages.choice.held_out import Held
from gapwise.stages.choice.rules import PICKS
from gapwise.stages.model.calibration import METHODS, refuse_few
from gapwise.stages.model.confidence import refuse_without_margins
from gapwise.stages.solver.options import LOSS_RISES, PathOptions


class Parameters(Protocol):
    """The parameters of an estimator that a plan reads, as users gave them."""

    lam: Lambdas
    tolerance: float
    eps: float | None
    validation: float | int | None
    pick: str
    criterion: str
    calibration: str | None
    verify: bool
    n_jobs: int | None
    random_state: Seed


@dataclass(frozen=True)
class Plan:
    """The checked parameters, and which of the n blocks are held out."""

    lam: Lambdas
    """"auto" only where there are blocks enough to hold some out"""
    tolerance: float
    eps: float | None
    pick: str
    by: Criterion
    calibration: str | None
    verify: bool
    n: int
    folds: Sequence[np.ndarray]
    """(n,) bool each: one part that is held out, or folds; none for a single lambda"""
    seed: int
    workers: int
    none_held: str | None = None
    """what to say if blocks were to be held out and none can be"""

    @classmethod
    def of(cls, asked: Parameters, structure: str, n: int, groups: np.ndarray | None) -> Self:
        """The plan for n blocks of a structure; `groups` as in `held_out`. ValueError names the parameter."""
        lam = asked_lambda(asked.lam, asked.validation, n)
        if asked.pick not in PICKS:
            raise refuse("pick", asked.pick, f"one of {', '.join(PICKS)}")
        if asked.calibration not in (None, *METHODS):
            raise refuse("calibration", asked.calibration, f"None or one of {', '.join(METHODS)}")
        seed, workers = seed_of(asked.random_state), workers_of(asked.n_jobs)
        by = criterion_of("criterion", asked.criterion, structure)
        several = not (is_number(lam) or is_word(lam, PER_BLOCK))
        folds = held_out(asked.validation, n, groups, seed) if several else []
        none_held = None
        if is_word(asked.lam, AUTO) and not several:
            few = f"expected at least {FEWEST} examples, to choose lam on some, got {n}"
            none_held = f"lam={AUTO!r}: {few}; lam={lam!r} was used"
        elif several and not folds and asked.validation is not None:
            used = "lam='1/n'" if is_word(lam, AUTO) else "the lam nearest to 1/n"
            none_held = f"validation: {asked.validation} of {n} blocks leaves none on one side; {used} was used"
            lam = PER_BLOCK if is_word(lam, AUTO) else lam
        if not by.is_loss and asked.pick == "one_se" and len(folds) == 1:
            raise ValueError(
                f"pick: one_se needs a standard error, and criterion={by.name!r} has one over folds only: validation=5"
            )
        if asked.calibration is not None:
            refuse_without_margins(structure)
            if len(folds) != 1:
                raise ValueError(
                    "calibration: no blocks are held out to fit it on; give lam='auto' or several lam, and validation=0.2"
                )
        return cls(
            lam, asked.tolerance, asked.eps, asked.pick, by, asked.calibration, asked.verify, n, folds, seed, workers,
            none_held,
        )  # fmt: skip

    @property
    def auto(self) -> bool:
        """Whether the chosen lambda is solved again on all blocks."""
        return is_word(self.lam, AUTO)

    @property
    def chosen(self) -> np.ndarray:
        """(n,) bool: the blocks that are held out in one part."""
        return self.folds[0] if len(self.folds) == 1 else np.zeros(self.n, bool)

    @property
    def first(self) -> PathOptions:
        """What is solved on the blocks that are not held out in one part."""
        some, chosen = bool(self.chosen.any()), int(np.count_nonzero(self.chosen))
        lam = PATH if self.auto else self.lam
        goal = path_options(lam, n=self.n - chosen, tolerance=self.tolerance, eps=self.eps)
        return dataclasses.replace(goal, end=LOSS_RISES) if self.auto and some and self.by.is_loss else goal

    def again(self, lam: float) -> PathOptions:
        """What is solved on all blocks once lambda is chosen."""
        return path_options(lam, n=self.n, tolerance=self.tolerance, eps=None)

    def check_held(self, held: Held) -> None:
        """Raise ValueError if the held-out blocks do not give what they are held out for."""
        held.refuse_unmeasured(self.by)
        if self.calibration is not None:
            refuse_few(held.problem.truth.size)
