"""What a method can do and what a structure offers, as data; those of path rules are in `path.capabilities`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MethodCapabilities:
    """Of a method with certain options: `MethodOptions.capabilities`."""

    certifies: bool = True
    """Whether it holds a feasible dual point."""
    two_points: bool = False
    """Whether it can certify the lambdas of a path, too, by a w that is not w(alpha)."""
    one_point: bool = True
    """Whether it can certify w(alpha), which some rules of paths need."""
    averaging: str = "none"
    """The average of iterates that it certifies, which is not w(alpha) either."""
    any_metric: bool = False
    """Whether it takes norms and inner products of weights from `problems.metric` only, as kernels need."""


@dataclass(frozen=True)
class StructureCapabilities:
    """Of a problem."""

    own_metric: bool
    """Whether inner products of weights are its own, as with a kernel, which has no weights one by one."""
    cone: bool
    """Whether every bound on a weight is 0 or infinite."""
