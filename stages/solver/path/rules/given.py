"""`path=grid` and `path=single`: given lambdas, each certified on its own, with no claim about any other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.path.rule import Following, PathStart, Solved, Tolerance

if TYPE_CHECKING:
    from gapwise.stages.parallel import Spread
    from gapwise.stages.problems.protocol import Problem


@dataclass
class Given:
    """The lambdas of the configuration, in their order."""

    floor = 0.0
    starts_exactly = False
    specs = ()
    between = False

    path: PathOptions

    @classmethod
    def check(cls, path: PathOptions) -> None:
        """There is nothing more to check than for every path."""

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> None:
        """There is nothing to find."""

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule of `path`."""
        return cls(path)

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any]
    ) -> Self:
        """The rule again."""
        return cls(path)

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Nothing."""
        return {}, {}

    def tolerance(self) -> Tolerance:
        """`path.tolerance`."""
        return Tolerance(self.path.tolerance, self.path.relative)

    def warm_start(self) -> str:
        """`path.warm_start`."""
        return self.path.warm_start

    def following(self, solved: Solved) -> Following:
        """The next given lambda; reaching a limit at one of them does not prevent the others from being solved."""
        lams = self.path.lambdas if self.path.kind == "grid" else [self.path.lam]
        k = solved.index
        return Following(lams[k + 1] if k + 1 < len(lams) else math.nan, lams[k])

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Only solved lambdas have a model."""
        return {}

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, Any], lam: np.ndarray) -> np.ndarray:
        """Nothing is certified between the given lambdas."""
        return np.full(np.shape(lam), np.nan)


RULE = Given
