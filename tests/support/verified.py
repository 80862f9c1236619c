"""Small runs for the tests of verify: solved once, and copied to be tampered with."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path

from solved import method_named
from tiny import TINY, multiclass

from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status

KINDS = {
    "two_sided": {"rule": "two_sided", "kappa": 0.7, "eps": 0.02, "lambda_min": 0.3},
    "two_sided_whole": {"rule": "two_sided", "kappa": 0.7, "eps": 0.05, "relative": True},
    "paper": {"rule": "paper", "lambda_min": 0.3},
    "anytime_whole": {"rule": "anytime", "eps": 0.05},
    "anytime": {"rule": "anytime", "eps": 0.05, "lambda_min": 0.3},
    "heuristic": {"rule": "heuristic", "kappa": 0.7, "lambda_min": 0.3},
    "grid": {"rule": "grid", "lambdas": [1.0, 0.2, 0.05], "tolerance": 1e-3},
    "relative": {"rule": "grid", "lambdas": [1.0, 0.2, 0.05], "tolerance": 1e-2, "relative": True},
    "single": {"rule": "single", "lam": 0.1, "tolerance": 1e-3},
    "tight": {"rule": "single", "lam": 0.1, "tolerance": 1e-12},
    "limited": {"rule": "two_sided", "lambda_min": 0.05, "eps": 0.001},
}


def problem_of(name: str, kind: str):
    """Tiny data; separable data if the hinge has to fall to eps."""
    if not kind.endswith("_whole"):
        return TINY[name]()
    assert name == "multiclass"
    return multiclass(width=9, classes=3)


FOLDER = tempfile.TemporaryDirectory(prefix="gapwise-verify-")


@functools.cache
def run_of(name: str, kind: str, **choices) -> Path:
    run = Path(tempfile.mkdtemp(dir=FOLDER.name))
    path = PathOptions(**{"eps": 0.1, "kappa": 0.9, **KINDS[kind]})
    limit = 6.0 if kind == "limited" else 1000.0
    choices = method_named(choices)
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=limit, rebase_steps=20, **choices)
    options.check()
    status = solve(Task(problem_of(name, kind), options, path), run, key="k")
    assert status is (Status.PASS_LIMIT if kind == "limited" else Status.CONVERGED)
    return run


def copy_of(run: Path, folder: Path) -> Path:
    shutil.copytree(run, folder / "run")
    return folder / "run"
