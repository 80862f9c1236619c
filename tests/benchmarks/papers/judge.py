"""Whether a sentence holds, from the values in values.csv alone.

Seeds that overlap decide nothing, and a single run on each side decides only what differs by `ALONE`. What a sentence says
holds on a part if it holds in every row of it; `one` and `holds_on` in claims.yaml say where less is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from measure import Claim, comparisons

ALONE = 1.25
"""Single runs decide only what differs by this factor."""
SMALLEST = 1e-16
"""Gaps below this are rounding."""
OVERLAP, CLOSE = "seeds overlap", "single runs are too close"


@dataclass(frozen=True)
class Verdict:
    """Of a sentence."""

    holds: bool | None
    """None: these runs do not decide it."""
    numbers: tuple[float, ...]
    """One a row of the first comparison: theirs / ours, above 1 in favour of the sentence; of one method its own values."""
    parts: Mapping[str, bool | None]
    """What each part says."""
    why: tuple[str, ...]
    """Why rows decide nothing."""


def numbers(cell: str) -> np.ndarray:
    """The values in a cell, one a seed."""
    return np.array(cell.split(), float)


def every(held: Iterable[bool | None]) -> bool | None:
    """What holds in all; None if that is open, or if there is nothing."""
    some = [*held]
    return False if False in some else True if some and None not in some else None


def any_of(held: Iterable[bool | None]) -> bool | None:
    """What holds in one at least."""
    opposite = every(None if one is None else not one for one in held)
    return None if opposite is None else not opposite


def most(held: Iterable[bool | None]) -> bool | None:
    """What holds in more than half."""
    some = [*held]
    return next((one for one in (True, False) if 2 * some.count(one) > len(some)), None)


ACROSS = {"all": every, "some": any_of, "most": most}


def less(ours: np.ndarray, theirs: np.ndarray, by: float = 1.0) -> bool | None:
    """Whether each of `ours` is less than each of `theirs` / `by`; False if it is the other way round."""
    ours, theirs = np.maximum(ours, SMALLEST) * by, np.maximum(theirs, SMALLEST)
    margin = ALONE if ours.size == theirs.size == 1 else 1.0
    if ours.max() * margin < theirs.min():
        return True
    return False if theirs.max() * margin < ours.min() else None


def not_more(ours: np.ndarray, theirs: np.ndarray) -> bool | None:
    """Whether `ours` are no more: not if all of them are, and yes if their median is not."""
    return False if less(theirs, ours) else True if np.median(ours) <= np.median(theirs) else None


def alike(ours: np.ndarray, theirs: np.ndarray, factor: float) -> bool | None:
    """Whether the medians are within a factor; not if no two seeds are."""
    ratio = np.median(theirs) / np.median(ours)
    if max(ratio, 1.0 / ratio) <= factor:
        return True
    return False if theirs.min() > factor * ours.max() or ours.min() > factor * theirs.max() else None


def within(ours: np.ndarray, low: float, high: float) -> bool | None:
    """Whether the value of every seed is in between; not if none is."""
    inside = (low <= ours) & (ours <= high)
    return True if inside.all() else None if inside.any() else False


def rises(ratios: Sequence[float]) -> bool | None:
    """Whether ratios, from the largest lambda to the least, rise with lambda to more than 1."""
    if len(ratios) < 2:
        return None
    if ratios[0] < ratios[-1] or ratios[0] <= 1.0:
        return False
    return True if all(larger > smaller for larger, smaller in pairwise(ratios)) else None


def inconsistent(ratios: pd.Series) -> bool | None:
    """Whether no side is better by `ALONE` on all parts."""
    return None if ratios.size < 2 else bool(max(ratios.min(), (1.0 / ratios).min()) <= ALONE)


def stronger_than(ratios: pd.Series, part: str) -> bool | None:
    """Whether a ratio is larger on every other part than on `part`."""
    others = ratios.drop(part, errors="ignore")
    return None if part not in ratios or others.empty else bool(others.min() > ratios[part])


def of_row(one: Claim, ours: np.ndarray, theirs: np.ndarray) -> bool | None:
    """What two sides say by themselves; None for relations between several rows."""
    limits = one.get("limits")
    match one.get("relation", "less"):
        case "less":
            return less(ours, theirs, limits or 1.0)
        case "not_more":
            return not_more(ours, theirs)
        case "alike":
            return alike(ours, theirs, limits)
        case "within":
            return within(ours, *limits)
    return None


def judge(claim: Claim, rows: pd.DataFrame) -> Verdict:
    """The verdict on a claim from its rows of values.csv, whose cells are text; rows with a note decide nothing."""
    noted = rows["note"] != ""
    used, why = rows[~noted].copy(), list(rows["note"][noted])
    relation = claim.get("relation", "less")
    shown, held, ratios = list[float](), list[bool | None](), list[float]()
    for row in used.to_dict("records"):
        ours, theirs = numbers(row["our_values"]), numbers(row["their_values"])
        one = next(
            one for one in comparisons(claim) if one["measure"] == row["measure"] and row["ours"] in one["compare"]
        )
        held.append(of_row(one, ours, theirs))
        sides = [max(float(np.median(side)), SMALLEST) for side in (ours, theirs) if side.size]
        ratios.append(sides[-1] / sides[0])
        if one is claim:
            shown += ours.tolist() if relation == "within" else ratios[-1:]
        if held[-1] is None and relation in ("less", "not_more", "alike"):
            why.append(CLOSE if ours.size == theirs.size == 1 else OVERLAP)
    used["holds"], used["ratio"] = pd.Series(held, used.index, object), pd.Series(ratios, used.index, float)
    parts = dict.fromkeys(map(str, rows["part"]))
    for part, some in used.groupby("part", sort=False):
        groups = some.groupby(claim["one"])["holds"] if "one" in claim else [("", some["holds"])]
        held_there = any_of(every(group) for _, group in groups)
        parts[str(part)] = rises(some["ratio"].tolist()) if relation == "rises" else held_there
    of_parts = used.groupby("part", sort=False)["ratio"].median()
    if relation in ("inconsistent", "stronger_than"):
        holds = inconsistent(of_parts) if relation == "inconsistent" else stronger_than(of_parts, claim["limits"])
        parts = dict.fromkeys(parts, holds)
    else:
        holds = ACROSS[claim.get("holds_on", "all")](parts.values())
    return Verdict(holds, tuple(shown), parts, tuple(dict.fromkeys(why)) if holds is None else ())
