"""What to do next with a finished run, in one line: how to go on after a limit, or what would certify more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapwise.stages.problems.certainty import ESTIMATE
from gapwise.stages.solver.options import ENDED, Status

ANOTHER = "another run, which shares these features"
"""What becomes of a command with another value of a key that makes the run's key."""


def what_next(found: Mapping[str, Any], solve: Mapping[str, Any] | None = None) -> str:
    """One line for a person; empty if there is nothing to advise.

    Parameters
    ----------
    found : mapping
        The content of result.json.
    solve : mapping, optional
        What the manifest says of the solve stage, where the limit of time is kept.
    """
    status, verify = found["status"], found["verify"]
    within = found.get("every_lambda_within")
    if isinstance(within, int | float) and status in ENDED:
        return f"path.eps={within / 2:.2g} or less goes on from here, in this directory"
    if status == Status.TIME_LIMIT:
        spent = (solve or {}).get("max_seconds")
        beyond = (
            f"solver.max_seconds above {spent:g}" if isinstance(spent, int | float) else "a larger solver.max_seconds"
        )
        return f"time ran out: the same command with {beyond} goes on from here, in this directory"
    if status == Status.PASS_LIMIT:
        all_solved = all(record.get("status") == Status.CONVERGED for record in found["path"])
        return _beyond("path.max_breakpoints" if all_solved else "solver.max_passes")
    if status == Status.ORACLE_LIMIT:
        return _beyond("solver.max_oracle_calls")
    if found.get("kind") == "heuristic":
        return f"path=regpath certifies every λ ({ANOTHER})"
    epsilon = verify.get("epsilon")
    if not verify["certified"] or verify.get("certainty") == ESTIMATE or status != Status.CONVERGED or not epsilon:
        return ""
    key = "path.tolerance" if found.get("rule", "given") == "given" else "path.eps"
    reached = verify["max_gap"] if 0.0 < verify["max_gap"] <= epsilon / 2 else epsilon
    return f"{key}={reached / 2:.3g} certifies half the gap ({ANOTHER}) · gapwise diff compares runs"


def _beyond(key: str) -> str:
    return f"the limit was {key}: a larger one solves from the beginning ({ANOTHER})"
