"""What a user writes for a `StructuredSVM`: features, loss and oracles of one example."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Example: TypeAlias = Any
"""An input in any form; only the user's own class looks at it."""


class StructuredModel:
    """Features, loss and oracles of one example (x, y), for a `StructuredSVM`.

    The adapter `pipeline.estimators.examples.Examples` turns it and the data into a `gapwise.Oracle`, whose block i is the
    example (x[i], y[i]). The solver calls a user's Python only through that interface.

    x is whatever the user has. A labelling y is a row of integers 0, ..., labels - 1, whose length may depend on x, and
    reaches the methods as int64. Methods must always return the same for the same arguments and must not keep `w`:
    certificates and resuming rely on that.

    Attributes
    ----------
    d : int
        Number of weights.
    labels : int
        Entries of a labelling are 0, ..., labels - 1.
    lower, upper : sequence of float
        Bounds on w, of length d; empty: none. A path needs each to be 0 or infinite.
    approximate : bool
        Whether `max_oracle` may miss the maximum; the certificate is then an estimate.

    Notes
    -----
    Arguments of the methods:

    x : object
        An input, as it was given to `fit` or `predict`.
    y, other : int array, shape (length of a labelling,)
        Labellings; `y` is the truth where both occur.
    w : float64 array, shape (d,)
        The weights, or their entries at `coordinates(x)`.

    Whatever a method raises ends `fit` or `predict`.

    Examples
    --------
    >>> class Sign(StructuredModel):
    ...     d = 1
    ...
    ...     def features(self, x, y):
    ...         return [x if y[0] else -x]
    ...
    ...     def loss(self, y, other):
    ...         return float(y[0] != other[0])
    ...
    ...     def max_oracle(self, x, y, w):
    ...         return max(([0], [1]), key=lambda z: self.loss(y, z) + w @ self.features(x, z))
    >>> Sign().max_oracle(0.4, [1], np.array([1.0]))  # 1 + 1 * -0.4 > 0 + 1 * 0.4
    [0]
    """

    d: int
    labels: int = 2
    lower: npt.ArrayLike = ()
    upper: npt.ArrayLike = ()
    approximate: bool = False

    def features(self, x: Example, y: np.ndarray) -> npt.ArrayLike:
        """Joint features phi(x, y), (d,), or their entries at `coordinates(x)`."""
        raise NotImplementedError

    def loss(self, y: np.ndarray, other: np.ndarray) -> float:
        """Task loss >= 0 of predicting `other` where y is true; 0 for y itself."""
        raise NotImplementedError

    def max_oracle(self, x: Example, y: np.ndarray, w: np.ndarray) -> npt.ArrayLike:
        """The labelling z of largest loss(y, z) + <w, features(x, z)>; w at `coordinates(x)` if there are any."""
        raise NotImplementedError

    def decode(self, x: Example, w: np.ndarray) -> npt.ArrayLike:
        """The labelling z of largest <w, features(x, z)>."""
        raise NotImplementedError

    def least_loss(self, x: Example, y: np.ndarray) -> float:
        """A lower bound on the loss of all labellings but y; 0 if none is known."""
        return 0.0

    def coordinates(self, x: Example) -> npt.ArrayLike | None:
        """Indices of the weights that x can touch, without repeats; None, for every x or for none: all."""
        return None
