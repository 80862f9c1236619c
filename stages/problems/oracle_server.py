"""An oracle in any language: a program that answers one line of JSON with one line of JSON (`server.Server`).

Each process that computes starts a program of its own for each split. The first question tells it the split, all others
concern one block; blocks count from 0, and the methods are those of `oracle.Oracle`:

    {"ask":"hello","split":"train"}             {"blocks": 50, "d": 9, "labels": 2}
    {"ask":"truth","block":0}                   {"answer": [0, 1, 1, 0]}
    {"ask":"features","block":0,"y":[0,1,1,0]}  {"answer": [0.5, 0, ...]}      d numbers
    {"ask":"loss","block":0,"y":[0,1,1,0]}      {"answer": 0.25}
    {"ask":"max_oracle","block":0,"theta":[…]}  {"answer": [1, 1, 0, 0]}       theta: d numbers, which is w
    {"ask":"decode","block":0,"theta":[…]}      {"answer": [1, 1, 1, 0]}

Any answer may be ``{"error": "what is wrong"}``, as one to "features" or "loss" must be for a row that is no labelling of
the block. The greeting may also have ``"lower"`` and ``"upper"``, rows of d numbers, null where there is no bound;
``"approximate": true``, and then ``"accuracy"``, the multiplicative accuracy of `oracle.Oracle`, such as 0.8; and
``"answers"``, a list of further questions that the program understands: "least_loss", whose answer is a number, or null for
a block with only one labelling, and "coordinates", different numbers of weights, which "features" and theta are then
restricted to, and "max_oracles", up to m different labellings, that of "max_oracle" first (`solver.n_best`):

    {"ask":"max_oracles","block":0,"theta":[…],"m":3}  {"answer": [[1, 1, 0, 0], [1, 0, 0, 0]]}

With ``dataset.bounded=true`` it is also asked for "max_bound", with theta. An answer may repeat the "block";
then it must be that of the question.

Questions have these keys in this order and no spaces; numbers are written so that reading them gives the same bits. The
program must flush each line, give the same answer to the same question also after a new start, and end when its input ends.
"""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from gapwise.records import Record
from gapwise.stages.problems.certainty import is_accuracy
from gapwise.stages.problems.oracle import Oracle
from gapwise.stages.problems.server import Server, ServerError

MEMORY = 1 << 26
"""Bytes for a cache of features: a step needs the features of a labelling several times."""


class ServerOracle(Oracle):
    """The blocks of one split, as a program knows them.

    Parameters
    ----------
    command : str
        The program and its arguments, with a shell's quotes but no shell.
    files : sequence of str
        Files that it reads; a run's key has their contents, and those of all words of the command that name files.
    """

    def __init__(self, split: str, command: str, files: Sequence[str] = ()) -> None:
        self.server = Server(command, {"ask": "hello", "split": split})
        said = self.server.greeting
        self.n, self.d = self._size(said, "blocks"), self._size(said, "d")
        self.labels = self._size(said, "labels")
        self.lower, self.upper = (_bounds(said.get(name, ()), side) for name, side in (("lower", -1), ("upper", 1)))
        self.approximate = said.get("approximate", False)
        if not isinstance(self.approximate, bool):
            self._refuse("approximate", self.approximate, "true or false")
        self.accuracy = said.get("accuracy")
        if self.accuracy is not None and not (self.approximate and is_accuracy(self.accuracy)):
            self._refuse("accuracy", self.accuracy, 'a number in (0, 1], and only with "approximate": true')
        answers = said.get("answers", [])
        if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
            self._refuse("answers", answers, "a list of questions that it understands")
        self.known = frozenset(answers)
        remembered = max(16, MEMORY // (8 * self.d))
        self._features = functools.lru_cache(remembered)(self._ask_features)

    @classmethod
    def files(cls, **arguments: Any) -> list[Path]:
        """The declared files, and the words of the command that name a file."""
        command, files = arguments["command"], arguments.get("files", ())
        return [Path(word) for word in (*shlex.split(command), *files) if word in files or Path(word).is_file()]

    def _size(self, said: Record, name: str) -> int:
        value = said.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self._refuse(name, value, "an integer >= 1")
        return value

    def _refuse(self, name: str, value: object, expected: str) -> NoReturn:
        raise ServerError(f"{self.server.command}: says {name} = {value!r} in its greeting; expected {expected}")

    def __len__(self) -> int:
        return self.n

    def truth(self, i: int) -> ArrayLike:
        return self._ask("truth", i)

    def features(self, i: int, y: np.ndarray) -> ArrayLike:
        return self._features(i, tuple(y.tolist()))

    def _ask_features(self, i: int, y: tuple[int, ...]) -> np.ndarray:
        return np.asarray(self._ask("features", i, y=y))

    def loss(self, i: int, y: np.ndarray) -> float:
        return self._ask("loss", i, y=y.tolist())

    def max_oracle(self, i: int, theta: np.ndarray) -> ArrayLike:
        return self._ask("max_oracle", i, theta=theta.tolist())

    def max_oracles(self, i: int, theta: np.ndarray, m: int) -> Sequence[ArrayLike]:
        answers = self._ask("max_oracles", i, theta=theta.tolist(), m=int(m))
        if not isinstance(answers, list):
            raise ServerError(f"{self.server.command}: its answer to 'max_oracles' must be a list of labellings")
        return answers

    @property
    def lists(self) -> bool:
        """Whether the program understands "max_oracles"."""
        return "max_oracles" in self.known

    def decode(self, i: int, theta: np.ndarray) -> ArrayLike:
        return self._ask("decode", i, theta=theta.tolist())

    def least_loss(self, i: int) -> float:
        if "least_loss" not in self.known:
            return 0.0
        least = self._ask("least_loss", i)
        return math.inf if least is None else least

    def coordinates(self, i: int) -> np.ndarray | None:
        return np.asarray(self._ask("coordinates", i)) if "coordinates" in self.known else None

    def _ask(self, question: str, i: int, **more: object) -> Any:
        answer = self.server.ask({"ask": question, "block": int(i), **more})
        if "answer" not in answer:
            raise ServerError(f'{self.server.command}: its answer to {question!r} has no "answer": {sorted(answer)}')
        return answer["answer"]


class BoundedServerOracle(ServerOracle):
    """With bounds on the maxima of an approximate oracle."""

    def max_bound(self, i: int, theta: np.ndarray) -> float:
        return self._ask("max_bound", i, theta=theta.tolist())


def _bounds(row: Sequence[float | None] | None, side: int) -> list[float]:
    """A row of bounds, infinite where it has null; [] without a row."""
    return [side * math.inf if value is None else value for value in row or ()]
