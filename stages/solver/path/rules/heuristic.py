"""`path.rule=heuristic` (`path=heuristic`): the path with stale gaps (O16 section 4), cheaper and without a guarantee.

The steps are those of another rule, `path.descend`: `paper` as in O16, or `one_sided`. A lambda is done once the sum of the
last known block gaps is at most kappa eps; no exact pass confirms it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from gapwise.stages.solver.options import PathOptions, check
from gapwise.stages.solver.path.capabilities import Capabilities
from gapwise.stages.solver.path.rule import Following, PathRule, PathStart, Solved, Tolerance
from gapwise.stages.solver.path.rules import path_rule, steppers

if TYPE_CHECKING:
    from gapwise.records import Json
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.packed import ArraySpec


@dataclass
class Heuristic:
    """The steps of another rule, decided by stale gaps."""

    capabilities = Capabilities(kappa=0.7, exact=False, descends=True)

    path: PathOptions
    steps: PathRule

    @classmethod
    def check(cls, path: PathOptions) -> None:
        """Refuse rules whose steps need exact gaps, and what the rule of the steps refuses."""
        check("path.descend", path.descend, path.descend in steppers(), "one of " + ", ".join(steppers()))
        path_rule(path.descend).check(path)

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """None are given."""
        return ()

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> PathStart | None:
        """Where the rule of the steps begins."""
        start: PathStart | None = path_rule(path.descend).start(problem, path, spread)
        return start

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule of a path that begins at `start`."""
        return cls(path, path_rule(path.descend).begin(path, start))

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]
    ) -> Self:
        """The rule in the packed state of its steps."""
        return cls(path, path_rule(path.descend).restored(path, start, arrays, attrs))

    @property
    def specs(self) -> tuple[ArraySpec, ...]:
        """The arrays of `packed`."""
        return self.steps.specs

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
        """The state of the steps."""
        return self.steps.packed()

    def tolerance(self) -> Tolerance:
        """The share kappa of eps, for stale gaps."""
        return Tolerance(self.path.kappa * self.path.eps, False, exact=False)

    def warm_start(self) -> str:
        """As the rule of the steps does."""
        return self.steps.warm_start()

    def following(self, solved: Solved) -> Following:
        """As the rule of the steps does."""
        return self.steps.following(solved)

    def open_end(self) -> None:
        """The path goes down to its end."""

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """As the rule of the steps does; nothing certifies it."""
        return self.steps.model(solved)

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """Nothing is certified."""
        return np.full(np.shape(lam), np.nan)


RULE = Heuristic
