"""A user's own oracle in Python: the class that users subclass, and how ``module:Class`` becomes an object of it.

An object may also stand for some of its blocks (the training blocks, or those held out), or for several splits joined.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gapwise.records import Facts, Record
from gapwise.stages.problems.answers import ask, describe
from gapwise.stages.problems.held_out import HeldOut
from gapwise.stages.problems.user_code import UntrustedError, told, user_object

MOST_LABELS = 1 << 15
"""Values that an entry of a labelling can take at most: labels are stored as uint8 or int16."""


class Oracle:
    """The blocks of one split, as a user describes them to the solver.

    This is the one interface through which the solver calls a user's Python. `gapwise.StructuredModel`, which describes one
    example (x, y) to the estimator `StructuredSVM`, becomes an `Oracle` through the adapter
    `pipeline.estimators.examples.Examples`.

    Each process creates its own object as ``Class(split, **arguments)``, with split "train" or "test"; the object reads its
    data itself. Several threads may call its methods at once. Labellings are given to it as int64. Methods must not keep
    `theta`, and must always return the same result for the same arguments: certificates and resuming rely on that.
    `features` or `loss` must raise an error for a row of integers that is no labelling of the block.

    Attributes
    ----------
    d : int
        Number of weights.
    labels : int
        Entries of a labelling are 0, ..., labels - 1; at most 32768.
    lower, upper : sequence of float
        Bounds on w, of length d; empty: none.
    approximate : bool
        Whether `max_oracle` may miss the maximum. Gaps are then upper-bounded if the class defines `max_bound`, and only
        estimates, which certify nothing, if it does not.
    accuracy : float, optional
        Only of an approximate oracle: the multiplicative accuracy nu in (0, 1] of LJ13 section 4. The block gap that
        `max_oracle` shows must always be at least nu times the true gap. Results then say what that promises, unless the
        class has `max_bound`.

    Notes
    -----
    Arguments of the methods:

    i : int
        The block, from 0.
    y : int array, shape (length of the block's labellings,)
        A labelling.
    theta : float64 array, shape (d,)
        The weights w, or their entries at `coordinates(i)`.
    m : int
        Most labellings that may be returned.

    Whatever a method raises ends the run or the fit with an error that names method and block.
    """

    d: int
    labels: int = 2
    lower: Sequence[float] | np.ndarray = ()
    upper: Sequence[float] | np.ndarray = ()
    approximate: bool = False
    accuracy: float | None = None

    @classmethod
    def files(cls, **arguments: object) -> Sequence[str | Path]:
        """Paths of all data files that both splits read.

        A run's key has their contents: edit a file, and the same command makes a new run. Undeclared files are not seen.

        Parameters
        ----------
        **arguments
            The arguments of the class besides the split.

        Returns
        -------
        sequence of paths
            Empty if there are no files.
        """
        return ()

    def __len__(self) -> int:
        """Number of blocks n."""
        raise NotImplementedError

    def truth(self, i: int) -> ArrayLike:
        """The true labelling of block i: integers, (length of the block's labellings,)."""
        raise NotImplementedError

    def features(self, i: int, y: np.ndarray) -> ArrayLike:
        """phi(x_i, y), (d,), or only its entries at `coordinates(i)` if that is not None."""
        raise NotImplementedError

    def loss(self, i: int, y: np.ndarray) -> float:
        """Task loss L_i(y) >= 0, zero at the truth."""
        raise NotImplementedError

    def max_oracle(self, i: int, theta: np.ndarray) -> ArrayLike:
        """argmax_y L_i(y) + <theta, features(i, y)>; theta is w, or w at `coordinates(i)`."""
        raise NotImplementedError

    def max_oracles(self, i: int, theta: np.ndarray, m: int) -> Sequence[ArrayLike]:
        """Up to m different labellings of large L_i(y) + <theta, features(i, y)>, the answer of `max_oracle` first.

        Optional, for an oracle that finds the next best at little more cost: `solver.n_best` then keeps all of them, which
        saves calls. Where they are not the next best, less is saved, and no certificate is wrong.
        """
        raise NotImplementedError

    @property
    def lists(self) -> bool:
        """Whether the class defines `max_oracles`."""
        return type(self).max_oracles is not Oracle.max_oracles

    def decode(self, i: int, theta: np.ndarray) -> ArrayLike:
        """argmax_y <theta, features(i, y)>."""
        raise NotImplementedError

    def max_bound(self, i: int, theta: np.ndarray) -> float:
        """A number >= max_y L_i(y) + <theta, features(i, y)>; only of an approximate oracle that can bound its maximum.

        A path needs it to be the maximum itself, the largest loss, at theta = 0.
        """
        raise NotImplementedError

    def least_loss(self, i: int) -> float:
        """A lower bound on L_i over all labellings but the truth; infinite if there is no other labelling.

        If 0 (no bound is known), `path.relative` ends above lambda 0.
        """
        return 0.0

    def coordinates(self, i: int) -> ArrayLike | None:
        """Indices, without repeats, of the weights that block i can touch; None (for every block, or for none): all."""
        return None


def labels_of(oracle: Oracle) -> int:
    """The number of labels that an oracle declares; ValueError unless it is an integer that labels can be stored for."""
    labels = ask(f"{type(oracle).__name__}.labels", lambda: oracle.labels)
    if isinstance(labels, bool) or not isinstance(labels, int | np.integer) or not 1 <= labels <= MOST_LABELS:
        raise ValueError(f"{type(oracle).__name__}.labels: must be an integer from 1 to {MOST_LABELS}, is {labels!r}")
    return int(labels)


def has_bound(oracle: Oracle) -> bool:
    """Whether a user's class defines `max_bound`."""
    return type(oracle).max_bound is not Oracle.max_bound


def load_oracle(oracle: str, split: str, arguments: Facts) -> Oracle:
    """An object of the class that ``oracle="module:Class"`` names; ValueError says what is missing."""
    make: Any = oracle_class(oracle)
    try:
        made: Oracle = make(split, **arguments)
    except UntrustedError:
        raise
    except SystemExit as error:
        raise ValueError(f"{oracle}: {describe(error)}") from error
    except Exception as error:
        own = error.__traceback__ is not None and error.__traceback__.tb_next is not None  # raised in the class's code
        raise ValueError(
            f"{oracle} cannot be made from split={split!r} and dataset.arguments={dict(arguments)}: "
            f"{told(error) if own else error}"
        ) from error
    return made


def oracle_class(oracle: str) -> type[Oracle]:
    """The class that ``module:Class`` names; ValueError says what is missing."""
    made = user_object(oracle)
    if not (isinstance(made, type) and issubclass(made, Oracle)):
        raise ValueError(f"python_oracle: {oracle} is not a subclass of gapwise.Oracle")
    return made


_objects: dict[bytes, Oracle] = {}
_making = threading.Lock()


def object_for(spec: bytes, *, anew: bool = False) -> Oracle:
    """This process's object for `spec`, JSON that `packed_spec` makes; created at first use.

    `anew`: a new one takes the place of one that may have read other data.
    """
    known = _objects.get(spec)
    if known is None or anew:
        with _making:
            if _objects.get(spec) is known:  # no other thread was faster
                _objects[spec] = _created(json.loads(spec))
            known = _objects[spec]
    return known


def packed_spec(oracle: str, split: str, arguments: Facts, **more: object) -> np.ndarray:
    """uint8: JSON that names an object; `more`: ``and``, splits joined to the first, and ``part`` = {rule, held_out}.

    `held_out` lists which of the blocks there are, in this order: those that the rule holds out (true), or the others.
    """
    spec = {"oracle": oracle, "split": split, "arguments": dict(arguments), **more}
    return np.frombuffer(json.dumps(spec, sort_keys=True).encode(), np.uint8)


def _created(spec: Facts) -> Oracle:
    splits = (spec["split"], *spec.get("and", ()))
    objects = [load_oracle(spec["oracle"], split, spec["arguments"]) for split in splits]
    oracle = objects[0] if len(objects) == 1 else joined(objects)
    part = spec.get("part")
    rule = None if part is None else HeldOut.of(part["rule"])
    if part is None or rule is None:
        return oracle
    among = rule.among(len(oracle))
    return part_of(oracle, np.concatenate([np.flatnonzero(among == held_out) for held_out in part["held_out"]]))


OF_A_BLOCK = ("truth", "features", "loss", "max_oracle", "decode", "least_loss", "coordinates")
OF_ALL = ("d", "labels", "lower", "upper", "approximate", "accuracy")


def part_of(oracle: Oracle, blocks: np.ndarray) -> Oracle:
    """An oracle whose block k is block ``blocks[k]`` of `oracle`."""
    return _renumbered([oracle], [(0, int(block)) for block in blocks])


def joined(oracles: Sequence[Oracle]) -> Oracle:
    """An oracle with the blocks of several objects of one class, one object after the other."""
    return _renumbered(oracles, [(k, block) for k, oracle in enumerate(oracles) for block in range(len(oracle))])


def _renumbered(oracles: Sequence[Oracle], blocks: Sequence[tuple[int, int]]) -> Oracle:
    """An oracle, of a class with the name of the first one's, whose block k is the block of the object in ``blocks[k]``.

    It defines `max_bound` and `max_oracles` only if that class does.
    """
    first = oracles[0]
    optional = {"max_bound": has_bound(first), "max_oracles": first.lists}
    methods = (*OF_A_BLOCK, *(name for name, defined in optional.items() if defined))

    def renumbered(name: str) -> Callable[..., object]:
        own = [getattr(oracle, name) for oracle in oracles]

        def method(self: Oracle, k: int, *arguments: object) -> object:
            number, block = blocks[k]
            return own[number](block, *arguments)

        return method

    body: Record = {name: getattr(first, name) for name in OF_ALL}
    body |= {name: renumbered(name) for name in methods}
    body |= {"__len__": lambda self: len(blocks), "__module__": type(first).__module__}
    made: Oracle = type(type(first).__name__, (Oracle,), body)()
    return made
