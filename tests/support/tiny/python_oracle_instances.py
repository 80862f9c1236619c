"""A user's oracle: over all weights, and over few of them for each block."""

from __future__ import annotations

from memory_sink import read

from gapwise.stages.datasets import open_dataset
from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.user_code import oracle_source


def python_oracle(name: str = "Pairs", **arguments) -> Problem:
    """A user's oracle, built from the arrays that its reader would store."""
    sink, facts = read(open_dataset("python_oracle", {"oracle": f"python_task:{name}", "arguments": arguments}))
    return build("python_oracle", sink.arrays("train"), facts)


def python_oracle_sparse() -> Problem:
    """Blocks touch few of the weights, one of which is bounded."""
    return python_oracle("SparsePairs")


def lying(how: str, **arguments) -> Problem:
    """`python_task.Lying` over the features of the honest `python_task.Pairs`, past the checks of the reader."""
    shape = {name: arguments[name] for name in ("n", "width") if name in arguments}
    sink, facts = read(open_dataset("python_oracle", {"oracle": "python_task:Pairs", "arguments": shape}))
    name = "python_task:Lying"
    meta = {**facts, "oracle": name, "arguments": {"how": how, **arguments}, "source": oracle_source(name)}
    return build("python_oracle", sink.arrays("train"), meta)


INSTANCES = {"python_oracle": python_oracle, "python_oracle_sparse": python_oracle_sparse}
LABELS = {"PythonOracle": lambda problem: problem.labels}
