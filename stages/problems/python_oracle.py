"""A user's own oracle in Python: any structure, at the price of calling back into Python for each oracle call.

Users subclass `Oracle` in a module of their own and name it as "module:Class". Every process creates one object per split,
and the compiled solver calls that object through numba's object mode (about 5 us per call). Local coordinates are
the weights themselves: B_i = I and m_i(y) = phi(x_i, y). Where a block touches few weights, B_i holds only the columns of
I that `coordinates(i)` lists. Oracles hold the GIL, so use `compute=processes` or `compute=cluster` for parallel calls.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit, objmode

from gapwise.stages.problems.answers import ask, bound, bounds, describe, labelling, labels_of, numbers, task_loss
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.certainty import ESTIMATE, EXACT, UPPER_BOUNDED, is_accuracy
from gapwise.stages.problems.facts import Facts, Options
from gapwise.stages.problems.held_out import HeldOut
from gapwise.stages.problems.inner import COUNTED
from gapwise.stages.problems.oracle_part import part_of
from gapwise.stages.problems.protocol import JIT, dot, frozen
from gapwise.stages.problems.trust import UntrustedError
from gapwise.stages.problems.user_code import oracle_source, told, user_module


class Oracle:
    """The blocks of one split, as a user describes them to the solver.

    Each process creates its own object as ``Class(split, **arguments)``, with split "train" or "test"; the object reads its
    data itself. Several threads may call its methods at once. Methods must not keep `theta`, and must always return the
    same result for the same arguments: certificates and resuming rely on that. `features` or `loss` must raise an error
    for a row of integers that is no labelling of the block.

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
        Only of an approximate oracle: nu in (0, 1], if the block gap that `max_oracle` shows is always at least nu times the
        true one (multiplicative accuracy: LJ13 section 4). Results then say what that promises, unless it has `max_bound`.
    """

    d: int
    labels: int = 2
    lower: Any = ()
    upper: Any = ()
    approximate: bool = False
    accuracy: float | None = None

    @classmethod
    def files(cls, **arguments: Any) -> Sequence[str | Path]:
        """Paths of all data files that both splits read, given the arguments besides the split.

        A run's key has their contents: edit one, and the same command makes a new run. Undeclared files are not seen.
        """
        return ()

    def __len__(self) -> int:
        """Number of blocks n."""
        raise NotImplementedError

    def truth(self, i: int) -> Any:
        """The true labelling of block i: integers, (length of the block's labellings,)."""
        raise NotImplementedError

    def features(self, i: int, y: np.ndarray) -> Any:
        """phi(x_i, y), (d,), or only its entries at `coordinates(i)` if that is not None."""
        raise NotImplementedError

    def loss(self, i: int, y: np.ndarray) -> float:
        """Task loss L_i(y) >= 0, zero at the truth."""
        raise NotImplementedError

    def max_oracle(self, i: int, theta: np.ndarray) -> Any:
        """argmax_y L_i(y) + <theta, features(i, y)>; theta is w, or w at `coordinates(i)`."""
        raise NotImplementedError

    def decode(self, i: int, theta: np.ndarray) -> Any:
        """argmax_y <theta, features(i, y)>."""
        raise NotImplementedError

    def max_bound(self, i: int, theta: np.ndarray) -> float:
        """A number >= max_y L_i(y) + <theta, features(i, y)>; only of an approximate oracle that can bound its maximum.

        A path needs it to be the maximum itself, the largest loss, at theta = 0.
        """
        raise NotImplementedError

    def least_loss(self, i: int) -> float:
        """A lower bound on L_i over all labellings but the truth; infinite if there are none.

        If 0 (no bound is known), `path.relative` ends above lambda 0.
        """
        return 0.0

    def coordinates(self, i: int) -> Any:
        """Indices, without repeats, of the weights that block i can touch; None (for every block, or for none): all."""
        return None


class PythonOracle(NamedTuple):
    """n blocks whose structure is an `Oracle`; arrays only, so that numba can compile for it and processes can share it."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    labels: int
    """number of values that an entry of a labelling can take"""
    ids: np.ndarray
    """int64, flat like local vectors: the weight of each local coordinate; (0,) where p_i = d, B_i = I"""
    spec: np.ndarray
    """uint8: JSON that names the object to call; a process that does not have it creates it"""

    @property
    def unconstrained(self) -> bool:
        """Which rows of labels are labellings, only the user knows."""
        return False

    @property
    def certainty(self) -> str:
        """EXACT, or ESTIMATE if the user's oracle is approximate; with a bound it is a `BoundedPythonOracle`."""
        return ESTIMATE if _object(self.spec.tobytes()).approximate else EXACT

    @property
    def accuracy(self) -> float | None:
        """The multiplicative accuracy that the user's oracle declares."""
        return _object(self.spec.tobytes()).accuracy

    def scores(self, i, w, theta):
        if self.ids.size == 0:
            for j in range(theta.size):
                theta[j] = w[j]
        else:
            lo = self.local_ptr[i]
            for j in range(theta.size):
                theta[j] = w[self.ids[lo + j]]

    def max_oracle(self, i, theta, y, scratch):
        return _max_oracle(self.spec, i, theta, y)

    def decode(self, i, theta, y, scratch):
        _decode(self.spec, i, theta, y)

    def value(self, i, theta, y):
        return _value(self.spec, i, theta, y)

    def add(self, i, y, c, out):
        _add(self.spec, i, y, c, out)

    def norm2(self, i, delta):
        return dot(delta, delta)

    def push(self, i, c, delta, w):
        if self.ids.size == 0:
            for j in range(delta.size):
                w[j] += c * delta[j]
        else:
            lo = self.local_ptr[i]
            for j in range(delta.size):
                w[self.ids[lo + j]] += c * delta[j]

    def loss(self, i, y):
        return _loss(self.spec, i, y)

    def least_loss(self, i):
        oracle = _object(self.spec.tobytes())
        where = f"{type(oracle).__name__}.least_loss: block {i}"
        found = float(ask(where, oracle.least_loss, i))
        if not found >= 0.0:
            raise ValueError(f"{where}: must be >= 0, is {found:g}")
        return found

    def scratch(self):
        return (np.empty(0),)


class BoundedPythonOracle(NamedTuple):
    """A `PythonOracle` whose user's class is approximate and defines `max_bound`; a class of its own, so that nothing is
    compiled or called for the others."""

    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    labels: int
    ids: np.ndarray
    spec: np.ndarray

    unconstrained = PythonOracle.unconstrained  # type: ignore[misc]
    scores = PythonOracle.scores  # type: ignore[misc]
    max_oracle = PythonOracle.max_oracle  # type: ignore[misc]
    decode = PythonOracle.decode  # type: ignore[misc]
    value = PythonOracle.value  # type: ignore[misc]
    add = PythonOracle.add  # type: ignore[misc]
    norm2 = PythonOracle.norm2  # type: ignore[misc]
    push = PythonOracle.push  # type: ignore[misc]
    loss = PythonOracle.loss  # type: ignore[misc]
    least_loss = PythonOracle.least_loss  # type: ignore[misc]
    scratch = PythonOracle.scratch  # type: ignore[misc]

    @property
    def certainty(self) -> str:
        """UPPER_BOUNDED."""
        return UPPER_BOUNDED

    def tightened(self) -> BoundedPythonOracle:
        """There is one bound."""
        return self

    def max_bound(self, i, theta, y, scratch):
        return _max_bound(self.spec, i, theta)


CALL = COUNTED
"""Without nogil: callers have released the GIL, and object mode takes it back for the call."""


@njit(**CALL)
def _max_oracle(spec, i, theta, y):
    with objmode(loss="float64"):
        loss = call(spec, i, "max_oracle", theta, y)
    return loss  # noqa: RET504  object mode cannot return


@njit(**CALL)
def _max_bound(spec, i, theta):
    with objmode(bound="float64"):
        bound = call_bound(spec, i, theta)
    return bound  # noqa: RET504  object mode cannot return


@njit(**CALL)
def _decode(spec, i, theta, y):
    with objmode():
        call(spec, i, "decode", theta, y)


@njit(**CALL)
def _features(spec, i, y, out):
    with objmode():
        call(spec, i, "features", out, y)


@njit(**JIT)
def _value(spec, i, theta, y):
    phi = np.empty(theta.size)
    _features(spec, i, y, phi)
    return dot(theta, phi)


@njit(**JIT)
def _add(spec, i, y, c, out):
    phi = np.empty(out.size)
    _features(spec, i, y, phi)
    for j in range(out.size):
        out[j] += c * phi[j]


@njit(**CALL)
def _loss(spec, i, y):
    with objmode(loss="float64"):
        loss = call(spec, i, "loss", None, y)
    return loss  # noqa: RET504


def call(spec: np.ndarray, i: int, what: str, vector: Any, y: np.ndarray) -> float:
    """Call method `what` of a user's object; an error names the block, as does an answer that cannot be used.

    `vector` is theta, or receives the features; y is read, or receives the answer of the two oracles. Returns the loss.
    """
    oracle = _object(spec.tobytes())
    try:
        if what == "features":
            vector[:] = numbers(oracle.features(i, y.copy()), vector.shape)
            return 0.0
        if what in ("max_oracle", "decode"):
            y[:] = labelling(getattr(oracle, what)(i, vector.copy()), oracle.labels, y.size)
            if what == "decode":
                return 0.0
            what = "loss"
        return task_loss(oracle.loss(i, y.copy()))
    except (Exception, SystemExit) as error:
        raise ValueError(f"{type(oracle).__name__}.{what}: block {i}: {describe(error)}") from error


def call_bound(spec: np.ndarray, i: int, theta: np.ndarray) -> float:
    """`max_bound` of a user's object; an error names the block, as does an answer that is no finite number."""
    oracle = _object(spec.tobytes())
    try:
        return bound(oracle.max_bound(i, theta.copy()))
    except (Exception, SystemExit) as error:
        raise ValueError(f"{type(oracle).__name__}.max_bound: block {i}: {describe(error)}") from error


_objects: dict[bytes, Oracle] = {}
_making = threading.Lock()


def _object(spec: bytes) -> Oracle:
    """This process's object for `spec`; created at first use."""
    found = _objects.get(spec)
    if found is None:
        with _making:
            if spec not in _objects:
                _objects[spec] = _made(**json.loads(spec))
            found = _objects[spec]
    return found


def _made(part: Options | None = None, **whole: Any) -> Oracle:
    """The object of a split; of its blocks those that `part` = {rule, held_out} names."""
    oracle = load_oracle(**whole)
    rule = None if part is None else HeldOut.of(part["rule"])
    if part is None or rule is None:
        return oracle
    blocks = np.flatnonzero(rule.among(len(oracle)) == part["held_out"])
    return part_of(oracle, blocks, Oracle)


def load_oracle(oracle: str, split: str, arguments: Options) -> Oracle:
    """An object of the class that ``oracle="module:Class"`` names; ValueError says what is missing."""
    make: Any = oracle_class(oracle)
    try:
        found: Oracle = make(split, **arguments)
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
    return found


def oracle_class(oracle: str) -> type[Oracle]:
    """The class that ``module:Class`` names; ValueError says what is missing."""
    made = getattr(user_module(oracle), oracle.partition(":")[2], None)
    if not (isinstance(made, type) and issubclass(made, Oracle)):
        raise ValueError(f"python_oracle: {oracle} is not a subclass of gapwise.Oracle")
    return made


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> PythonOracle | BoundedPythonOracle:
    """The problem over ``labels`` and ``labels_ptr`` of one split, with ``ids`` and ``ids_ptr`` if blocks touch few weights.

    `meta` gives ``oracle``, ``arguments``, ``source`` (of `oracle_source`) and ``d``; array ``split`` the split's name. If
    training blocks are held out, array ``block`` has the numbers they have in the user's object.

    Raises
    ------
    ValueError
        If the oracle cannot be imported here, or its code has changed since the features were made.
    """
    if oracle_source(meta["oracle"]) != meta["source"]:
        raise ValueError(
            f"python_oracle: the code of {meta['oracle']} is not what the features were made with; restart processes that "
            "imported it before it was edited, and update other copies of it"
        )
    split = np.asarray(arrays["split"]).tobytes().decode()
    spec = {"oracle": meta["oracle"], "split": split, "arguments": dict(meta["arguments"])}
    if "block" in arrays:  # some of the training blocks are held out; here are the others, or they
        rule = HeldOut.of(meta["validation"])
        spec["part"] = {"rule": meta["validation"], "held_out": bool(rule and rule(int(arrays["block"][0])))}
    packed = np.frombuffer(json.dumps(spec, sort_keys=True).encode(), np.uint8)
    oracle = _object(packed.tobytes())
    n, d = len(arrays["labels_ptr"]) - 1, int(meta["d"])
    if (len(oracle), oracle.d) != (n, d):
        raise ValueError(
            f"python_oracle: {meta['oracle']} has {len(oracle)} blocks and d = {oracle.d} here, {n} and {d} in the "
            "features; its data have changed, or differ on this machine"
        )
    labels = labels_of(oracle)
    local = arrays["ids_ptr"] if "ids" in arrays else np.arange(n + 1) * d
    kind = BoundedPythonOracle if oracle.approximate and bounds(oracle) else PythonOracle
    nu = oracle.accuracy
    if nu is not None and not (oracle.approximate and is_accuracy(nu)):
        raise ValueError(
            f"python_oracle: {meta['oracle']}: accuracy is {nu!r}; expected a number in (0, 1], and only with "
            "approximate = True"
        )
    return kind(  # type: ignore[call-arg]
        n=n,
        d=d,
        local_ptr=frozen(local, np.int64),
        label_ptr=frozen(arrays["labels_ptr"], np.int64),
        truth=frozen(arrays["labels"], np.uint8 if labels <= 256 else np.int16),
        lower=frozen(np.asarray(oracle.lower), np.float64),
        upper=frozen(np.asarray(oracle.upper), np.float64),
        labels=labels,
        ids=frozen(arrays.get("ids", np.empty(0)), np.int64),
        spec=frozen(packed),
    )


def decoded(arrays: Mapping[str, np.ndarray], meta: Facts, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels that the user's `decode` gives at weights w (d,) for all blocks of one split, and where each block begins.

    Parameters
    ----------
    arrays
        ``split``: the split's name; optional ``arguments``: JSON, other arguments of the class than in `meta`. Both bytes.
    meta
        ``oracle``, ``arguments`` and ``d``.

    Raises
    ------
    ValueError
        If the class cannot be made, has another number of weights, or an answer cannot be used; names class and block.
    """
    split = np.asarray(arrays["split"]).tobytes().decode()
    arguments = json.loads(np.asarray(arrays["arguments"]).tobytes()) if "arguments" in arrays else meta["arguments"]
    oracle = load_oracle(meta["oracle"], split, arguments)
    name, labels = type(oracle).__name__, labels_of(oracle)
    if oracle.d != w.size:
        raise ValueError(
            f"python_oracle: {meta['oracle']} has d = {oracle.d} for {split!r}, but the model has {w.size}"
        )
    rows = []
    for i in range(ask(f"{name}.__len__: {split}", len, oracle)):
        ids = ask(f"{name}.coordinates: {split} block {i}", oracle.coordinates, i)
        theta = w.copy() if ids is None else w[np.asarray(ids)]
        where = f"{name}.decode: {split} block {i}"
        rows.append(ask(where, lambda i=i, theta=theta: labelling(oracle.decode(i, theta), labels)))
    if not rows:
        raise ValueError(f"python_oracle: {meta['oracle']} has no blocks for {split!r}")
    flat = np.concatenate(rows).astype(np.uint8 if labels <= 256 else np.int16)
    return flat, np.cumsum([0, *map(len, rows)], dtype=np.int64)


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing besides what the reader writes is stored."""
    return {}


def metrics(
    problem: PythonOracle | BoundedPythonOracle, arrays: Mapping[str, np.ndarray], predictions: np.ndarray
) -> dict[str, float]:
    """Share of the entries of the flat `predictions` that differ from the truth."""
    return {"label_error": float(np.mean(predictions != problem.truth))}


CAPABILITIES = Capabilities(calls_python=True, decoded=decoded)
