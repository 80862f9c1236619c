"""Checks of stored arrays before compiled code reads them: there, a label out of range is a segmentation fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from gapwise.stages.problems.capabilities import optional_of

if TYPE_CHECKING:  # it imports numba
    from gapwise.stages.problems.protocol import Problem


PIECE = 1 << 14
"""Blocks whose labellings are checked at a time: arrays for all of them would take more memory than what is checked."""


def check_array(
    name: str, array: np.ndarray, shape: tuple[int | None, ...], dtype: DTypeLike, *, finite: bool = False
) -> np.ndarray:
    """`array` itself; ValueError, beginning with `name`, if it is not what the layout says.

    Parameters
    ----------
    shape : tuple
        Expected shape; None stands for any length.
    finite : bool
        Whether all entries must be finite.
    """
    fits = array.ndim == len(shape) and all(want in (None, got) for got, want in zip(array.shape, shape, strict=False))
    if not fits or array.dtype != np.dtype(dtype):
        wanted = "(" + ", ".join("any" if size is None else str(size) for size in shape) + ")"
        raise ValueError(f"{name}: is {array.dtype} {array.shape}, expected {np.dtype(dtype)} {wanted}")
    if finite and not np.isfinite(array).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}: entry {where} is {array[where]}, expected a finite number")
    return array


def check_supports(
    problem: Problem,
    offset: np.ndarray,
    alpha: np.ndarray,
    losses: np.ndarray,
    label: np.ndarray,
    label_offset: np.ndarray,
) -> None:
    """Raise ValueError, naming array and block, unless these are labellings of the problem's blocks with their weights.

    Parameters
    ----------
    offset : int64 array, (n + 1,)
        Block i has the atoms offset[i]:offset[i + 1]; the first may be above 0, as in a breakpoint of path.zarr.
    alpha, losses : float64 arrays, (atoms,)
        Weights and task losses of the atoms.
    label : array of the label type, flat
    label_offset : int64 array, (atoms + 1,)
        Atom a has the labels label[label_offset[a]:label_offset[a + 1]].
    """
    P, atoms = problem, alpha.size
    check_array("support_offset", offset, (P.n + 1,), np.int64)
    check_array("support_alpha", alpha, (None,), np.float64)
    check_array("support_loss", losses, (atoms,), np.float64)
    check_array("support_label", label, (None,), P.truth.dtype)
    check_array("label_offset", label_offset, (atoms + 1,), np.int64)
    _refuse("support_offset", (offset < 0) | (offset > atoms), np.arange(P.n + 1), offset, f"0 to {atoms}, the atoms")
    _refuse("support_offset", offset[1:] < offset[:-1], np.arange(P.n), offset[1:], "offsets that do not fall")
    for start in range(0, P.n, PIECE):
        stop = min(start + PIECE, P.n)
        _check_labellings(P, start, offset[start : stop + 1], alpha, losses, label, label_offset)


def _check_labellings(
    problem: Problem,
    start: int,
    offset: np.ndarray,
    alpha: np.ndarray,
    losses: np.ndarray,
    label: np.ndarray,
    label_offset: np.ndarray,
) -> None:
    """`check_supports` of the blocks from `start` on, whose atoms lie between these offsets."""
    P, first, last = problem, int(offset[0]), int(offset[-1])
    block = start + np.repeat(np.arange(offset.size - 1), np.diff(offset))
    edges, edge_block = label_offset[first : last + 1], np.append(block, start + offset.size - 2)
    _refuse("label_offset", (edges < 0) | (edges > label.size), edge_block, edges, f"0 to {label.size}, the labels")
    lengths = np.diff(edges)
    wrong = lengths != np.diff(P.label_ptr)[block]
    _refuse("label_offset", wrong, block, lengths, "labellings as long as the block's truth", "a length of ")
    of, values = slice(first, last), label[edges[0] : edges[-1]]
    _refuse("support_alpha", ~np.isfinite(alpha[of]), block, alpha[of], "finite weights")
    _refuse("support_loss", ~(np.isfinite(losses[of]) & (losses[of] >= 0.0)), block, losses[of], "finite losses >= 0")
    outside = (values < 0) | (values >= P.labels)
    if outside.any():
        _refuse("support_label", outside, np.repeat(block, lengths), values, f"labels 0 to {P.labels - 1}")
    forbidden = optional_of(P, "forbidden")
    if forbidden is not None:
        wrong = forbidden(block, values, edges - edges[0])
        _refuse("support_label", wrong, block, np.arange(first, last), "labellings that the structure allows", "atom ")


def _refuse(name: str, bad: np.ndarray, block: np.ndarray, values: np.ndarray, expected: str, unit: str = "") -> None:
    """Raise ValueError if `bad` has a True; entry k of `block` and `values` belongs to entry k of `bad`."""
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"{name}: block {block[k]}: holds {unit}{values[k]}, expected {expected}")
