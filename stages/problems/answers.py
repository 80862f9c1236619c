"""What a user's oracle in Python may answer: integers in range, finite numbers, of the right shape, and no exit.

numpy would wrap integers that are too large, truncate floats and drop imaginary parts without a word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from gapwise.stages.problems.scale import LARGEST, out_of_range
from gapwise.stages.problems.user_code import told

T = TypeVar("T")


def signed(labels: object) -> np.ndarray:
    """`labels` for a user's code, as int64 if they are integers: where they are uint8, 2 y - 1 is 255 for y = 0."""
    array = np.asarray(labels)
    return array.astype(np.int64) if array.dtype.kind in "iub" else array


def labelling(answer: object, labels: int, length: int | None = None) -> np.ndarray:
    """`answer` as int64 if it is a row of 0, ..., labels - 1 (of `length` entries if given); otherwise ValueError."""
    labels_array = np.asarray(answer)
    if labels_array.ndim != 1 or not labels_array.size or length not in (None, labels_array.size):
        wanted = "(length of the labelling,)" if length is None else f"({length},)"
        raise ValueError(f"the answer must have shape {wanted}, got {labels_array.shape}")
    if labels_array.dtype.kind not in "iub":
        raise ValueError(f"its entries must be integers 0, ..., {labels - 1}, got {labels_array.dtype}: {labels_array}")
    if labels_array.min() < 0 or labels_array.max() >= labels:
        raise ValueError(f"its entries must be 0, ..., {labels - 1}, got {labels_array}")
    return signed(labels_array)


def numbers(answer: object, shape: tuple[int, ...]) -> np.ndarray:
    """`answer` as an array if it holds finite real numbers in this shape; otherwise ValueError."""
    values = np.asarray(answer)
    if values.shape != shape:
        raise ValueError(f"the answer must have shape {shape}, got {values.shape}")
    if values.dtype.kind not in "fiub":
        raise ValueError(f"the answer must be real numbers, got {values.dtype}")
    if (
        values.dtype.kind == "f" and values.ndim == 1 and np.dot(values, values) <= LARGEST**2
    ):  # quicker than one by one
        return values
    fits = np.abs(values) <= LARGEST
    if not fits.all():
        j = int(np.argmin(fits))
        if not math.isfinite(float(values[j])):
            raise ValueError(f"the answer must be finite, entry {j} is {_named(float(values[j]))}")
        raise ValueError(out_of_range(f"entry {j} of the answer", abs(float(values[j]))))
    return values


def task_loss(answer: object) -> float:
    """`answer` as a float if it is one finite number >= 0; otherwise ValueError."""
    if type(answer) is not float:
        value = np.asarray(answer)
        if value.shape != () or value.dtype.kind not in "fiub":
            raise ValueError(f"a loss must be one real number, got {value.dtype} of shape {value.shape}: {answer!r}")
        answer = float(value)
    if not 0.0 <= answer < math.inf:
        raise ValueError(f"a loss must be finite and >= 0, got {_named(answer)}")
    return float(answer)


def least_loss(answer: object) -> float:
    """`answer` as a float if it is one number >= 0, or infinite; otherwise ValueError."""
    value = np.asarray(answer)
    if value.shape != () or value.dtype.kind not in "fiu" or not value >= 0:
        raise ValueError(f"the least loss must be one real number >= 0, or inf, got {answer!r}")
    return float(value)


def coordinates(answer: object, d: int) -> np.ndarray | None:
    """`answer` as int64 if it is a row of different numbers in 0, ..., d - 1, or None; otherwise ValueError."""
    if answer is None:
        return None
    ids = np.asarray(answer)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(f"must be a row of integers, got {ids.dtype} of shape {ids.shape}")
    if ids.size and (ids.min() < 0 or ids.max() >= d or np.unique(ids).size != ids.size):
        raise ValueError(f"must be different numbers in 0, ..., {d - 1}")
    return ids.astype(np.int64)


def several(answer: Any, labels: int, most: int, length: int) -> np.ndarray:
    """`answer` as int64 (rows, length) if it is from 1 to `most` different labellings; otherwise ValueError."""
    rows = [labelling(row, labels, length) for row in answer]
    if not 1 <= len(rows) <= most:
        raise ValueError(f"the answer must be from 1 to {most} labellings, got {len(rows)}")
    if len({row.tobytes() for row in rows}) < len(rows):
        raise ValueError(f"the labellings must be different, got {[row.tolist() for row in rows]}")
    return np.array(rows)


def bound(answer: object) -> float:
    """`answer` as a float if it is one finite number; otherwise ValueError."""
    value = np.asarray(answer)
    if value.shape != () or value.dtype.kind not in "fiub" or not np.isfinite(value):
        raise ValueError(f"a bound must be one finite real number, got {answer!r}")
    return float(value)


def _named(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:g}"


def ask(where: str, method: Callable[..., T], *arguments: object) -> T:
    """method(*arguments); what it raises becomes a ValueError that begins with `where`.

    Also an exit: a user's ``sys.exit(0)`` would end the run with exit code 0 and without a result.
    """
    try:
        return method(*arguments)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{where}: {describe(error)}") from error


def answer_of(
    oracle: Any, method: str, i: int, given: np.ndarray | None = None, size: int = 0, most: int = 0, split: str = ""
) -> Any:
    """What a method of a user's oracle answers for block i, checked; ValueError names class, method and block.

    Parameters
    ----------
    oracle : Oracle
        Of a user (`oracle.Oracle`).
    given : array, optional
        A labelling or local scores, of which the method gets a copy; integers as int64 (`signed`).
    size : int
        Entries that labellings or features must have; 0: a true labelling may have any.
    most : int
        Most labellings that `max_oracles` may return.
    split : str
        Named in errors, too, if given.
    """
    try:
        asked = getattr(oracle, method)
        if given is None:
            answer = asked(i)
        else:
            own = given.copy() if given.dtype.kind == "f" else given.astype(np.int64)
            answer = asked(i, own, most) if most else asked(i, own)
        if method == "features":
            return numbers(answer, (size,))
        if method in NUMBERS:
            return NUMBERS[method](answer)
        if method == "max_oracles":
            return several(answer, oracle.labels, most, size)
        if method == "coordinates":
            return coordinates(answer, oracle.d)
        return labelling(answer, oracle.labels, size or None)
    except (Exception, SystemExit) as error:
        where = f"{type(oracle).__name__}.{method}: {split}{' ' * bool(split)}block {i}"
        raise ValueError(f"{where}: {describe(error)}") from error


NUMBERS: dict[str, Callable[[Any], float]] = {"loss": task_loss, "max_bound": bound, "least_loss": least_loss}
"""Methods that answer a number, with their checks."""


def describe(error: BaseException) -> str:
    """An error in words; with the line that raised it, unless it is a ValueError, as our own checks raise."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r}); an oracle must answer or raise an error"
    return str(error) if type(error) is ValueError else told(error)
