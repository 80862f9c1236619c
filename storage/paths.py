"""A solved path for analysis: `open_path(run)` is an `xarray.Dataset` that also knows the model of every lambda."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from storage.backend import Location, backend, location
from storage.format import check_format


class SolvedPath(xr.Dataset):
    """``path.zarr`` as stored, together with the model between breakpoints.

    Dimensions: breakpoint, feature, block, cell (of a path), and those of the supports; ``lambda`` is a
    coordinate of breakpoint. Attributes give rule, eps, status and the other options the path was solved with.
    """

    __slots__ = ()

    def weights_at(self, lam: Any) -> xr.DataArray:
        """w(lambda): the weights that the path certifies, at any lambda and not only at breakpoints.

        At a lambda that was solved to its tolerance these are the weights stored there.

        Parameters
        ----------
        lam : float or array-like
            Regularisation, > 0.

        Returns
        -------
        xarray.DataArray
            (feature,) for one lambda, (lambda, feature) for several; ``lambda`` is its coordinate.

        Raises
        ------
        ValueError
            Below the lambda at which the path ends; on a grid, at a lambda that was not solved.
        """
        lams = np.asarray(lam, dtype=float)
        mixture = self._mixture()

        @functools.lru_cache(maxsize=4)  # lambdas in order share breakpoints
        def solved(b: int) -> np.ndarray:
            return np.asarray(self["weights"].isel(breakpoint=b).values)

        rows = [self._mixed(mixture(value), solved) for value in lams.ravel().tolist()]
        if lams.ndim == 0:
            return xr.DataArray(rows[0], dims="feature", coords={"lambda": float(lams)}, name="weights")
        weights = np.array(rows).reshape(-1, self.sizes["feature"])
        return xr.DataArray(weights, dims=("lambda", "feature"), coords={"lambda": lams.ravel()}, name="weights")

    def _mixed(self, parts: dict[int, float], solved: Callable[[int], np.ndarray]) -> np.ndarray:
        """Sum of breakpoints' weights, (d,); breakpoints outside the path are w = 0."""
        total = np.zeros(self.sizes["feature"])
        for b, share in parts.items():
            if share != 0.0 and 0 <= b < self.sizes["breakpoint"]:
                total += share * solved(b)
        return total

    def _mixture(self) -> Callable[[float], dict[int, float]]:
        """lambda -> {breakpoint: its share in w(lambda)}."""
        return self._of_cells if "cell_low" in self else self._solved_only

    def _solved_only(self, lam: float) -> dict[int, float]:
        lams = self["lambda"].values
        b = int(np.argmin(np.abs(np.log(lams) - np.log(lam)))) if lam > 0.0 else 0
        if not np.isclose(lams[b], lam, rtol=1e-9, atol=0.0):
            raise ValueError(
                f"weights_at: lambda {lam:g} was not solved; there are {lams.tolist()}. Use path=regpath for all lambdas"
            )
        return {b: 1.0}

    def _of_cells(self, lam: float) -> dict[int, float]:
        """min(1, scale / lambda) (t_0 w_above + t_1 w_below) of the cell that lambda is in."""
        if (b := self._solved_at(lam)) is not None:
            return {b: 1.0}
        low = self["cell_low"].values
        self._check(lam, float(low[-1]))
        c = int(np.argmax(low <= lam))
        k, t = int(self["cell_interval"][c]), self["cell_primal"].values[c]
        size = min(1.0, float(self["cell_scale"][c]) / lam)
        return {k - 1: size * float(t[0]), k: size * float(t[1])}

    def _solved_at(self, lam: float) -> int | None:
        """The breakpoint at exactly this lambda, if its own gap is certified."""
        (here,) = np.nonzero(self["lambda"].values == lam)
        for b in here.tolist():
            allowed = self.attrs["eps"] * (float(self["dual"][b]) if self.attrs["relative"] else 1.0)
            if float(self["gap"][b]) <= allowed:
                return int(b)
        return None

    def _check(self, lam: float, low: float) -> None:
        if not lam > 0.0 or lam < low:
            raise ValueError(f"weights_at: expected lambda > 0 and >= {low:g}, where this path ends; got {lam:g}")


def open_path(run: str | Location) -> SolvedPath:
    """The path of a run, given as a directory or URL; arrays over features, blocks and atoms are read lazily.

    Raises
    ------
    FileNotFoundError
        If the solve stage has not made it.
    ValueError
        If another version of Gapwise wrote it.
    """
    folder = location(run) / "path.zarr"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no solved path here; run the solve stage first")
    store = backend(folder).zarr_store(folder, read_only=True)
    stored = xr.open_zarr(store, chunks=None, consolidated=False).set_coords("lambda")
    check_format(stored.attrs, folder)
    for name in ("lambda", "gap", "dual", *(name for name in stored.data_vars if str(name).startswith("cell_"))):
        stored[name].load()
    return SolvedPath(stored.data_vars, stored.coords, stored.attrs)
