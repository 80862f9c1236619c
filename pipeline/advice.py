"""What to do next with a finished run, in one line: how to go on after a limit, or what would certify more."""

from __future__ import annotations

from gapwise.records import Facts
from gapwise.stages.certify.verdict import Doubt, Reach, verdict_of
from gapwise.stages.solver.options import ENDED, STALLED, Status

FINEST = 1e-10
"""Share of the objective below which a gap is taken for rounding: no smaller tolerance would certify less."""
ANOTHER = "a new run; it reuses these features"
"""What becomes of a command with another value of a key that makes the run's key."""


def what_next(result: Facts, solve: Facts | None = None) -> str:
    """One line for a person; empty if there is nothing to advise.

    Parameters
    ----------
    found : mapping
        The content of result.json.
    solve : mapping, optional
        What the manifest says of the solve stage, where the limit of time is kept.
    """
    status, verdict = result["status"], verdict_of(result["verdict"])
    within = result.get("every_lambda_within")
    if isinstance(within, int | float) and status in ENDED - {Status.ROUNDING_LIMIT}:
        return f"path.eps={within / 2:.2g} or less goes on from here, in this directory"
    if status == Status.TIME_LIMIT:
        spent = (solve or {}).get("max_seconds")
        beyond = (
            f"solver.max_seconds above {spent:g}" if isinstance(spent, int | float) else "a larger solver.max_seconds"
        )
        return f"time ran out: the same command with {beyond} goes on from here, in this directory"
    if status == Status.PASS_LIMIT:
        all_solved = all(record.get("status") == Status.CONVERGED for record in result["path"])
        return _beyond("path.max_breakpoints" if all_solved else "solver.max_passes")
    if status == Status.STALLED:
        return f"no limit was reached, but {STALLED:,} exact passes gained nothing: ask for a larger gap ({ANOTHER})"
    if status == Status.ORACLE_LIMIT:
        return _beyond("solver.max_oracle_calls")
    if verdict.rounded:
        return f"rounding hides whether the tolerance is met: ask for a larger path.tolerance ({ANOTHER})"
    if verdict.doubt is Doubt.HEURISTIC:
        return f"path=regpath certifies every λ ({ANOTHER})"
    if not verdict.certified or status != Status.CONVERGED or not verdict.allowed:
        return ""
    key, reached = "path.eps", verdict.largest_gap
    if verdict.reach is Reach.SOLVED:
        key = "path.tolerance"
        if all(record["gap"] <= FINEST * record["primal"] for record in result["path"]):
            return "the gap is as small as rounding allows · gapwise ls compares runs"
        if verdict.relative:  # then `allowed` is a share of the dual value
            reached = max(record["gap"] / (record["primal"] - record["gap"]) for record in result["path"])
    half = (reached if reached is not None and 0.0 < reached <= verdict.allowed / 2 else verdict.allowed) / 2
    return f"{key}={half:.3g} certifies half the gap ({ANOTHER}) · gapwise ls compares runs"


def _beyond(key: str) -> str:
    return f"the limit was {key}: a larger one solves from the beginning ({ANOTHER})"
