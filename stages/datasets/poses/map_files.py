"""Files of score maps: .npz, HDF5, or a folder that zarr opens as a group."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import UNREADABLE, DataError

HDF5 = (".h5", ".hdf5")


def arrays_of(path: Path) -> Facts:
    """Arrays by name; those of HDF5 and zarr are read when they are indexed. DataError if the file is neither."""
    try:
        if path.is_dir():
            import zarr

            return dict(zarr.open_group(path, mode="r").arrays())
        if path.suffix in HDF5:
            try:
                import h5py
            except ImportError as error:
                raise DataError(
                    f'{path}: HDF5 needs h5py, which is not installed; pip install "gapwise[hdf5]"'
                ) from error
            file = h5py.File(path, "r")
            return {name: file[name] for name in file if isinstance(file[name], h5py.Dataset)}
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except UNREADABLE as error:
        raise DataError(f"{path}: cannot be read as .npz, HDF5 ({', '.join(HDF5)}) or a zarr group: {error}") from error


def parts_of(name: str, path: Path) -> dict[str, Path]:
    """The file, or all files of the folder, by names that begin with `name` and do not depend on where it is."""
    if not path.is_dir():
        return {name: path}
    return {f"{name}/{part.relative_to(path).as_posix()}": part for part in sorted(path.rglob("*")) if part.is_file()}


def words(array: np.ndarray) -> list[str]:
    """The strings of an array, which HDF5 keeps as bytes."""
    return [word.decode() if isinstance(word, bytes) else str(word) for word in np.asarray(array[...]).tolist()]
