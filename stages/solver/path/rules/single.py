"""`path.rule=single` (`path=single`): one given lambda, `path.lambda`."""

from __future__ import annotations

from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.path.capabilities import OF_PATHS, Capabilities
from gapwise.stages.solver.path.given import Given


class Single(Given):
    """`path.lambda`."""

    capabilities = Capabilities(
        kappa=0.9, finds_lambdas=False, two_points=True, unread=("lambdas", "warm_start", *OF_PATHS)
    )

    @classmethod
    def check(cls, path: PathOptions) -> None:
        """There is nothing more to check than for every path."""

    @classmethod
    def lambdas(cls, path: PathOptions) -> tuple[float, ...]:
        """The one lambda."""
        return (path.lam,)


RULE = Single
