"""The verifier of `grid` and `single`: given lambdas, each certified on its own."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from gapwise.stages.certify.audit import Audit
from gapwise.stages.problems.parallel import HERE, Spread


class Given:
    """Nothing is certified between breakpoints."""

    of_path: ClassVar[bool] = False

    def __init__(self, audit: Audit) -> None:
        self.audit = audit

    def claims(self, b: int) -> bool:
        """Whether the path claims that breakpoint b is solved to its tolerance: not if a limit was reached first."""
        A, attrs = self.audit.arrays, self.audit.attrs
        return str(attrs["status_meanings"][A["status"][b]]) == "CONVERGED"

    def intervals(self) -> list[float]:
        """None; the model of a lambda that was not solved would be certified by nothing."""
        self.audit.broken += [
            f"{self.audit.where(b)}: lambda_low is no number" for b in np.flatnonzero(np.isnan(self.closed())).tolist()
        ]
        if "cell_low" in self.audit.arrays:
            lam = float(self.audit.arrays["lambda"][0])
            self.audit.broken.append(f"lambda {lam:.9g} and below: models between lambdas that were given one by one")
        return []

    def closed(self) -> np.ndarray:
        """Each lambda itself."""
        return np.asarray(self.audit.arrays["lambda_low"])

    def gap_at(self, lam: float, spread: Spread = HERE) -> float:
        """Unknown."""
        return math.nan
