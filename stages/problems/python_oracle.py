"""A user's own oracle in Python: any structure, at the price of calling back into Python for each oracle call.

Users subclass `Oracle` (`oracle`) in a module of their own and name it as "module:Class". Every process creates one object
per split, which compiled code calls through numba's object mode (about 5 us per call). Local coordinates are
the weights themselves: B_i = I and m_i(y) = phi(x_i, y). Where a block touches few weights, B_i holds only the columns of
I that `coordinates(i)` lists. Oracles hold the GIL, so use `compute=processes` or `compute=cluster` for parallel calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit, objmode
from numba.extending import overload

from gapwise.records import Facts, Record
from gapwise.stages.problems.answers import answer_of, ask
from gapwise.stages.problems.capabilities import ESTIMATE, EXACT, UPPER_BOUNDED, Capabilities, is_accuracy
from gapwise.stages.problems.compiled import COUNTED, LINKED
from gapwise.stages.problems.held_out import HeldOut
from gapwise.stages.problems.kernel_cache import Kernel
from gapwise.stages.problems.losses import share
from gapwise.stages.problems.oracle import Oracle as Oracle
from gapwise.stages.problems.oracle import has_bound, labels_of, load_oracle, object_for, packed_spec
from gapwise.stages.problems.protocol import JIT, dot, frozen
from gapwise.stages.problems.user_code import oracle_source


def call(spec: np.ndarray, method: str, i: int, given: np.ndarray, out: np.ndarray) -> float:
    """out <- the checked answer of a method of the user's object for block i; returns a number.

    The number is the answer itself (`loss`, `max_bound`), the loss of the answer (`max_oracle`), how many labellings there
    are (`max_oracles`, rows of `out`), or 0. Errors name class, method and block.
    """
    oracle = object_for(spec.tobytes())
    if method == "max_oracles":
        rows = answer_of(oracle, method, i, given, out.shape[1], len(out))
        out[: len(rows)] = rows
        return float(len(rows))
    answer = answer_of(oracle, method, i, given, out.size)
    if not out.size:
        return float(answer)
    out[:] = answer
    return answer_of(oracle, "loss", i, out) if method == "max_oracle" else 0.0


@njit(**COUNTED)  # without nogil: callers have released the GIL, and object mode takes it back for the call
def _inside(spec, method, i, given, out):
    with objmode(number="float64"):
        number = call(spec, method, i, given, out)
    return number  # noqa: RET504  object mode cannot return


def value(spec, i, theta, y):
    """<theta, phi(x_i, y)>."""
    phi = np.empty(theta.size)
    call(spec, "features", i, y, phi)
    return dot(theta, phi)


def add(spec, i, y, c, out):
    """out += c phi(x_i, y)."""
    phi = np.empty(out.size)
    call(spec, "features", i, y, phi)
    for j in range(out.size):
        out[j] += c * phi[j]


_register: Kernel = overload  # its stub lacks jit_options; Python calls the functions themselves
_compiled = partial(_register, jit_options={**JIT, **LINKED})
_compiled(call)(
    lambda spec, method, i, given, out: lambda spec, method, i, given, out: _inside(spec, method, i, given, out)
)
_compiled(value)(lambda spec, i, theta, y: value)
_compiled(add)(lambda spec, i, y, c, out: add)


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
    def oracle_cost(self) -> float:
        """About 1 ms and 30 us, whatever the class computes: by a clock each machine would have bits of its own."""
        return 33.0

    @property
    def oracle(self) -> Oracle:
        """This process's object of the user's class."""
        return object_for(self.spec.tobytes())

    @property
    def name(self) -> str:
        """That of the user's class."""
        return type(self.oracle).__name__

    @property
    def certainty(self) -> str:
        """EXACT; of an approximate oracle UPPER_BOUNDED if the user's class defines `max_bound`, else ESTIMATE."""
        if not self.oracle.approximate:
            return EXACT
        return UPPER_BOUNDED if has_bound(self.oracle) else ESTIMATE

    @property
    def accuracy(self) -> float | None:
        """The multiplicative accuracy that the user's oracle declares."""
        return self.oracle.accuracy

    def scores(self, i, w, theta):
        if self.ids.size == 0:
            for j in range(theta.size):
                theta[j] = w[j]
        else:
            lo = self.local_ptr[i]
            for j in range(theta.size):
                theta[j] = w[self.ids[lo + j]]

    def max_oracle(self, i, theta, y, scratch):
        return call(self.spec, "max_oracle", i, theta, y)

    def max_oracles(self, i, theta, m, labels, losses, scratch):
        count = int(call(self.spec, "max_oracles", i, theta, labels[:m]))
        for k in range(count):
            losses[k] = self.loss(i, labels[k])
        return count

    def max_oracles_scratch(self, m):
        return (np.empty(0),)

    def max_bound(self, i, theta, y, scratch):
        return call(self.spec, "max_bound", i, theta, theta[:0])

    def tightened(self) -> PythonOracle:
        """The problem itself: its only bound is the user's."""
        return self

    def decode(self, i, theta, y, scratch):
        call(self.spec, "decode", i, theta, y)

    def value(self, i, theta, y):
        return value(self.spec, i, theta, y)

    def add(self, i, y, c, out):
        add(self.spec, i, y, c, out)

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
        return call(self.spec, "loss", i, y, y[:0])

    def least_loss(self, i: int) -> float:
        return float(answer_of(self.oracle, "least_loss", i))

    def scratch(self):
        return (np.empty(0),)


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> PythonOracle:
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
    more: Record = {"and": others} if others else {}  # joined for a refit
    rule = HeldOut.of(meta.get("validation"))
    if (
        "block" in arrays and rule is not None
    ):  # some of the training blocks are held out; here are the others, they, or both
        more["part"] = {"rule": meta["validation"], "held_out": [*dict.fromkeys(map(rule, arrays["block"].tolist()))]}
    packed = packed_spec(meta["oracle"], split, meta["arguments"], **more)
    oracle = object_for(packed.tobytes())
    n, d = len(arrays["labels_ptr"]) - 1, int(meta["d"])
    if (len(oracle), oracle.d) != (n, d):
        raise ValueError(
            f"python_oracle: {meta['oracle']} has {len(oracle)} blocks and d = {oracle.d} here, {n} and {d} in the "
            "features; its data have changed, or differ on this machine"
        )
    nu = oracle.accuracy
    if nu is not None and not (oracle.approximate and is_accuracy(nu)):
        raise ValueError(
            f"python_oracle: {meta['oracle']}: accuracy is {nu!r}; expected a number in (0, 1], and only with "
            "approximate = True"
        )
    return first_blocks(packed, arrays)


def first_blocks(packed: np.ndarray, arrays: Mapping[str, np.ndarray]) -> PythonOracle:
    """The problem over the blocks in `arrays`, the first ones of the object that `packed` names (`packed_spec`)."""
    oracle, n = object_for(packed.tobytes()), len(arrays["labels_ptr"]) - 1
    d, labels = int(oracle.d), labels_of(oracle)
    local = arrays["ids_ptr"] if "ids" in arrays else np.arange(n + 1) * d
    return PythonOracle(
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
    labels = labels_of(oracle)
    if oracle.d != w.size:
        raise ValueError(
            f"python_oracle: {meta['oracle']} has d = {oracle.d} for {split!r}, but the model has {w.size}"
        )
    rows = []
    for i in range(ask(f"{type(oracle).__name__}.__len__: {split}", len, oracle)):
        ids = answer_of(oracle, "coordinates", i, split=split)
        rows.append(answer_of(oracle, "decode", i, w if ids is None else w[ids], split=split))
    if not rows:
        raise ValueError(f"python_oracle: {meta['oracle']} has no blocks for {split!r}")
    flat = np.concatenate(rows).astype(np.uint8 if labels <= 256 else np.int16)
    return flat, np.cumsum([0, *map(len, rows)], dtype=np.int64)


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing besides what the reader writes is stored."""
    return {}


def metrics(problem: PythonOracle, arrays: Mapping[str, np.ndarray], predictions: np.ndarray) -> dict[str, float]:
    """Share of the entries of the flat `predictions` that differ from the truth."""
    return {"label_error": share(predictions != problem.truth)}


CAPABILITIES = Capabilities(
    learns="predict structures of your own",
    calls_python=True,
    split_names=("split",),
    decoded=decoded,
    falling=("label_error",),
)
