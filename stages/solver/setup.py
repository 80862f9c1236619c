"""What a block method chooses once and for all: how blocks are drawn, which moves they make, what is kept. Data only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, Unpack

from gapwise.stages.solver.codes import CACHE_FIRST, GAP, MAX_GAP, PERMUTATION, SAMPLERS, STEP_RULES, StepRule
from gapwise.stages.solver.counts import NEVER
from gapwise.stages.solver.options import BlockOptions, CacheOptions
from gapwise.stages.solver.running import FlagChoices, Flags

FEATURES, DISTANCES, MARGINS = "features", "distances", "margins"
"""Names of what serves steps: `block.by_features`, `block.pairs`, `block.by_margins`."""


@dataclass(frozen=True)
class Setup:
    """The choices of a block method, from its options."""

    rule: StepRule
    """Which moves a block may make."""
    cache: CacheOptions
    sampler: int = PERMUTATION
    """How blocks are drawn: a code of `codes.SAMPLERS`."""
    degree: float = 1.0
    """The sampling weight of a block is g_i ** degree."""
    sampled: bool = True
    """Whether the tree over the gaps is kept; False where nobody reads it."""
    caching: bool = False
    """Whether labellings without weight are kept."""
    capacity: int = NEVER
    """Labellings kept per block."""
    n_best: int = 1
    """Labellings that an oracle call of an exact pass returns; 0: to be chosen (`listing`)."""
    line_search: bool = True
    """False: FW moves by 2n / (k + 2n) at step k of a lambda."""
    average: bool = False
    """Whether the state keeps a running average."""
    margins: bool = False
    """Whether margin vectors may serve the steps: pairwise ones with a cache (`block.by_margins`)."""
    cached_view: str = FEATURES
    """The view of steps between labellings that a block has, where margin vectors do not serve."""

    @classmethod
    def of(cls, options: BlockOptions, **other: Any) -> Self:
        """The choices that block methods share; `other` replaces some."""
        rule, caching = STEP_RULES[options.step], options.cache.kind != "none"
        capacity = int(options.cache.capacity) if caching else NEVER
        setup = cls(rule, options.cache, caching=caching, capacity=capacity)
        return replace(setup, **other)

    def flags(self, scale: float, exact_total: float, **other: Unpack[FlagChoices]) -> Flags:
        """The choices as compiled loops read them; `other` replaces some."""
        flags = Flags(
            sampler=self.sampler,
            kinds=self.rule.kinds,
            by_slope=self.rule.by_slope,
            line_search=self.line_search,
            cache=self.caching,
            vertex_from=CACHE_FIRST,
            rounds=1,
            skip_below=0.0,
            F=float(self.cache.F),
            nu=float(self.cache.nu),
            capacity=self.capacity,
            degree=float(self.degree),
            average=self.average,
            scale=scale,
            exact_total=exact_total,
            stop_sum=-1.0,
            stop_calls=NEVER,
        )
        return flags._replace(**other)


def sampling_of(sampler: str, degree: float = 1.0) -> dict[str, float]:
    """`sampler` and `degree` of a `Setup`: the degree counts only where blocks are drawn by their gaps."""
    code = SAMPLERS.index(sampler)
    return {"sampler": code, "degree": degree if code in (GAP, MAX_GAP) else 1.0}
