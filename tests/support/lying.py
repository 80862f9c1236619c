"""Problems whose oracle in Python answers wrongly: built past the checks of the reader."""

from __future__ import annotations

from typing import Any

from memory_sink import read

from gapwise.stages.datasets import open_dataset
from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.problems.user_code import oracle_source


def lying(how: str, **arguments: Any) -> Problem:
    """`python_task.Lying` over the features of the honest `python_task.Pairs`."""
    shape = {name: arguments[name] for name in ("n", "width") if name in arguments}
    sink, facts = read(open_dataset("python_oracle", {"oracle": "python_task:Pairs", "arguments": shape}))
    name = "python_task:Lying"
    meta = {**facts, "oracle": name, "arguments": {"how": how, **arguments}, "source": oracle_source(name)}
    return build("python_oracle", sink.arrays("train"), meta)
