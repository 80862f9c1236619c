"""What a user's oracle in Python may answer: integers in range, finite numbers, of the right shape, and no exit.

numpy would wrap integers that are too large, truncate floats and drop imaginary parts without a word.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gapwise.stages.problems.user_code import told

MOST_LABELS = 1 << 15
"""Values that an entry of a labelling can take at most: labels are stored as uint8 or int16."""


def labelling(answer: Any, labels: int, length: int | None = None) -> np.ndarray:
    """`answer` as an array if it is a row of 0, ..., labels - 1 (of `length` entries if given); otherwise ValueError."""
    found = np.asarray(answer)
    if found.ndim != 1 or not found.size or length not in (None, found.size):
        wanted = "(length of the labelling,)" if length is None else f"({length},)"
        raise ValueError(f"the answer must have shape {wanted}, got {found.shape}")
    if found.dtype.kind not in "iub":
        raise ValueError(f"its entries must be integers 0, ..., {labels - 1}, got {found.dtype}: {found}")
    if found.min() < 0 or found.max() >= labels:
        raise ValueError(f"its entries must be 0, ..., {labels - 1}, got {found}")
    return found


def numbers(answer: Any, shape: tuple[int, ...]) -> np.ndarray:
    """`answer` as an array if it holds finite real numbers in this shape; otherwise ValueError."""
    found = np.asarray(answer)
    if found.shape != shape:
        raise ValueError(f"the answer must have shape {shape}, got {found.shape}")
    if found.dtype.kind not in "fiub":
        raise ValueError(f"the answer must be real numbers, got {found.dtype}")
    if not np.isfinite(found).all():
        j = int(np.argmax(~np.isfinite(found)))
        raise ValueError(f"the answer must be finite, entry {j} is {_named(float(found[j]))}")
    return found


def task_loss(answer: Any) -> float:
    """`answer` as a float if it is one finite number >= 0; otherwise ValueError."""
    if type(answer) is not float:
        found = np.asarray(answer)
        if found.shape != () or found.dtype.kind not in "fiub":
            raise ValueError(f"a loss must be one real number, got {found.dtype} of shape {found.shape}: {answer!r}")
        answer = float(found)
    if not 0.0 <= answer < math.inf:
        raise ValueError(f"a loss must be finite and >= 0, got {_named(answer)}")
    return float(answer)


def bound(answer: Any) -> float:
    """`answer` as a float if it is one finite number; otherwise ValueError."""
    found = np.asarray(answer)
    if found.shape != () or found.dtype.kind not in "fiub" or not np.isfinite(found):
        raise ValueError(f"a bound must be one finite real number, got {answer!r}")
    return float(found)


def _named(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:g}"


def labels_of(oracle: Any) -> int:
    """The number of labels that an `Oracle` declares; ValueError unless it is an integer that labels can be stored for."""
    labels = ask(f"{type(oracle).__name__}.labels", lambda: oracle.labels)
    if isinstance(labels, bool) or not isinstance(labels, int | np.integer) or not 1 <= labels <= MOST_LABELS:
        raise ValueError(f"{type(oracle).__name__}.labels: must be an integer from 1 to {MOST_LABELS}, is {labels!r}")
    return int(labels)


BASE = "gapwise.stages.problems.python_oracle"
"""The module of the class `Oracle`, whose own methods only raise errors."""


def bounds(oracle: Any) -> bool:
    """Whether a user's class defines `max_bound`."""
    return any("max_bound" in vars(kind) for kind in type(oracle).__mro__[:-1] if kind.__module__ != BASE)


def ask(where: str, method: Callable[..., Any], *arguments: Any) -> Any:
    """method(*arguments); what it raises becomes a ValueError that begins with `where`.

    Also an exit: a user's ``sys.exit(0)`` would end the run with exit code 0 and without a result.
    """
    try:
        return method(*arguments)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{where}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """An error in words; with the line that raised it, unless it is a ValueError, as our own checks raise."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r}); an oracle must answer or raise an error"
    return str(error) if type(error) is ValueError else told(error)
