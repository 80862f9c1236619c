"""Calls from compiled code to a user's `Oracle`, through numba's object mode (about 5 us per call).

Compiled code names the object by `spec`, uint8: JSON with the class, the split and its arguments. Each process creates the
object of a `spec` at the first call.
"""

from __future__ import annotations

import json
import threading

import numpy as np
from numba import njit, objmode

from gapwise.records import Facts
from gapwise.stages.problems.answers import bound as finite_bound
from gapwise.stages.problems.answers import describe, labelling, numbers, signed, task_loss
from gapwise.stages.problems.held_out import HeldOut
from gapwise.stages.problems.inner import COUNTED
from gapwise.stages.problems.oracle import Oracle, load_oracle
from gapwise.stages.problems.oracle_part import joined, part_of
from gapwise.stages.problems.protocol import JIT, dot

CALL = COUNTED
"""Without nogil: callers have released the GIL, and object mode takes it back for the call."""


@njit(**CALL)
def max_oracle(spec, i, theta, y):
    """y <- the user's loss-augmented argmax; returns its loss."""
    with objmode(loss="float64"):
        loss = ask_best(spec, i, theta, y)
    return loss  # noqa: RET504  object mode cannot return


@njit(**CALL)
def max_oracles(spec, i, theta, m, labels, losses):
    """labels, losses <- the user's up to m answers and their losses; returns how many there are."""
    with objmode(count="int64"):
        count = ask_several(spec, i, theta, m, labels, losses)
    return count  # noqa: RET504  object mode cannot return


@njit(**CALL)
def max_bound(spec, i, theta):
    """The user's bound on the maximum."""
    with objmode(bound="float64"):
        bound = ask_bound(spec, i, theta)
    return bound  # noqa: RET504  object mode cannot return


@njit(**CALL)
def decode(spec, i, theta, y):
    """y <- the user's argmax."""
    with objmode():
        ask_decoded(spec, i, theta, y)


@njit(**CALL)
def features(spec, i, y, phi):
    """phi <- the user's joint features of y."""
    with objmode():
        ask_features(spec, i, y, phi)


@njit(**JIT)
def value(spec, i, theta, y):
    """<theta, phi(x_i, y)>."""
    phi = np.empty(theta.size)
    features(spec, i, y, phi)
    return dot(theta, phi)


@njit(**JIT)
def add(spec, i, y, c, out):
    """out += c phi(x_i, y)."""
    phi = np.empty(out.size)
    features(spec, i, y, phi)
    for j in range(out.size):
        out[j] += c * phi[j]


@njit(**CALL)
def loss(spec, i, y):
    """The user's task loss of y."""
    with objmode(loss_of_y="float64"):
        loss_of_y = ask_loss(spec, i, y)
    return loss_of_y  # noqa: RET504  object mode cannot return


def ask_best(spec: np.ndarray, i: int, theta: np.ndarray, y: np.ndarray) -> float:
    """y <- the answer of the user's `max_oracle`; returns its loss.

    Here and below a ValueError names class, method and block, whether the method raised an error or its answer is invalid.
    """
    oracle = object_for(spec.tobytes())
    try:
        y[:] = labelling(oracle.max_oracle(i, theta.copy()), oracle.labels, y.size)
    except (Exception, SystemExit) as error:
        raise _refused(oracle, "max_oracle", i, error) from error
    return _checked_loss(oracle, i, y)


def ask_several(spec: np.ndarray, i: int, theta: np.ndarray, m: int, labels: np.ndarray, losses: np.ndarray) -> int:
    """labels, losses <- the answers of the user's `max_oracles`; returns how many there are. Each is checked as one is."""
    oracle = object_for(spec.tobytes())
    try:
        rows = list(oracle.max_oracles(i, theta.copy(), m))
        if not 1 <= len(rows) <= m:
            raise ValueError(f"the answer must be from 1 to {m} labellings, got {len(rows)}")
        for k, row in enumerate(rows):
            labels[k] = labelling(row, oracle.labels, labels.shape[1])
        if len({row.tobytes() for row in labels[: len(rows)]}) < len(rows):
            raise ValueError(f"the labellings must be different, got {labels[: len(rows)].tolist()}")
    except (Exception, SystemExit) as error:
        raise _refused(oracle, "max_oracles", i, error) from error
    for k in range(len(rows)):
        losses[k] = _checked_loss(oracle, i, labels[k])
    return len(rows)


def ask_decoded(spec: np.ndarray, i: int, theta: np.ndarray, y: np.ndarray) -> None:
    """y <- the answer of the user's `decode`."""
    oracle = object_for(spec.tobytes())
    try:
        y[:] = labelling(oracle.decode(i, theta.copy()), oracle.labels, y.size)
    except (Exception, SystemExit) as error:
        raise _refused(oracle, "decode", i, error) from error


def ask_features(spec: np.ndarray, i: int, y: np.ndarray, phi: np.ndarray) -> None:
    """phi <- the answer of the user's `features`."""
    oracle = object_for(spec.tobytes())
    try:
        phi[:] = numbers(oracle.features(i, signed(y)), phi.shape)
    except (Exception, SystemExit) as error:
        raise _refused(oracle, "features", i, error) from error


def ask_loss(spec: np.ndarray, i: int, y: np.ndarray) -> float:
    """The answer of the user's `loss`."""
    return _checked_loss(object_for(spec.tobytes()), i, y)


def ask_bound(spec: np.ndarray, i: int, theta: np.ndarray) -> float:
    """The answer of the user's `max_bound`."""
    oracle = object_for(spec.tobytes())
    try:
        return finite_bound(oracle.max_bound(i, theta.copy()))
    except (Exception, SystemExit) as error:
        raise _refused(oracle, "max_bound", i, error) from error


def _checked_loss(oracle: Oracle, i: int, y: np.ndarray) -> float:
    try:
        return task_loss(oracle.loss(i, signed(y)))
    except (Exception, SystemExit) as error:
        raise _refused(oracle, "loss", i, error) from error


def _refused(oracle: Oracle, method: str, i: int, error: BaseException) -> ValueError:
    return ValueError(f"{type(oracle).__name__}.{method}: block {i}: {describe(error)}")


_objects: dict[bytes, Oracle] = {}
_making = threading.Lock()


def object_for(spec: bytes) -> Oracle:
    """This process's object for `spec`; created at first use."""
    known = _objects.get(spec)
    if known is None:
        with _making:
            if spec not in _objects:
                _objects[spec] = _created(json.loads(spec))
            known = _objects[spec]
    return known


def _created(spec: Facts) -> Oracle:
    """The object of a split, or of several joined; with ``part`` = {rule, held_out} only the blocks that it names."""
    splits = (spec["split"], *spec.get("and", ()))
    objects = [load_oracle(spec["oracle"], split, spec["arguments"]) for split in splits]
    oracle = objects[0] if len(objects) == 1 else joined(objects)
    part = spec.get("part")
    rule = None if part is None else HeldOut.of(part["rule"])
    if part is None or rule is None:
        return oracle
    return part_of(oracle, np.flatnonzero(rule.among(len(oracle)) == part["held_out"]))
