"""What a path rule can do and what it needs, as data."""

from __future__ import annotations

from dataclasses import dataclass

OF_GIVEN = ("lambdas", "lambda", "tolerance", "warm_start")
"""Keys of `path` that only rules of given lambdas read."""
OF_PATHS = ("eps", "kappa", "lambda_min")
"""Keys of `path` that only rules which find their lambdas read."""


@dataclass(frozen=True)
class Capabilities:
    """One record a rule, the attribute `capabilities` of its class."""

    kappa: float
    """Share of eps that a breakpoint is solved to, unless `path.kappa` says otherwise."""
    kappa_apart: float | None = None
    """The same for methods whose w is not that of their dual point; None: `kappa`."""
    finds_lambdas: bool = True
    """Whether it finds its lambdas itself, rather than their being given: it solves a path."""
    exact: bool = True
    """Whether exact gaps decide. False: stale gaps do, and nothing is certified."""
    starts_exactly: bool = False
    """Whether the first lambda begins with an exact pass, because it may need no step."""
    between: bool = False
    """Whether the model changes between two breakpoints, so that losses are also measured there."""
    two_points: bool = False
    """Whether the primal and the dual point of a lambda need not be each other's."""
    takes_product: bool = False
    """Whether it has the method `use_product` (`rule.TakesProduct`), by which `walk.in_metric_of` gives it <a, b>."""
    open_ended: bool = False
    """Whether the path may be stopped anywhere, is then certified for the eps reached, and goes on to a smaller `path.eps`,
    which is no part of a run's key. `PathRule.open_end` then returns an `OpenEnded`."""
    mixes: bool = False
    """Whether it has the method `mixture` (`rule.Mixes`), by which a lambda between solved ones may take no oracle call."""
    switches: bool = False
    """Whether a method may go on with other steps at a lambda that takes many passes. A paper's rule is False: its passes
    are those of the paper's steps."""
    stale_steps: bool = False
    """Whether `path.rule=heuristic` may take its steps (`path.descend`), whose gaps are stale."""
    descends: bool = False
    """Whether it takes the steps of another rule, `path.descend`."""
    unread: tuple[str, ...] = OF_GIVEN
    """The keys of `path` that it does not read, besides `descend`."""

    @property
    def certifies_path(self) -> bool:
        """Whether it certifies lambdas that were not solved."""
        return self.finds_lambdas and self.exact
