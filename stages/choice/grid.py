"""Lambdas at which several paths, or models along one path, can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gapwise.storage.mixture import AnyPath, Mixture

PER_DECADE = 16
"""Lambdas of the grid in a decade; they are powers of 10^(1/16), whatever the data, so that two grids have the same ones."""
BETWEEN = 3
"""Number of lambdas to measure between two breakpoints if the model changes there, evenly spaced in log lambda."""


def common_grid(paths: Sequence[AnyPath]) -> np.ndarray:
    """Falling lambdas at which all `paths` have a model; of single lambdas and grids, those that all of them solved.

    The grid encloses all breakpoints: it begins above the largest (from there up every path only scales its model) and ends
    below the least, but not where a path has ended already. ValueError if there is no such lambda.
    """
    if (end := end_of(paths)) is not None:
        high = max(float(path["lambda"].max()) for path in paths)
        low = min(float(path["lambda"].min()) for path in paths)
        first, last = math.ceil(PER_DECADE * math.log10(high)), math.floor(PER_DECADE * math.log10(low))
        if end > 0.0:
            last = max(last, math.ceil(PER_DECADE * math.log10(end)))
        lams = 10.0 ** (np.arange(first, last - 1, -1) / PER_DECADE)
    else:
        shared = set.intersection(*(set(np.asarray(path["lambda"]).tolist()) for path in paths))
        lams = np.array(sorted(shared, reverse=True))
    if not lams.size:
        if len(paths) == 1:
            raise ValueError(
                f"the path ended near its first lambda ({paths[0].attrs['status']}), so nothing can be chosen; give more "
                "passes or seconds, or a larger eps"
            )
        raise ValueError(
            "the paths have no lambda in common, so nothing can be compared; let all of them reach further"
        )
    return lams


def end_of(paths: Sequence[AnyPath | Mapping[str, np.ndarray]]) -> float | None:
    """The largest lambda at which one of the paths ends; 0: all go on to lambda = 0; None: their lambdas were given."""
    if not all("cell_low" in path for path in paths):
        return None
    return max(float(path["cell_low"][-1]) for path in paths)


def in_between(path: Mixture) -> np.ndarray:
    """The lambdas to measure between those of the path; empty unless the model changes there."""
    if not path.attrs["between"]:
        return np.empty(0)
    lams, shares = path.arrays["lambda"], np.arange(1, BETWEEN + 1) / (BETWEEN + 1)
    between: np.ndarray = (lams[:-1, None] * (lams[1:] / lams[:-1])[:, None] ** shares).ravel()
    return between[between >= path.arrays["cell_low"][-1]]


def different_models(path: Mixture, between: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different models of all breakpoints and the lambdas `between` them, which follow the breakpoints as rows.

    Within a cell the model does not change, so that neighbouring lambdas often have the same one, and it may be a
    breakpoint's.

    Returns
    -------
    first, of_row : int arrays, (models,) and (rows,)
        The first row that has each model, and the model of each row.
    """
    solved = path.arrays["lambda"].size
    known: dict[tuple[tuple[int, float], ...], int] = {((b, 1.0),): b for b in range(solved)}
    first, of_row = list(range(solved)), list(range(solved))
    for row, lam in enumerate(between.tolist(), start=solved):
        parts = {b: share for b, share in path(lam).items() if share != 0.0 and 0 <= b < solved}
        model = known.setdefault(tuple(sorted(parts.items())), len(first))
        if model == len(first):
            first.append(row)
        of_row.append(model)
    return np.array(first), np.array(of_row)
