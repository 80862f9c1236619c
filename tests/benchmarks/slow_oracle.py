"""Any stored problem with an oracle that really waits: an oracle in Python that sleeps, then calls the compiled one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from stages.featurize import open_problem
from stages.problems.protocol import Problem
from stages.problems.python_oracle import Oracle, PythonOracle, build, oracle_source

KEPT = 20_000
"""Feature vectors that are kept, so that approximate passes do not compute them again."""


class Slow(Oracle):
    """The blocks of a feature store; each call of the max-oracle takes `seconds` longer."""

    def __init__(self, split: str, features: str, seconds: float) -> None:
        self.problem, self.seconds = open_problem(Path(features), split), seconds
        self.d, self.labels = self.problem.d, self.problem.labels
        self.scratch = self.problem.scratch()
        self.known: dict[tuple[int, bytes], np.ndarray] = {}

    def __len__(self) -> int:
        return self.problem.n

    def truth(self, i: int) -> np.ndarray:
        ptr = self.problem.label_ptr
        return self.problem.truth[ptr[i] : ptr[i + 1]]

    def features(self, i: int, y: np.ndarray) -> np.ndarray:
        key = (i, y.tobytes())
        if key not in self.known:
            ptr = self.problem.local_ptr
            m, phi = np.zeros(ptr[i + 1] - ptr[i]), np.zeros(self.d)
            self.problem.add(i, y, 1.0, m)
            self.problem.push(i, 1.0, m, phi)
            if len(self.known) >= KEPT:
                self.known.clear()
            self.known[key] = phi
        return self.known[key]

    def loss(self, i: int, y: np.ndarray) -> float:
        return float(self.problem.loss(i, y))

    def max_oracle(self, i: int, theta: np.ndarray) -> np.ndarray:
        time.sleep(self.seconds)
        local, y = np.zeros(np.diff(self.problem.local_ptr)[i]), self.truth(i).copy()
        self.problem.scores(i, theta, local)
        self.problem.max_oracle(i, local, y, self.scratch)
        return y

    def decode(self, i: int, theta: np.ndarray) -> np.ndarray:
        local, y = np.zeros(np.diff(self.problem.local_ptr)[i]), self.truth(i).copy()
        self.problem.scores(i, theta, local)
        self.problem.decode(i, local, y, self.scratch)
        return y


def slowed(features: Path, seconds: float) -> tuple[Problem, PythonOracle]:
    """A stored problem, and the same one with an oracle that waits."""
    problem, name = open_problem(features, "train"), "slow_oracle:Slow"
    arguments: dict[str, Any] = {"features": str(features), "seconds": seconds}
    meta = {"oracle": name, "arguments": arguments, "source": oracle_source(name), "d": problem.d}
    arrays = {"labels": problem.truth, "labels_ptr": problem.label_ptr, "split": np.frombuffer(b"train", np.uint8)}
    return problem, build(arrays, meta)
