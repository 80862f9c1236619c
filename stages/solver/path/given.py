"""What `grid` and `single` share: given lambdas, each certified on its own, with no claim about any other."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from gapwise.records import Json
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.path.capabilities import Capabilities
from gapwise.stages.solver.path.rule import Following, PathStart, Solved, Tolerance

if TYPE_CHECKING:
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem


@dataclass
class Given(ABC):
    """The lambdas of the configuration, in their order."""

    capabilities: ClassVar[Capabilities]
    specs = ()

    path: PathOptions

    @classmethod
    @abstractmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """The lambdas, in the order they are solved."""

    @classmethod
    @abstractmethod
    def check(cls, path: PathOptions) -> None:
        """Raise ValueError, naming the key, if a lambda cannot be solved."""

    @classmethod
    def start(cls, problem: Problem, path: PathOptions, spread: Spread) -> None:
        """There is nothing to find."""
        return

    @classmethod
    def begin(cls, path: PathOptions, start: PathStart | None) -> Self:
        """The rule of `path`."""
        return cls(path)

    @classmethod
    def restored(
        cls, path: PathOptions, start: PathStart | None, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]
    ) -> Self:
        """The rule again."""
        return cls(path)

    def packed(self) -> tuple[dict[str, np.ndarray], dict[str, Json]]:
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
        lams, k = self.lambdas(self.path), solved.index
        return Following(lams[k + 1] if k + 1 < len(lams) else math.nan, lams[k])

    def open_end(self) -> None:
        """Given lambdas are all solved."""
        return

    def model(self, solved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Only solved lambdas have a model."""
        return {}

    @classmethod
    def bound(cls, arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
        """Nothing is certified between the given lambdas."""
        return np.full(np.shape(lam), np.nan)
