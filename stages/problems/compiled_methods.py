"""A problem whose methods are called as compiled code, one by one, as the solver's loop compiles them.

So the checks of `contract` see what the solver will see, and a method that numba cannot compile is named.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import numpy as np
from numba import config, errors, njit

from gapwise.stages.problems import moves
from gapwise.stages.problems.contract import ContractError, Writeable, read_only, writeable
from gapwise.stages.problems.kernel_cache import Kernel
from gapwise.stages.problems.protocol import JIT, Problem
from gapwise.stages.problems.user_code import told

NAMES = (
    "scores", "max_oracle", "max_bound", "decode", "value", "add", "norm2", "push", "loss", "scratch", "max_oracles",
    "max_oracles_scratch", "max_marginals", "n_best", "ranked_scratch", "pair_norm2", "pair_move", "score_labels",
)  # fmt: skip
"""Methods that compiled code calls, as far as a structure has them (`protocol`, `moves`)."""


@functools.cache
def _method(name: str) -> Kernel:
    """A compiled function that calls a structure's method of this name, or the function of `moves` that does."""
    move: Any = getattr(moves, name, None)

    def of_problem(P, *arguments):
        return getattr(P, name)(*arguments)

    def by_move(P, *arguments):
        return move(P, *arguments)

    made: Kernel = njit(**JIT)(of_problem if move is None else by_move)
    return made


class _Compiled:
    """A problem whose methods are compiled; all other attributes are the problem's."""

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
            return _method(name)(self.problem, *given)
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
    methods = {name: _forwarded(name) for name in NAMES if hasattr(type(problem), name)}
    same: Problem = type(type(problem).__name__, (_Compiled,), methods)(problem)
    return same
