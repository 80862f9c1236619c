"""A solved path for analysis: `open_path(run)` is an `xarray.Dataset` that also knows the model of every lambda."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import xarray as xr

from gapwise.storage.backend import Location, location
from gapwise.storage.files import zarr_store
from gapwise.storage.layout import open_group, path_specs, readable, whole
from gapwise.storage.mixture import CELL_NAMES, NAMES, Mixture, mixed
from gapwise.storage.results import CELL_SPECS, check_path


class SolvedPath(xr.Dataset):
    """``path.zarr`` as stored, together with the model between breakpoints.

    Dimensions: breakpoint, feature, block, cell (of a path), and those of the supports; ``lambda`` is a
    coordinate of breakpoint. Attributes give rule, eps, status and the other options the path was solved with.
    """

    __slots__ = ()

    def weights_at(self, lam: npt.ArrayLike) -> xr.DataArray:
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

        sizes = self.sizes["breakpoint"], self.sizes["feature"]
        rows = [mixed(mixture(value), solved, *sizes) for value in lams.ravel().tolist()]
        if lams.ndim == 0:
            return xr.DataArray(rows[0], dims="feature", coords={"lambda": float(lams)}, name="weights")
        weights = np.array(rows).reshape(-1, self.sizes["feature"])
        return xr.DataArray(weights, dims=("lambda", "feature"), coords={"lambda": lams.ravel()}, name="weights")

    def _mixture(self) -> Mixture:
        """lambda -> {breakpoint: its share in w(lambda)}."""
        names = (*NAMES, *(name for name in CELL_NAMES if name in self))
        return Mixture({name: self[name].values for name in names}, self.attrs)


def open_path(run: str | Location) -> SolvedPath:
    """The path of a run, given as a directory or URL; arrays over features, blocks and atoms are read lazily.

    Parameters
    ----------
    run : str or Location
        A run directory, as the last line of a run's output names it, or the `run_dir` of `solve`.

    Returns
    -------
    SolvedPath
        An xarray.Dataset with ``weights_at(lam)``.

    Raises
    ------
    FileNotFoundError
        If the solve stage has not made it.
    ValueError
        If another version of Gapwise wrote it, or it is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from gapwise import MulticlassSVM, solve
    >>> run = tempfile.mkdtemp() + "/run"
    >>> solved = solve(MulticlassSVM().problem(*load_iris(return_X_y=True)), 0.01, run_dir=run)
    >>> open_path(run).weights_at(0.01).shape
    (15,)
    """
    folder = location(run) / "path.zarr"
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no solved path here; run the solve stage first")
    check_path(folder)
    store, group = zarr_store(folder, read_only=True), open_group(folder)
    with readable(folder, "an array"):
        for name, array in group.arrays():
            whole(folder, name, array)
        opened = xr.open_zarr(
            store, chunks=None, consolidated=False, zarr_format=3
        )  # format 2 may hold pickled objects
        stored = opened.set_coords("lambda")
        for name in ("lambda", "gap", "dual", *(name for name in stored.data_vars if str(name).startswith("cell_"))):
            stored[name].load()
    return SolvedPath(stored.data_vars, stored.coords, stored.attrs)


def path_of(arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object]) -> SolvedPath:
    """A path in memory, of the arrays and attributes that its path.zarr would have."""
    specs = (*path_specs(arrays), *(spec for spec in CELL_SPECS if spec.name in arrays))
    variables = {spec.name: (spec.dims, arrays[spec.name], {"description": spec.doc}) for spec in specs}
    return SolvedPath(variables, attrs=dict(attrs)).set_coords("lambda")
