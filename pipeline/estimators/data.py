"""Training data of an estimator, and a part of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gapwise.stages.datasets.arrays.rows import is_sparse

FAR = 1e3
"""Standard deviations that the mean of a column may be from 0 without a warning."""
LARGE = 1e2
"""Times the range that half of the columns have at most, which any other may have without a warning."""


class Samples(Protocol):
    """Inputs or outputs as users have them, one per block: a list, an array, a column of a table.

    They are taken by position, never by the label of an index.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> object: ...

    def __iter__(self) -> Iterator[object]: ...


class Data(NamedTuple):
    """Inputs and their true outputs, one of each per block, in the form that the estimator's `_checked` gives them.

    `weight` (n,): weights of the blocks, > 0; None: all are 1. Only their ratios matter.
    """

    x: Any
    y: Any
    weight: np.ndarray | None = None

    @property
    def relative(self) -> np.ndarray | None:
        """The weights divided by their mean."""
        return None if self.weight is None else self.weight / self.weight.mean()


def part(data: Data, chosen: np.ndarray) -> Data:
    """The chosen blocks, by bool (n,) or by their numbers in any order."""
    if chosen.dtype == bool and chosen.all():
        return data
    rows = np.arange(len(data.y))[chosen]

    def of(some: Any) -> Any:
        return some[rows] if isinstance(some, np.ndarray) or is_sparse(some) else [some[i] for i in rows]

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
    weight = np.ldexp(weight, -np.frexp(weight.max())[1])  # exact, and sums of the largest numbers stay finite
    return part(data._replace(weight=weight), weight > 0)


def listed(name: str, values: object, noun: str) -> list[Any]:
    """The entries of a container by position, of a DataFrame its rows; ValueError if the argument `name` is none."""
    if hasattr(values, "iloc"):  # a table of pandas, which others need not have loaded
        table: Any = values
        return [table.iloc[i] for i in range(len(table))]
    scalar = isinstance(values, str | Mapping | Set) or (isinstance(values, np.ndarray) and values.ndim == 0)
    if scalar or not isinstance(values, Iterable):
        raise ValueError(f"{name}: expected a list of {noun}, got {type(values).__name__}")
    return list(values)


def pairs(X: Samples, y: Samples, noun: str) -> Data:
    """Inputs with their outputs; ValueError unless there is an output for every input, and at least one."""
    data = Data(listed("X", X, noun), listed("y", y, noun))
    if len(data.x) != len(data.y):
        raise ValueError(f"y: expected one entry for each of the {len(data.x)} {noun} of X, got {len(data.y)}")
    if not data.x:
        raise ValueError(f"X: expected at least one of the {noun}, got none")
    return data


def cautions_of_columns(x: np.ndarray, names: np.ndarray | None, bias: float | None) -> Iterator[str]:
    """What is to be said of columns of x, shape (n, D), that are far from 0 or far larger than others; `names` are theirs.

    `bias` is the value of an intercept's column, which may be far larger than all.

    About a thousand rows are looked at. Constant columns count for nothing: they are an intercept.
    """
    some = np.asarray(x[:: max(1, len(x) // 1_000)], float)
    with np.errstate(over="ignore", invalid="ignore"):  # values that are too large are refused later, by their names
        mean, deviation = np.abs(some.mean(axis=0)), some.std(axis=0)
        varies = np.flatnonzero(deviation > np.finfo(x.dtype).eps * mean)
        ratios, ranges = mean[varies] / deviation[varies], np.ptp(some[:, varies], axis=0)
    called = varies if names is None else [repr(name) for name in names[varies]]
    remedy = "for instance by make_pipeline(StandardScaler(), ...)"
    if ratios.max(initial=0.0) > FAR:
        furthest = int(np.argmax(ratios))
        yield (
            f"column {called[furthest]} of X has a mean of {ratios[furthest]:.1e} standard deviations; weights are "
            f"penalised about 0, so take the means away first, {remedy}"
        )
    largest, usual = ranges.max(initial=0.0), np.sort(ranges)[: (ranges.size + 1) // 2].max(initial=0.0)
    if largest > LARGE * usual:
        yield (
            f"column {called[int(np.argmax(ranges))]} of X has a range of {largest:.1e}, half of the columns have at most "
            f"{usual:.1e}; solving takes far longer, so bring columns to one scale first, {remedy}"
        )
    elif bias is not None and 0.0 < largest < bias / LARGE:
        yield (
            f"the columns of X have a range of at most {largest:.1e}, far less than the intercept's column of {bias:g}; "
            f"solving takes far longer, so bring columns to that scale first, {remedy}"
        )
