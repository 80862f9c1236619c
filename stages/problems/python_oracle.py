"""A user's own oracle in Python: any structure, at the price of calling back into Python for each oracle call.

Users subclass `Oracle` (`oracle`) in a module of their own and name it as "module:Class". Every process creates one object
per split, and the compiled solver calls that object (`oracle_calls`). Local coordinates are
the weights themselves: B_i = I and m_i(y) = phi(x_i, y). Where a block touches few weights, B_i holds only the columns of
I that `coordinates(i)` lists. Oracles hold the GIL, so use `compute=processes` or `compute=cluster` for parallel calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems import oracle_calls
from gapwise.stages.problems.answers import ask, labelling, least_loss
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.certainty import ESTIMATE, EXACT, UPPER_BOUNDED, is_accuracy
from gapwise.stages.problems.confusion import share
from gapwise.stages.problems.held_out import HeldOut
from gapwise.stages.problems.operations import PYTHON, Operations
from gapwise.stages.problems.oracle import Oracle as Oracle
from gapwise.stages.problems.oracle import has_bound, labels_of, load_oracle
from gapwise.stages.problems.oracle_calls import object_for
from gapwise.stages.problems.protocol import dot, frozen
from gapwise.stages.problems.shared import takes
from gapwise.stages.problems.user_code import oracle_source


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
    lists: bool = False
    """whether the user's class defines `max_oracles`"""

    @property
    def unconstrained(self) -> bool:
        """Which rows of labels are labellings, only the user knows."""
        return False

    @property
    def certainty(self) -> str:
        """EXACT, or ESTIMATE if the user's oracle is approximate; with a bound it is a `BoundedPythonOracle`."""
        return ESTIMATE if object_for(self.spec.tobytes()).approximate else EXACT

    @property
    def accuracy(self) -> float | None:
        """The multiplicative accuracy that the user's oracle declares."""
        return object_for(self.spec.tobytes()).accuracy

    @property
    def operations(self) -> Operations:
        """`PYTHON`, whatever the class computes."""
        return PYTHON

    def scores(self, i, w, theta):
        if self.ids.size == 0:
            for j in range(theta.size):
                theta[j] = w[j]
        else:
            lo = self.local_ptr[i]
            for j in range(theta.size):
                theta[j] = w[self.ids[lo + j]]

    def max_oracle(self, i, theta, y, scratch):
        return oracle_calls.max_oracle(self.spec, i, theta, y)

    def max_oracles(self, i, theta, m, labels, losses, scratch):
        return oracle_calls.max_oracles(self.spec, i, theta, m, labels, losses)

    def max_oracles_scratch(self, m):
        return (np.empty(0),)

    def decode(self, i, theta, y, scratch):
        oracle_calls.decode(self.spec, i, theta, y)

    def value(self, i, theta, y):
        return oracle_calls.value(self.spec, i, theta, y)

    def add(self, i, y, c, out):
        oracle_calls.add(self.spec, i, y, c, out)

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
        return oracle_calls.loss(self.spec, i, y)

    def least_loss(self, i: int) -> float:
        oracle = object_for(self.spec.tobytes())
        where = f"{type(oracle).__name__}.least_loss: block {i}"
        return ask(where, lambda: least_loss(oracle.least_loss(i)))

    def scratch(self):
        return (np.empty(0),)


@takes(
    PythonOracle, "unconstrained", "operations", "scores", "max_oracle", "max_oracles", "max_oracles_scratch", "decode",
    "value", "add", "norm2", "push", "loss", "least_loss", "scratch",
)  # fmt: skip
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
    lists: bool = False

    @property
    def certainty(self) -> str:
        """UPPER_BOUNDED."""
        return UPPER_BOUNDED

    def tightened(self) -> BoundedPythonOracle:
        """The problem itself: its only bound is the user's."""
        return self

    def max_bound(self, i, theta, y, scratch):
        return oracle_calls.max_bound(self.spec, i, theta)


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> PythonOracle | BoundedPythonOracle:
    """The problem over ``labels`` and ``labels_ptr`` of one split, with ``ids`` and ``ids_ptr`` if blocks touch few weights.

    `meta` gives ``oracle``, ``arguments``, ``source`` (of `oracle_source`) and ``d``; array ``split`` the split's name, or
    a name on each line if splits are joined. If training blocks are held out, array ``block`` has the numbers they have in
    the user's object.

    Raises
    ------
    ValueError
        If the oracle cannot be imported here, or its code has changed since the features were made.
    """
    if oracle_source(meta["oracle"]) != meta["source"]:
        raise ValueError(
            f"python_oracle: the code of {meta['oracle']} is not what the features were made with; restart processes that "
            "imported it before the edit, and update other copies"
        )
    split, *others = np.asarray(arrays["split"]).tobytes().decode().split("\n")
    spec = {"oracle": meta["oracle"], "split": split, "arguments": dict(meta["arguments"])}
    if others:  # joined for a refit
        spec["and"] = others
    if "block" in arrays:  # some of the training blocks are held out; here are the others, or they
        rule = HeldOut.of(meta["validation"])
        spec["part"] = {"rule": meta["validation"], "held_out": bool(rule and rule(int(arrays["block"][0])))}
    packed = np.frombuffer(json.dumps(spec, sort_keys=True).encode(), np.uint8)
    oracle = object_for(packed.tobytes())
    n, d = len(arrays["labels_ptr"]) - 1, int(meta["d"])
    if (len(oracle), oracle.d) != (n, d):
        raise ValueError(
            f"python_oracle: {meta['oracle']} has {len(oracle)} blocks and d = {oracle.d} here, {n} and {d} in the "
            "features; its data have changed, or differ on this machine"
        )
    labels = labels_of(oracle)
    local = arrays["ids_ptr"] if "ids" in arrays else np.arange(n + 1) * d
    kind = BoundedPythonOracle if oracle.approximate and has_bound(oracle) else PythonOracle
    nu = oracle.accuracy
    if nu is not None and not (oracle.approximate and is_accuracy(nu)):
        raise ValueError(
            f"python_oracle: {meta['oracle']}: accuracy is {nu!r}; expected a number in (0, 1], and only with "
            "approximate = True"
        )
    return kind(
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
        lists=oracle.lists,
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
    return {"label_error": share(predictions != problem.truth)}


CAPABILITIES = Capabilities(calls_python=True, split_names=("split",), decoded=decoded, falling=("label_error",))
