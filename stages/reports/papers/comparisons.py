"""How a claim is decided: two variants at equal work, or the work to equal accuracy, with all seeds on both sides.

Where several seeds ran, a side is better if each of its runs is better than every run of the other; intervals that overlap
decide nothing. A single run on each side decides only what differs by `ALONE`. A claim about several lambdas holds if it
holds at each of them, and does not if it fails at one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapwise.stages.reports.curves import SMALLEST, Trace, first_at, values_at
from gapwise.stages.reports.papers.measured import Finding, Measured
from gapwise.stages.reports.suboptimality import best_dual

Measure = Callable[[Measured], Finding]

UNITS = {"oracle_calls": "calls", "passes": "passes", "seconds": "s"}
FORMS = {"oracle_calls": ",.0f", "passes": ".3g", "seconds": ".2g"}
ACCURACIES = (1.0, *(float(f"{digit}e{power}") for power in range(-1, -5, -1) for digit in (5, 2, 1)))
"""Accuracies to which work is compared, as shares of the largest dual value that is known."""
DIGITS = (2, 3, 4)
"""Significant digits of what is measured: more of them where two numbers look alike."""
ALONE = 1.25
"""Single runs decide only what differs by this factor."""
OVERLAP, CLOSE, SHORT, LARGE = (
    "seeds overlap",
    "single runs are too close",
    "runs are too short",
    "gaps are still large",
)
ONE_PART = "it was measured on one data set"
SEEDS_DIFFER = "some seeds say yes, others no"
"""Why a comparison decides nothing."""
BUDGETS = {"1/8": 0.125, "1/4": 0.25, "1/2": 0.5, "all of it": 1.0}
"""Shares of the work at which the trend of a claim that does not hold is shown."""


@dataclass(frozen=True)
class Outcome:
    """One comparison."""

    ratio: float
    """More than 1 in favour of the claim."""
    holds: bool | None
    """None: `why` says why not."""
    words: str
    why: str = ""


def undecided(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Why `decided` says None of these."""
    return CLOSE if ours.size == theirs.size == 1 else OVERLAP


def decided(ours: np.ndarray, theirs: np.ndarray, times: float = 1.0) -> tuple[float, bool | None]:
    """By how much `ours` is less than `theirs` / times, one number a seed; and whether it is, if that can be said."""
    ours = np.maximum(ours, SMALLEST) * times
    theirs = np.maximum(theirs, SMALLEST)
    ratio = float(np.median(theirs) / np.median(ours))
    margin = ALONE if ours.size == theirs.size == 1 else 1.0
    if ours.max() * margin < theirs.min():
        return ratio, True
    return ratio, False if theirs.max() * margin < ours.min() else None


def verdict(outcomes: Sequence[Outcome], sometimes: bool = False, without: Sequence[tuple[str, str]] = ()) -> Finding:
    """A claim of all `outcomes`, or of one at least; `without` has the lambdas that decide nothing, and why."""
    if not outcomes:
        return Finding(None, "these runs have no numbers there", why=_reasons([why for _, why in without] or [SHORT]))
    held = [outcome.holds for outcome in outcomes]
    if sometimes:
        holds = True if True in held else False if None not in held else None
    else:
        holds = False if False in held else True if None not in held else None
    best = max if sometimes else min
    words = [o.words + (f" ({o.why})" if o.holds is None and o.why and len(held) > 1 else "") for o in outcomes]
    words += [f"λ = {lam}: {why}" for lam, why in without]
    known = [outcome.ratio for outcome in outcomes if np.isfinite(outcome.ratio)]
    why = "" if holds is not None else _reasons([o.why for o in outcomes if o.holds is None])
    return Finding(holds, "; ".join(words), float(best(known)) if known else None, why)


def _reasons(every: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, every)))


def better_at_equal_work(
    ours: str,
    theirs: str,
    quantity: str = "gap",
    over: str = "passes",
    after: float = np.inf,
    lambdas: Sequence[str] = (),
    sometimes: bool = False,
    small: float = np.inf,
) -> Measure:
    """A claim that `ours` has less of `quantity` than `theirs` after the work that all their runs reach.

    Parameters
    ----------
    quantity : str
        A column of the gap trace, or `primal_excess`, `dual_lack`.
    over : str
        The work: `passes`, `oracle_calls` or `seconds`.
    after : float
        As much work at most. Where a run's first snapshot comes later, the lambda decides nothing.
    lambdas : sequence of str
        Those that the claim is about, as the sweep names them; empty: all.
    sometimes : bool
        Whether one lambda is enough.
    small : float
        A claim about small values: a lambda decides nothing unless one side is below this share of D*.
    """

    def measure(part: Measured) -> Finding:
        outcomes, without = [], list[tuple[str, str]]()
        for lam in part.among(lambdas):
            pair = [part.traces(name, lam) for name in (ours, theirs)]
            x = min(after, *(float(trace[over][-1]) for traces in pair for trace in traces))
            first = first_snapshot(pair, over)
            mine, other = (values_at(traces, over, x, quantity) for traces in pair)
            if x <= 0.0 or x < first * (1.0 - 1e-9) or not (np.isfinite(mine).all() and np.isfinite(other).all()):
                without.append((lam, SHORT))
                continue
            if min(np.median(mine), np.median(other)) > small * best_dual(pair[0][0]):
                without.append((lam, LARGE))
                continue
            ratio, holds = decided(mine, other)
            how = "" if holds else trend(pair, over, x, quantity)
            words = f"λ = {lam}: {against(mine, other)} after {amount(x, over)}{how}"
            outcomes.append(Outcome(ratio, holds, words, undecided(mine, other)))
        if not part.among(lambdas):
            return Finding(None, "these runs have no numbers there", why="no such λ was run")
        return verdict(outcomes, sometimes, without)

    return measure


def not_worse(ours: str, theirs: str, quantity: str = "gap", over: str = "passes") -> Measure:
    """A claim that `ours` has no more of `quantity` than `theirs` after equal work: fails if all seeds have more."""

    def judge(mine: np.ndarray, other: np.ndarray) -> tuple[float, bool | None]:
        ratio, worse = 1.0 / decided(other, mine)[0], decided(other, mine)[1]
        return ratio, False if worse else True if ratio >= 1.0 else None

    return _at_equal_work(judge, ours, theirs, quantity, over)


def alike_at_equal_work(ours: str, theirs: str, quantity: str, over: str, lambdas: Sequence[str] = ()) -> Measure:
    """A claim that both have as much of `quantity` after equal work: their medians are within a factor of two."""

    def judge(mine: np.ndarray, other: np.ndarray) -> tuple[float, bool | None]:
        one = comparable(float(np.median(mine)), float(np.median(other)), "")
        return one.ratio or np.nan, one.holds

    return _at_equal_work(judge, ours, theirs, quantity, over, lambdas)


def _at_equal_work(
    judge: Callable[[np.ndarray, np.ndarray], tuple[float, bool | None]],
    ours: str,
    theirs: str,
    quantity: str,
    over: str,
    lambdas: Sequence[str] = (),
) -> Measure:
    """`judge` of `quantity`, a number a seed, after the work that all runs of both reach."""

    def measure(part: Measured) -> Finding:
        outcomes, without = [], list[tuple[str, str]]()
        for lam in part.among(lambdas):
            pair = [part.traces(name, lam) for name in (ours, theirs)]
            x = min(float(trace[over][-1]) for traces in pair for trace in traces)
            mine, other = (values_at(traces, over, x, quantity) for traces in pair)
            if np.isfinite([*mine, *other]).all():
                words = f"λ = {lam}: {against(mine, other)} after {amount(x, over)}"
                outcomes.append(Outcome(*judge(mine, other), words, undecided(mine, other)))
            else:
                without.append((lam, SHORT))
        return verdict(outcomes, without=without)

    return measure


def trend(pair: Sequence[Sequence[Trace]], over: str, x: float, quantity: str) -> str:
    """The ratio of the medians after an eighth, a quarter, half and all of the work `x`, in words; empty without two.

    Before the first snapshot of a run, and where a side has no finite value, nothing is compared.
    """
    ratios = {}
    for name, share in BUDGETS.items():
        mine, other = (np.median(values_at(traces, over, share * x, quantity)) for traces in pair)
        if share * x >= first_snapshot(pair, over) * (1.0 - 1e-9) and np.isfinite([mine, other]).all():
            ratios[name] = float(other / mine)
    if len(ratios) < 2:
        return ""
    steps = np.diff([*ratios.values()])
    way = "rising" if (steps > 0.0).all() else "falling" if (steps < 0.0).all() else "neither rising nor falling"
    *names, last = ratios
    return (
        f" (ratio {', '.join(f'{ratio:.2g}' for ratio in ratios.values())} after {', '.join(names)} and {last}: {way})"
    )


def first_snapshot(pair: Sequence[Sequence[Trace]], over: str) -> float:
    """The work after which every run has a snapshot besides that of its start."""
    return max(float(trace[over][min(1, len(trace[over]) - 1)]) for traces in pair for trace in traces)


def less_work(
    ours: str,
    theirs: str,
    quantity: str = "gap",
    over: str = "passes",
    times: float = 1.0,
    lambdas: Sequence[str] = (),
) -> Measure:
    """A claim that `ours` needs less work than `theirs`, by more than `times`, to the finest accuracy that both reach.

    Where they reach none together, what `theirs` spent without reaching the coarsest bounds the ratio from below; if that is
    not enough, the lambda decides nothing.
    """

    def measure(part: Measured) -> Finding:
        outcomes, without = [], list[tuple[str, str]]()
        for lam in part.among(lambdas):
            mine, other = (part.traces(name, lam) for name in (ours, theirs))
            work = {
                level: [works_to(traces, quantity, over, level) for traces in (mine, other)] for level in ACCURACIES
            }
            both = [level for level, (a, b) in work.items() if np.isfinite([*a, *b]).all() and min(*a, *b) > 0.0]
            if both:
                a, b = work[both[-1]]
                said = f"{amount(np.median(a), over)} against {amount(np.median(b), over)} to {both[-1]:g} D*"
                outcomes.append(Outcome(*decided(a, b, times), f"λ = {lam}: {said}", undecided(a, b)))
                continue
            a, spent = work[ACCURACIES[0]][0], float(np.median([trace[over][-1] for trace in other]))
            if np.isfinite(a).all() and a.min() > 0.0 and spent / a.max() > times:
                said = f"{amount(np.median(a), over)} against more than {amount(spent, over)} to {ACCURACIES[0]:g} D*"
                outcomes.append(Outcome(spent / float(a.max()) / times, True, f"λ = {lam}: {said}"))
            else:
                without.append((lam, SHORT))
        return verdict(outcomes, without=without)

    return measure


def works_to(traces: Sequence[Trace], quantity: str, over: str, level: float) -> np.ndarray:
    """For each trace the work until `quantity` is at most `level` times the largest known dual value; inf if it never is."""
    return np.array([first_at(trace, over, level * best_dual(trace), quantity) for trace in traces])


def work_to(traces: Sequence[Trace], quantity: str, over: str, level: float) -> float:
    """The median of `works_to`; inf if half of them are."""
    return float(np.quantile(works_to(traces, quantity, over, level), 0.5, method="higher"))


def stronger_at_larger_lambda(ours: str, theirs: str, quantity: str = "gap", over: str = "passes") -> Measure:
    """A claim that the ratio of `theirs` to `ours` after equal work rises with lambda, to more than 1."""

    def measure(part: Measured) -> Finding:
        ratios_at = []
        for lam in part.lambdas:
            pair = [part.traces(name, lam) for name in (ours, theirs)]
            x = min(float(trace[over][-1]) for traces in pair for trace in traces)
            mine, other = (np.median(values_at(traces, over, x, quantity)) for traces in pair)
            if np.isfinite([mine, other]).all():
                ratios_at.append((float(pair[0][0]["lambda"][0]), float(other / mine), lam))
        if len(ratios_at) < 2:
            return Finding(None, "one λ only", why="one λ only")
        ratios_at.sort()
        ratios = np.array([ratio for _, ratio, _ in ratios_at])
        words = [f"a ratio of {ratio:.2g} at λ = {lam}" for _, ratio, lam in ratios_at]
        steps = ratios[1:] / ratios[:-1]
        rises, falls = bool((steps > 1.0).all()), bool(ratios[-1] < ratios[0])
        holds = False if falls or ratios[-1] <= 1.0 else True if rises else None
        why = "" if holds is not None else "it rises between some λ's only"
        return Finding(holds, "; ".join(words), float(steps.min()), why)

    return measure


def comparable(ours: float, theirs: float, words: str, factor: float = 2.0) -> Finding:
    """A claim that two amounts are comparable: neither is `factor` times the other; NaN decides nothing."""
    if np.isnan([ours, theirs]).any():
        return Finding(None, words, why=SHORT)
    ratio = max(ours, theirs) / max(min(ours, theirs), SMALLEST)
    return Finding(bool(ratio <= factor), words, float(factor / ratio))


def all_of(measures: Mapping[str, Measure]) -> Measure:
    """A claim of several comparisons, all of which have to hold; each has its own words."""
    return lambda part: verdict(_outcomes(measures, part))


def any_of(measures: Mapping[str, Measure]) -> Measure:
    """A claim of several comparisons, one of which is enough."""
    return lambda part: verdict(_outcomes(measures, part), sometimes=True)


def _outcomes(measures: Mapping[str, Measure], part: Measured) -> list[Outcome]:
    measured = {name: measure(part) for name, measure in measures.items()}
    return [
        Outcome(np.nan if one.ratio is None else one.ratio, one.holds, f"{name}: {one.measured}", one.why)
        for name, one in measured.items()
    ]


def on_one_part(findings: Mapping[str, Finding]) -> Outcome:
    """A sentence that says "sometimes": it holds if it does on one of the parts."""
    finding = verdict(
        [Outcome(one.ratio or np.nan, one.holds, "", one.why) for one in findings.values()], sometimes=True
    )
    return Outcome(np.nan if finding.ratio is None else finding.ratio, finding.holds, "", finding.why)


def neither_always(findings: Mapping[str, Finding]) -> Outcome:
    """There is no consistent difference: none of two sides is better by `ALONE`, at equal work, on every part."""
    ratios = [one.ratio for one in findings.values() if one.ratio is not None]
    if len(ratios) < 2:
        return Outcome(np.nan, None, "", ONE_PART)
    least = max(min(ratios), min(1.0 / ratio for ratio in ratios))
    return Outcome(ALONE / least, least <= ALONE, "")


def stronger_than_on(part: str) -> Callable[[Mapping[str, Finding]], Outcome]:
    """A ratio is larger on every other part than on `part`."""

    def together(findings: Mapping[str, Finding]) -> Outcome:
        ratios = {name: one.ratio for name, one in findings.items() if one.ratio is not None}
        others = [ratio for name, ratio in ratios.items() if name != part]
        if part not in ratios or not others:
            return Outcome(np.nan, None, "", ONE_PART)
        ratio = min(others) / ratios[part]
        return Outcome(ratio, ratio > 1.0, "")

    return together


def spread(values: np.ndarray, digits: int = DIGITS[0]) -> str:
    """The median of the seeds, and the least and the largest where there are several."""
    middle = f"{np.median(values):.{digits}g}"
    return middle if values.size == 1 else f"{middle} [{values.min():.{digits}g}, {values.max():.{digits}g}]"


def against(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Both spreads, with as many digits as tell their medians apart."""
    for digits in DIGITS:
        if f"{np.median(ours):.{digits}g}" != f"{np.median(theirs):.{digits}g}":
            break
    return f"{spread(ours, digits)} against {spread(theirs, digits)}"


def amount(work: float, over: str) -> str:
    """Work with its unit."""
    return f"{work:{FORMS[over]}} {UNITS[over]}"
