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
        for name in self.names:
            values = np.asarray(arrays.get(name, ()))
            if not values.size:
                continue
            largest = max(float(values.max()), -float(values.min())) if values.dtype.kind in "fi" else 1.0  # or codes
            if largest > self.most and not math.isinf(largest):
                bad = int(np.argmax(np.abs(values) == largest))
                raise ValueError(self._too_large(arrays, name, block, bad, largest))
            if not math.isnan(largest):
                self.largest[name] = max(largest, self.largest.get(name, 0.0))

    def end(self) -> None:
        """ValueError if all features of a split are too small; zeros alone are allowed."""
        largest = max(self.largest.values(), default=0.0)
        if 0.0 < largest < 1.0 / self.most:
            names = " and ".join(self.largest)
            raise ValueError(f"{self.structure}: {too_small(f'the largest feature in {names}', largest, self.most)}")

    def _too_large(
        self, arrays: Mapping[str, np.ndarray], name: str, block: int | None, entry: int, value: float
    ) -> str:
        return f"{self.structure}: {_place(arrays, name, block, entry)}{too_large(name, value, self.most)}"


def too_large(name: str, value: float, most: float = LARGEST) -> str:
    """What is wrong with a feature of this size, and what helps."""
    return (
        f"{name} holds a feature of size {value:.3g}; sizes from {1 / most:g} to {most:g} can be certified. Divide all "
        f"features by {_power(value):g}, say, or standardise them"
    )


def too_small(name: str, value: float, most: float = LARGEST) -> str:
    """What is wrong where the largest feature has this size, and what helps."""
    return (
        f"{name} is {value:.3g}; sizes from {1 / most:g} to {most:g} can be certified. Multiply all features by "
        f"{1 / _power(value):g}, say, or standardise them"
    )


def check_single(values: np.ndarray, name_of: Callable[[int], str]) -> None:
    """ValueError unless features that become float32 stay in range and do not all become 0; name_of(k) names entry k."""
    sizes = np.abs(values).reshape(-1)
    largest = float(np.max(sizes, initial=0.0))
    if LARGEST_SINGLE < largest < math.inf:
        raise ValueError(f"{name_of(int(np.argmax(sizes)))}: {too_large('it', largest, LARGEST_SINGLE)}")
    if 0.0 < largest < np.finfo(np.float32).tiny:
        raise ValueError(
            f"{name_of(int(np.argmax(sizes)))}: {too_small('its feature, the largest,', largest, LARGEST_SINGLE)}"
        )


def check_scale(structure: str, part: Capabilities, arrays: Mapping[str, np.ndarray]) -> None:
    """ValueError unless the features of a split are of sizes that can be certified."""
    scale = Scale(structure, part)
    scale.see(arrays)
    scale.end()


def check_entries(structure: str, x: np.ndarray) -> None:
    """ValueError if an entry of x (n, D) is too large to take a kernel of; small ones are as zeros there."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if LARGEST < largest < math.inf:
        bad = int(np.argmax(np.abs(x) == largest))
        raise ValueError(f"{structure}: {_place({'x': x}, 'x', None, bad)}{too_large('x', largest)}")


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
    """The same, of pairs (block, squared norm of joint features): what is known of a kernel or a structure of one's own."""
    largest = 0.0
    for block, norm2 in norms2:
        if not norm2 <= LARGEST**2:
            size = f"{math.sqrt(norm2):.3g}" if 0.0 <= norm2 < math.inf else f"the square root of {norm2:g}"
            raise ValueError(
                f"{structure}: block {block}: its joint features have the norm {size}; norms from {1 / LARGEST:g} to "
                f"{LARGEST:g} can be certified. Divide all features by a power of ten, or standardise them"
            )
        largest = max(largest, norm2)
    if 0.0 < largest < LARGEST**-2:
        raise ValueError(f"{structure}: {too_small('the largest norm of joint features', math.sqrt(largest))}")


def _place(arrays: Mapping[str, np.ndarray], name: str, block: int | None, entry: int) -> str:
    """Block, row and feature of entry `entry` of a flattened array, as far as the other arrays tell."""
    values = np.asarray(arrays[name])
    row, column = divmod(entry, values.shape[1]) if values.ndim == 2 else (entry, None)
    pointer = next((arrays[key] for key in (f"{name}_ptr", "row_ptr") if key in arrays), None)
    inside = f"row {row}, "
    if block is None and pointer is not None:
        block = int(np.searchsorted(np.asarray(pointer), row, side="right")) - 1
        inside = f"row {row - int(pointer[block])}, "
    elif block is None:
        block, inside = row, ""
    if column is None and "ids" in arrays and arrays["ids"].shape == values.shape:
        return f"block {block}: feature {int(arrays['ids'][row])}: "
    return f"block {block}: " + (f"entry {row}: " if column is None else f"{inside}feature {column}: ")


def _power(value: float) -> float:
    """The power of ten just below a number > 0; the least normal one for smaller numbers."""
    return float(10.0 ** max(-307, math.floor(math.log10(value))))
