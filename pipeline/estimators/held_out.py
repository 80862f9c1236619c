"""Which blocks a fit holds out to choose lambda on: one part of them, or every block once, in folds."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from gapwise.pipeline.estimators.choices import is_number, refuse

FEWEST_FOLDS = 2


def held_out(validation: float | int | None, n: int, groups: np.ndarray | None, seed: int) -> list[np.ndarray]:
    """(n,) bool each: the blocks that are held out, all in one part or in folds; [] if none are, or none can be.

    Parameters
    ----------
    validation : float, int or None
        A share between 0 and 1, a number of folds >= 2, or None.
    groups : (n,) array or None
        Classes of blocks that every part should have in the same shares; None: any blocks.
    """
    if validation is None:
        return []
    if not isinstance(validation, Integral) or validation < FEWEST_FOLDS:
        chosen = part_held_out(validation, n, groups, seed)
        return [chosen] if chosen.any() and not chosen.all() else []
    count = int(validation)
    if count > n:
        raise refuse("validation", count, f"a share, or at most as many folds as blocks, {n}")
    order = np.random.default_rng(seed).permutation(n)
    if groups is not None:
        order = order[np.argsort(groups[order], kind="stable")]
    fold_of = np.empty(n, np.int64)
    fold_of[order] = np.arange(n) % count
    return [fold_of == number for number in range(count)]


def part_held_out(share: float, n: int, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """(n,) bool: this share of the blocks, by groups; if that rounds to none, one each of some groups of several blocks."""
    if not (is_number(share) and 0 < share < 1):
        raise refuse("validation", share, "a share between 0 and 1, a number of folds >= 2, or None")
    chosen = np.zeros(n, bool)
    order = np.random.default_rng(seed).permutation(n)
    parts = [order] if groups is None else [order[groups[order] == g] for g in np.unique(groups)]
    for group in parts:
        chosen[group[: round(share * group.size)]] = True
    if not chosen.any():
        firsts = [group[0] for group in parts if group.size > 1]
        chosen[order[np.isin(order, firsts)][: round(share * n)]] = True
    return chosen
