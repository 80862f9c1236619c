"""Training data of an estimator, and a part of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gapwise.stages.datasets.arrays.rows import Csr

FAR = 1e3
"""Standard deviations that the mean of a column may be from 0 without a warning."""


@runtime_checkable
class Samples(Protocol):
    """Inputs or outputs as users have them, one per block: a list, an array, a column of a table."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> object: ...

    def __iter__(self) -> Iterator[object]: ...


class Data(NamedTuple):
    """Inputs and their true outputs, one of each per block, in the form that the estimator's `_checked` gives them.

    `weight` (n,): weights of the blocks, > 0; None: all are 1.
    """

    x: Any
    y: Any
    weight: np.ndarray | None = None


def part(data: Data, chosen: np.ndarray) -> Data:
    """The chosen blocks."""
    if chosen.all():
        return data
    rows = np.flatnonzero(chosen)

    def of(some: Any) -> Any:
        if isinstance(some, Csr):
            return some.taken(rows)
        return some[rows] if isinstance(some, np.ndarray) else [some[i] for i in rows]

    return Data(of(data.x), of(data.y), None if data.weight is None else data.weight[rows])


def weighted(data: Data, sample_weight: npt.ArrayLike | None) -> Data:
    """The data with these weights of blocks; those of weight 0 are left out.

    Raises
    ------
    ValueError
        If there is no finite weight >= 0 for each block, or none above 0.
    """
    if sample_weight is None:
        return data
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight: expected numbers: {error}") from error
    if weight.shape != (len(data.y),):
        raise ValueError(f"sample_weight: expected {len(data.y)} numbers, one for each block, got shape {weight.shape}")
    bad = ~((weight >= 0) & (weight < np.inf))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"sample_weight: entry {k} is {weight[k]:g}; expected a number >= 0")
    if not weight.any():
        raise ValueError("sample_weight: all weights are zero; expected one above zero at least")
    return part(data._replace(weight=weight), weight > 0)


def same_length(X: Samples, y: Samples, noun: str) -> None:
    """ValueError unless there is an output for every input, and at least one."""
    for name, values in (("X", X), ("y", y)):
        if isinstance(values, str) or not isinstance(values, Samples):
            raise ValueError(f"{name}: expected a list of {noun}, got {type(values).__name__}")
    if len(X) != len(y):
        raise ValueError(f"y: expected one entry for each of the {len(X)} {noun} of X, got {len(y)}")
    if len(X) == 0:
        raise ValueError(f"X: expected at least one of the {noun}, got none")


def far_from_zero(x: np.ndarray) -> tuple[int, float] | None:
    """The column of x, (n, D), whose mean is the most standard deviations from 0, and how many, if more than `FAR`.

    About a thousand rows are looked at. Constant columns count for nothing: they are an intercept.
    """
    some = np.asarray(x[:: max(1, len(x) // 1_000)], float)
    with np.errstate(over="ignore", invalid="ignore"):  # values that are too large are refused later, by their names
        mean, deviation = np.abs(some.mean(axis=0)), some.std(axis=0)
        ratios = np.divide(mean, deviation, out=np.zeros_like(mean), where=deviation > np.finfo(x.dtype).eps * mean)
    furthest = int(np.argmax(ratios))
    return (furthest, float(ratios[furthest])) if ratios[furthest] > FAR else None


def warn_of_far_columns(who: str, x: np.ndarray, names: np.ndarray | None) -> None:
    """Warn of a column of x, shape (n, D), that is far from 0; `names` are those of the columns."""
    if far := far_from_zero(x):
        column, ratio = far
        warnings.warn(
            f"{who}: column {column if names is None else repr(names[column])} of X has a mean of {ratio:.1e} standard "
            "deviations; weights are penalised about 0, so take the means away first, for instance by "
            "make_pipeline(StandardScaler(), ...)",
            stacklevel=3,
        )
