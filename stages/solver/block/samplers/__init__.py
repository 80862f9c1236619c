"""The samplers, one file each: how the next block is drawn (O16 3.1). A file's `SAMPLER` is the sampler.

`solver.sampler` names the file. Compiled code knows a sampler by its number in `samplers()`, `flags.sampler`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NamedTuple

from gapwise.parts import with_parts

if TYPE_CHECKING:
    import numpy as np

    from gapwise.stages.problems.protocol import Problem

__path__ = with_parts(__path__, "samplers")

SUPPLIED = ("uniform", "permutation", "gap", "max_gap")
"""The samplers whose numbers are constants, `stages.solver.sampling.UNIFORM` to `MAX_GAP`. Others follow by name."""


class Sampler(NamedTuple):
    """A way to draw blocks.

    Examples
    --------
    A sampler that goes round in circles; `order` has the numbers of the visits to come.

    >>> import numpy as np
    >>> from gapwise.stages.problems.inner import inner
    >>> from gapwise.stages.problems.protocol import PLAIN
    >>> @inner(**PLAIN)
    ... def in_turn(S, flags, rng, order, k):
    ...     return order[k]
    >>> Sampler(draw=in_turn, beforehand=lambda rng, n, steps: np.arange(steps) % n).beforehand(None, 3, 5).tolist()
    [0, 1, 2, 0, 1]
    """

    draw: Callable[..., int]
    """`inner` function (S, flags, rng, order, k) -> the k-th block of this call; -1: no block is left to move"""
    beforehand: Callable[[np.random.Generator, int, int], np.ndarray] | None = None
    """(rng, n, steps) -> blocks of so many steps, int64, where draws depend on nothing but `rng`. Then steps can fetch what
    the next ones will read. Each draw must take one number of `rng`."""
    weights: Callable[[Problem], np.ndarray] | None = None
    """(problem) -> float64, (n,): weights that never change, not all zero; `draw` finds their running sums in `S.sums`."""


def samplers() -> tuple[str, ...]:
    """Names of all samplers, in the order of their numbers."""
    names = sorted(module.name for module in iter_modules(__path__))
    return (*SUPPLIED, *(name for name in names if name not in SUPPLIED))


def sampler(name: str) -> Sampler:
    """A sampler by its name."""
    kind: Sampler = import_module(f"{__name__}.{name}").SAMPLER
    return kind
