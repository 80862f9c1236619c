"""The model of every lambda: which breakpoints' weights it is made of, and these weights read from ``path.zarr``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, Union

import numpy as np

from gapwise.records import Facts, Record
from gapwise.storage.backend import Location

if TYPE_CHECKING:
    from gapwise.storage.paths import SolvedPath

NAMES = ("lambda", "gap", "dual")
CELL_NAMES = ("cell_low", "cell_interval", "cell_primal", "cell_scale")


class Mixture:
    """lambda -> {breakpoint: its share in w(lambda)}, from the arrays NAMES, and CELL_NAMES if the path has cells."""

    def __init__(self, arrays: Mapping[str, np.ndarray], attrs: Facts) -> None:
        self.arrays, self.attrs = arrays, attrs

    def __call__(self, lam: float) -> dict[int, float]:
        return self._of_cells(lam) if "cell_low" in self.arrays else self._solved_only(lam)

    def _solved_only(self, lam: float) -> dict[int, float]:
        lams = self.arrays["lambda"]
        b = int(np.argmin(np.abs(np.log(lams) - np.log(lam)))) if lam > 0.0 else 0
        if not np.isclose(lams[b], lam, rtol=1e-9, atol=0.0):
            raise ValueError(
                f"weights_at: lambda {lam:g} was not solved; there are {lams.tolist()}. "
                'Only a path has the model of every lambda: path=regpath, or lam="path" in Python'
            )
        return {b: 1.0}

    def _of_cells(self, lam: float) -> dict[int, float]:
        """min(1, scale / lambda) (t_0 w_above + t_1 w_below) of the cell that lambda is in."""
        if (b := self.solved_at(lam)) is not None:
            return {b: 1.0}
        low = self.arrays["cell_low"]
        self._check(lam, float(low[-1]))
        c = int(np.argmax(low <= lam))
        k, t = int(self.arrays["cell_interval"][c]), self.arrays["cell_primal"][c]
        size = min(1.0, float(self.arrays["cell_scale"][c]) / lam)
        return {k - 1: size * float(t[0]), k: size * float(t[1])}

    def solved_at(self, lam: float) -> int | None:
        """The breakpoint at exactly this lambda, if its own gap is certified."""
        (here,) = np.nonzero(self.arrays["lambda"] == lam)
        for b in here.tolist():
            allowed = self.attrs["eps"] * (float(self.arrays["dual"][b]) if self.attrs["relative"] else 1.0)
            if float(self.arrays["gap"][b]) <= allowed:
                return int(b)
        return None

    def _check(self, lam: float, low: float) -> None:
        if not lam > 0.0 or lam < low:
            raise ValueError(f"weights_at: expected lambda > 0 and >= {low:g}, where this path ends; got {lam:g}")


def mixed(parts: Mapping[int, float], solved: Callable[[int], np.ndarray], breakpoints: int, d: int) -> np.ndarray:
    """Sum of breakpoints' weights, (d,); breakpoints outside the path are w = 0."""
    total = np.zeros(d)
    for b, share in parts.items():
        if share != 0.0 and 0 <= b < breakpoints:
            total += share * solved(b)
    return total


@dataclass(frozen=True)
class PathInMemory:
    """What `gapwise.storage.paths.SolvedPath` has, as plain arrays: loading xarray takes longer than many a solve."""

    arrays: dict[str, np.ndarray]
    """All that its path.zarr would have."""
    attrs: Record

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    @property
    def end(self) -> float | None:
        """The lambda at which a path ends; None of given lambdas, which have no model between them."""
        low = self.arrays.get("cell_low", np.empty(0))
        return float(low[-1]) if low.size else None

    def weights_at(self, lam: float) -> np.ndarray:
        """w(lambda), (d,); ValueError as `gapwise.storage.paths.SolvedPath.weights_at`."""
        weights = self.arrays["weights"]
        return mixed(Mixture(self.arrays, self.attrs)(lam), weights.__getitem__, *weights.shape)


AnyPath: TypeAlias = Union["SolvedPath", PathInMemory]
"""A solved path, of a run or in memory."""


def weights_at(path: Location) -> Callable[[float], np.ndarray]:
    """``open_path(run).weights_at`` of a path.zarr as a function, (d,) of one lambda, without xarray.

    Loading xarray takes longer than reading what this does.
    """
    from gapwise.storage.layout import array_of
    from gapwise.storage.results import weights_of

    mixture, shape = read_mixture(path), array_of(path, "weights").shape
    solved = functools.lru_cache(maxsize=4)(weights_of(path))  # lambdas in order share breakpoints
    return lambda lam: mixed(mixture(lam), solved, *shape)


def read_mixture(path: Location) -> Mixture:
    """The mixture of a path.zarr; FileNotFoundError if there is no solved path."""
    from gapwise.storage.layout import open_group
    from gapwise.storage.results import check_path, read_path

    if path.is_dir():
        check_path(path)
    stored = set(open_group(path)) if path.is_dir() else set()
    return Mixture(*read_path(path, (*NAMES, *(name for name in CELL_NAMES if name in stored))))


class ServedModel(NamedTuple):
    """The model of one lambda."""

    weights: np.ndarray
    gap: float | None
    """The duality gap, if the weights are those of one breakpoint at its own lambda; None if a cell certifies them."""
    allowed: float
    """What that gap must not exceed to certify them; infinite without a gap."""
    attrs: Record
    """Of the path."""


def model_at(path: Location, lam: float, *, as_solved: bool = False) -> ServedModel:
    """What ``open_path(run).weights_at(lam)`` returns, and what certifies it; as `weights_at`, without xarray.

    Parameters
    ----------
    path : Path or UrlPath
        A path.zarr.
    as_solved : bool
        At a breakpoint, take the weights that are stored there although its gap is too large, as evaluate does.

    Raises
    ------
    FileNotFoundError
        If there is no solved path.
    ValueError
        As `gapwise.storage.paths.SolvedPath.weights_at`; if another version of Gapwise wrote the path, or it is damaged.
    """
    from gapwise.storage.layout import array_of
    from gapwise.storage.results import weights_of

    mixture = read_mixture(path)
    arrays, attrs = mixture.arrays, mixture.attrs
    (here,) = np.nonzero(arrays["lambda"] == lam)
    parts = {int(here[0]): 1.0} if as_solved and here.size else mixture(lam)
    weights = mixed(parts, weights_of(path), *array_of(path, "weights").shape)
    if len(parts) > 1:
        return ServedModel(weights, None, np.inf, dict(attrs))
    (b,) = parts
    allowed = attrs["eps"] * (float(arrays["dual"][b]) if attrs["relative"] else 1.0)
    gap = float(arrays["gap"][b])
    return ServedModel(weights, None if math.isnan(gap) else gap, allowed, dict(attrs))
