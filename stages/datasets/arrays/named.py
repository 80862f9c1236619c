"""Named arrays of an .npz file that a data set comes as."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError


def named_arrays(file: Path, names: Sequence[str], otherwise: str = "") -> dict[str, np.ndarray]:
    """The arrays of these names; DataError if one is missing or the file cannot be read. `otherwise`: what else may help."""
    expected = f"expected the array{'s'[: len(names) > 1]} {', '.join(names)}{otherwise}"
    try:
        with np.load(file, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive.files]
            if missing:
                raise DataError(f"{file}: has no array {missing[0]!r}; {expected}")
            return {name: np.asarray(archive[name]) for name in names}
    except UNREADABLE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file}: cannot be read as an .npz file ({error}); {expected}") from error
