"""A user's oracle: over all weights, and over few of them for each block."""

from __future__ import annotations

from memory_sink import read

from gapwise.stages.datasets import open_dataset
from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem


def python_oracle(name: str = "Pairs", **arguments) -> Problem:
    """A user's oracle, built from the arrays that its reader would store."""
    sink, facts = read(open_dataset("python_oracle", {"oracle": f"python_task:{name}", "arguments": arguments}))
    return build("python_oracle", sink.arrays("train"), facts)


def python_oracle_sparse() -> Problem:
    """Blocks touch few of the weights, one of which is bounded."""
    return python_oracle("SparsePairs")


INSTANCES = {"python_oracle": python_oracle, "python_oracle_sparse": python_oracle_sparse}
LABELS = {"PythonOracle": lambda problem: problem.labels}
