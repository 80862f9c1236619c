"""Features whose products floats can hold: a check of the largest, before anything is solved.

Let s be the size of a feature. Curvatures ||B_i delta||^2 grow as s^2; the regulariser, and ||w||^2 as its inverse, too;
and the cells of a path multiply and square such norms. So s^4 and 1 / s^4 have to be normal float64 numbers, with room for
sums over d, n and 1 / eps: `LARGEST` and its inverse. Structures that keep features or Gram matrices as float32 need the
same of s^2 there: `LARGEST_SINGLE`. The least of all features may be as small as it likes: beside larger ones it counts
for nothing, exactly as it does in float64. So what may not be too small is the largest of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from gapwise.stages.problems.capabilities import Capabilities

LARGEST, LARGEST_SINGLE = 1e60, 1e15
"""Largest size of a feature; one over it is the least size of the largest feature."""

LARGEST_LOSS = 1e12
"""Largest entry of a cost matrix: in sums with a larger loss, rounding would exceed any eps that suits the others."""


class Scale:
    """Watches the features of one structure, array by array.

    Parameters
    ----------
    structure : str
        The name that messages begin with.
    part : Capabilities
        Which arrays hold features, and whether they are kept as float32.
    """

    def __init__(self, structure: str, part: Capabilities) -> None:
        self.structure, self.names = structure, part.features
        self.most = LARGEST_SINGLE if part.single else LARGEST
        self.largest: dict[str, float] = {}

    def see(self, arrays: Mapping[str, np.ndarray], block: int | None = None) -> None:
        """Look at arrays of one block, or of a whole split; ValueError names block, row and feature of one out of range.

        A feature that is not finite is left to the structure, unless a conversion to float32 has made it infinite.
        """
        for name in (name for name in self.names if np.size(arrays.get(name, ()))):
            values = np.asarray(arrays[name])
            largest = max(float(values.max()), -float(values.min())) if values.dtype.kind in "fi" else 1.0  # or codes
            if self.most < largest < math.inf:
                place = _place(arrays, name, block, int(np.argmax(np.abs(values) == largest)))
                raise ValueError(f"{self.structure}: {place}: {out_of_range(name, largest, self.most)}")
            if not math.isnan(largest):
                self.largest[name] = max(largest, self.largest.get(name, 0.0))

    def end(self) -> None:
        """ValueError if all features of a split are too small; zeros alone are allowed."""
        largest = max(self.largest.values(), default=0.0)
        if 0.0 < largest < 1.0 / self.most:
            names = " and ".join(self.largest)
            raise ValueError(f"{self.structure}: {out_of_range(f'the largest feature in {names}', largest, self.most)}")


def out_of_range(what: str, size: float, most: float = LARGEST) -> str:
    """What is wrong with a feature or norm of this size, and what helps."""
    power = 10.0 ** max(-307, math.floor(math.log10(min(1e308, size))))
    helps = f"Divide all features by {power:g}" if not size <= most else f"Multiply all features by {1.0 / power:g}"
    return (
        f"{what} is of size {size:.3g}; sizes from {1.0 / most:g} to {most:g} can be certified. {helps}, say, or "
        "standardise them"
    )


def check_single(values: np.ndarray, name_of: Callable[[int], str]) -> None:
    """ValueError unless features that become float32 stay in range and do not all become 0; name_of(k) names entry k."""
    sizes = np.abs(values).reshape(-1)
    largest = float(np.max(sizes, initial=0.0))
    if LARGEST_SINGLE < largest < math.inf or 0.0 < largest < np.finfo(np.float32).tiny:
        name = f"{name_of(int(np.argmax(sizes)))}: its feature, the largest,"
        raise ValueError(out_of_range(name, largest, LARGEST_SINGLE))


def check_losses(structure: str, cost: np.ndarray) -> None:
    """ValueError that names the first entry of a cost matrix (K, K) that is too large."""
    large = np.argwhere(cost > LARGEST_LOSS)
    if large.size:
        true, answer = (int(label) for label in large[0])
        raise ValueError(
            f"{structure}: cost, weights included, is {cost[true, answer]:.3g} for label {answer} in place of {true}; up to "
            f"{LARGEST_LOSS:g} can be certified. Divide all costs, so that a common mistake costs about 1"
        )


def check_norms(structure: str, norms2: Iterable[tuple[int, float]]) -> None:
    """ValueError if a norm of joint features is too large, or all are too small; of pairs (block, squared norm).

    That is what is known of a kernel, or of a structure of one's own.
    """
    largest = 0.0
    for block, norm2 in norms2:
        if not norm2 <= LARGEST**2:
            size = math.sqrt(norm2)
            raise ValueError(f"{structure}: block {block}: {out_of_range('the norm of its joint features', size)}")
        largest = max(largest, norm2)
    if 0.0 < largest < LARGEST**-2:
        raise ValueError(f"{structure}: {out_of_range('the largest norm of joint features', math.sqrt(largest))}")


def _place(arrays: Mapping[str, np.ndarray], name: str, block: int | None, entry: int) -> str:
    """Block, row and feature of entry `entry` of a flattened array, as far as the other arrays tell."""
    values, ids = np.asarray(arrays[name]), arrays.get("ids")
    row, column = divmod(entry, values.shape[1]) if values.ndim == 2 else (entry, entry)
    pointer = next((np.asarray(arrays[key]) for key in (f"{name}_ptr", "row_ptr") if key in arrays), None)
    if block is None:
        if pointer is None:
            return f"block {row}: feature {column}"
        block = int(np.searchsorted(pointer, row, side="right")) - 1
        row -= int(pointer[block])
    if values.ndim == 2:
        return f"block {block}: row {row}, feature {column}"
    return f"block {block}: entry {entry}" if ids is None else f"block {block}: feature {int(ids[entry])}"
