"""A problem whose methods are called as compiled code, one by one, as the solver's loop compiles them.

So the checks of `contract` see what the solver will see, and a method that numba cannot compile is named.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numba import config, errors, njit

from gapwise.stages.problems import moves
from gapwise.stages.problems.contract import ContractError, Writeable, read_only, writeable
from gapwise.stages.problems.kernel_types import Kernel
from gapwise.stages.problems.protocol import JIT, Problem
from gapwise.stages.problems.user_code import told


@njit(**JIT)
def _scores(P, i, w, theta):
    P.scores(i, w, theta)


@njit(**JIT)
def _max_oracle(P, i, theta, y, scratch):
    return P.max_oracle(i, theta, y, scratch)


@njit(**JIT)
def _max_oracles(P, i, theta, m, labels, losses, scratch):
    return P.max_oracles(i, theta, m, labels, losses, scratch)


@njit(**JIT)
def _max_oracles_scratch(P, m):
    return P.max_oracles_scratch(m)


@njit(**JIT)
def _max_bound(P, i, theta, y, scratch):
    return P.max_bound(i, theta, y, scratch)


@njit(**JIT)
def _decode(P, i, theta, y, scratch):
    P.decode(i, theta, y, scratch)


@njit(**JIT)
def _value(P, i, theta, y):
    return P.value(i, theta, y)


@njit(**JIT)
def _add(P, i, y, c, out):
    P.add(i, y, c, out)


@njit(**JIT)
def _norm2(P, i, delta):
    return P.norm2(i, delta)


@njit(**JIT)
def _push(P, i, c, delta, w):
    P.push(i, c, delta, w)


@njit(**JIT)
def _loss(P, i, y):
    return P.loss(i, y)


@njit(**JIT)
def _scratch(P):
    return P.scratch()


@njit(**JIT)
def _max_marginals(P, i, theta, y, out, scratch):
    P.max_marginals(i, theta, y, out, scratch)


@njit(**JIT)
def _n_best(P, i, theta, m, labels, values, scratch):
    return P.n_best(i, theta, m, labels, values, scratch)


@njit(**JIT)
def _ranked_scratch(P, m):
    return P.ranked_scratch(m)


@njit(**JIT)
def _pair_norm2(P, i, y, z, delta):
    return moves.pair_norm2(P, i, y, z, delta)


@njit(**JIT)
def _pair_norms(P, i, k, labels, slots, row_of, squared, first, width, delta):
    moves.pair_norms(P, i, k, labels, slots, row_of, squared, first, width, delta)


@njit(**JIT)
def _pair_push(P, i, c, y, z, delta, w):
    moves.pair_push(P, i, c, y, z, delta, w)


@njit(**JIT)
def _pair_move(P, i, c, y, z, delta, w):
    moves.pair_move(P, i, c, y, z, delta, w)


@njit(**JIT)
def _pair_follow(P, i, c, y, z, w, theta, delta):
    moves.pair_follow(P, i, c, y, z, w, theta, delta)


@njit(**JIT)
def _score_labels(P, i, w, labels, slots, theta, scores):
    moves.score_labels(P, i, w, labels, slots, theta, scores)


FUNCTIONS: dict[str, Kernel] = {
    "scores": _scores, "max_oracle": _max_oracle, "max_bound": _max_bound, "decode": _decode, "value": _value, "add": _add,
    "norm2": _norm2, "push": _push, "loss": _loss, "scratch": _scratch, "pair_norm2": _pair_norm2,
    "pair_norms": _pair_norms, "pair_push": _pair_push, "pair_move": _pair_move, "pair_follow": _pair_follow,
    "score_labels": _score_labels, "max_marginals": _max_marginals, "n_best": _n_best, "ranked_scratch": _ranked_scratch,
    "max_oracles": _max_oracles, "max_oracles_scratch": _max_oracles_scratch,
}  # fmt: skip


class _Compiled:
    """A problem whose methods are the compiled `FUNCTIONS`; all other attributes are the problem's."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __getattr__(self, name: str) -> Any:
        if name == "problem":  # before __init__, while it is unpickled
            raise AttributeError(name)
        return getattr(self.problem, name)

    def __reduce__(self) -> tuple[Kernel, tuple[Problem, Writeable]]:
        return _again, (self.problem, writeable(self.problem))


def _again(problem: Problem, which: Writeable) -> Problem:
    return compiled(read_only(problem, which))


def _forwarded(name: str) -> Kernel:
    def call(self: _Compiled, *arguments: object) -> object:
        given = [_plain(value) for value in arguments]
        try:
            return FUNCTIONS[name](self.problem, *given)
        except errors.NumbaError as error:
            raise ContractError(f"{type(self).__name__}.{name}: does not compile: {_in_short(error)}") from error
        except Exception as error:
            block = f" block {given[0]}:" if given else ""
            raise ContractError(f"{type(self).__name__}.{name}:{block} {_raised(error)}") from error

    return call


def _raised(error: Exception) -> str:
    """What a method raised, and where, which compiled code does not say."""
    if vars(config)["DISABLE_JIT"]:
        return told(error)
    return f"{type(error).__name__}: {error}; NUMBA_DISABLE_JIT=1 names the line"


def _plain(value: object) -> object:
    """A copy of a read-only array, so that methods see one type of array and are compiled once."""
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        return value.copy()
    return int(value) if isinstance(value, np.integer) else value


COLOUR, PLACE = re.compile(r"\x1b\[\d+m"), re.compile(r'File "([^"]+)", line (\d+)')
REASON = re.compile(
    r"Error: (?!Failed in)(.+)|((?:No implementation|Unknown|Cannot|Untyped|Invalid|Use of|Undecided) .+)"
)


def _in_short(error: errors.NumbaError) -> str:
    """Of numba's page of text the innermost reason, and the first line of code that is not of this file."""
    text = COLOUR.sub("", str(error))
    reasons = [first or second for first, second in REASON.findall(text)] or [text.strip().splitlines()[-1]]
    origins = [
        f"{Path(file).name}, line {line}"
        for file, line in PLACE.findall(text)
        if Path(file).name != Path(__file__).name
    ]
    where = f" ({origins[0]})" if origins else ""
    return f"{reasons[-1].strip()}{where}; NUMBA_DISABLE_JIT=1 runs it as plain Python"


def compiled(problem: Problem) -> Problem:
    """The same problem, whose methods are compiled at their first call; without the JIT they are the plain ones."""
    known = FUNCTIONS.keys() & {*dir(type(problem))}
    methods = {name: _forwarded(name) for name in known}
    same: Problem = type(type(problem).__name__, (_Compiled,), methods)(problem)
    return same
