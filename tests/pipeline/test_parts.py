"""A user's method, path rule with its twin, and step rule work in the whole pipeline.

They are in a folder on PYTHONPATH that has the tree of the project, of which no file changes. (A structure and a data set:
tests/problems; figures: tests/stages; a stage: tests/pipeline/test_stage_graph.py.) Runs without the JIT, to take seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gapwise.stages.solver.methods import methods
from gapwise.storage.paths import open_path
from gapwise.storage.results import read_path

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

SUBGRADIENT = '''
"""Stochastic subgradient descent with Pegasos steps: no dual point, so nothing is certified (LJ13 section 5)."""

import math
import time
from dataclasses import asdict, dataclass

import numpy as np

from gapwise.stages.parallel import HERE
from gapwise.stages.solver.counts import Counts
from gapwise.stages.solver.objective import squared_norm
from gapwise.stages.solver.options import MethodOptions, Status, check
from gapwise.stages.solver.oracles import corners_at

@dataclass
class Options(MethodOptions):
    offset: float = 1.0

    def check(self):
        super().check()
        check("solver.offset", self.offset, self.offset > 0, "a number > 0")


class Subgradient:
    specs = (("w", ("feature",), "f8", "primal point"), ("toy_trace", ("row", "column"), "f8", "a row a pass"))
    certifies, untouched, rewrites_w, known_gap = False, False, True, math.nan

    def __init__(self, problem, options, spread):
        self.problem, self.options, self.spread = problem, options, spread
        self.at, self.trace, self.w, self.steps, self.hinges = Counts(), [], np.zeros(problem.d), 0, np.empty(0)

    @classmethod
    def begin(cls, problem, options, pool, seed, *, own_primal=True, spread=HERE):
        return cls(problem, options, spread)

    @classmethod
    def restored(cls, problem, options, seed, arrays, attrs, *, own_primal=True, spread=HERE):
        found = cls(problem, options, spread)
        found.w, found.steps, found.at = arrays["w"].copy(), attrs["steps"], Counts(**attrs["at"])
        found.trace = [tuple(row) for row in arrays["toy_trace"].tolist()]
        return found

    def packed(self):
        rows = np.array(self.trace, dtype=float).reshape(-1, 10)
        return {"w": self.w, "toy_trace": rows}, {"steps": self.steps, "at": asdict(self.at)}

    def solve(self, tolerance, boundary, *, relative=False, exact=True):
        P, lam = self.problem, self.at.lam
        while True:
            stop = boundary(self)
            if stop:
                return stop, None
            if self.passes_here >= self.options.max_passes:
                return Status.PASS_LIMIT, None
            started = time.perf_counter()
            for i in range(P.n):
                size, scratch = P.local_ptr[i + 1] - P.local_ptr[i], P.scratch()
                theta, delta = np.zeros(size), np.zeros(size)
                truth = P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]
                y = truth.copy()
                P.scores(i, self.w, theta)
                P.max_oracle(i, theta, y, scratch)
                P.add(i, truth, 1.0, delta)
                P.add(i, y, -1.0, delta)
                self.steps += 1
                rate = 1.0 / (lam * (self.steps + self.options.offset))
                self.w *= 1.0 - rate * lam
                P.push(i, rate, delta, self.w)
            self.at.seconds += time.perf_counter() - started
            primal = 0.5 * lam * squared_norm(self.w) + self.mean_hinge()
            calls = self.oracle_calls
            self.trace.append(
                (self.at.breakpoint, lam, calls / P.n, calls, self.steps, 0.0, 0.0, math.nan, math.nan, primal)
            )

    def mean_hinge(self):
        P = self.problem
        return float(np.sum(corners_at(P, self.w, range(P.n), self.spread).hinge)) / P.n

    point = property(lambda self: self.w)
    oracle_calls = property(lambda self: self.at.initial_calls + self.steps)
    passes_here = property(lambda self: (self.oracle_calls - self.at.calls_before) / self.problem.n)

    def warm_up(self): ...
    def primal(self): return self.w
    def supports(self): return None
    def block_gaps(self): return np.full(self.problem.n, np.nan)
    def dual_value(self): return math.nan

    def start_lambda(self, lam, breakpoint, *, exact_due=False):
        self.at.lam, self.at.breakpoint, self.at.calls_before = lam, breakpoint, self.oracle_calls

    def move_to(self, lam, breakpoint, warm_start):
        self.start_lambda(lam, breakpoint)


METHOD = Subgradient
'''

HALVES = '''
"""Every breakpoint at half the lambda of the one before, or where `one_sided` certifies down to, if that is higher."""

from dataclasses import dataclass, replace

from gapwise.stages.solver.path.rules.one_sided import OneSided


@dataclass
class Halves(OneSided):
    def following(self, solved):
        found = super().following(solved)
        half = 0.5 * solved.point.lam
        return replace(found, lam=half, low=half) if found.low < half and found.lam == found.low else found


RULE = Halves
'''

TWIN = '''
"""The twin of `halves`: it certifies as `one_sided` does."""

from gapwise.stages.certify.one_sided import OneSided

TWIN = OneSided
'''

STEP = '''
"""Towards the corner, or from the worst atom to it, whichever is better: never away."""

from gapwise.stages.solver.steps import FW, PAIRWISE, StepRule

STEP = StepRule(FW + PAIRWISE)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "stages/solver/methods/subgradient.py": SUBGRADIENT,
        "stages/solver/path/rules/halves.py": HALVES,
        "stages/certify/halves.py": TWIN,
        "stages/solver/steps/forwards.py": STEP,
        "conf/solver/subgradient.yaml": "name: subgradient\nmethod: subgradient\noffset: 2.0\nmax_passes: 60\n"
        "max_seconds: .inf\n",
    }
    for name, text in files.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder: Path, *words: str, code: int = 0, **env: str) -> tuple[Path, str]:
    """The pipeline on four pairs of labels, with the folder's parts; the run directory, and all it said."""
    path = os.pathsep.join(str(part) for part in (folder / "own", ROOT, ROOT / "tests" / "support"))
    command = [sys.executable, "-m", "pipeline", "--config-dir", str(folder / "own" / "conf"), "tracking=none",
               "compute=serial", "dataset=python_oracle", "dataset.oracle=python_task:Pairs", *words]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "GAPWISE_RUNS": str(folder / "runs"), **env}
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=240)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    return Path(last.removeprefix("run: ")), said


def test_method__without_a_certificate_runs_to_the_end_and_says_so(folder: Path) -> None:
    made, said = run(folder, "solver=subgradient", "path=grid", "path.lambdas=[1.0,0.1]")
    arrays, attrs = read_path(made / "path.zarr")
    assert attrs["method"] == "subgradient"
    assert not attrs["certified"]
    assert np.isnan(arrays["gap"]).all()
    assert np.isnan(arrays["dual"]).all()
    assert (arrays["effective_passes"] == 60.0).all()
    assert "no dual point" in said
    assert "every certificate holds" not in said
    result = json.loads((made / "result.json").read_text())
    assert result["verify"]["certified"] is False
    assert (made / "figures" / "losses.png").is_file()
    assert open_path(made).weights_at(0.1).shape == (7,)
    trained = arrays["primal"]
    assert trained[1] < 1.0, "the loss of w = 0 is 1 at most, and the steps have made it smaller"


def test_method__is_refused_where_a_path_needs_a_dual_point(folder: Path) -> None:
    _, said = run(folder, "solver=subgradient", "path.lambda_min=0.1", code=1)
    assert "solver.method: subgradient has no dual point" in said
    _, said = run(folder, "solver=subgradient", "solver.offset=-1", "path=single", code=2)
    assert "solver.offset: expected a number > 0" in said


@pytest.mark.long  # tests/stages/test_resume.py does it for every supplied method
def test_method__goes_on_from_what_it_has_committed(folder: Path) -> None:
    words = ("solver=subgradient", "path=single", "path.lambda=0.1", "checkpoint.every_seconds=0")
    whole, _ = run(folder, *words)
    other = {"GAPWISE_RUNS": str(folder / "other")}
    run(folder, *words, "solver.max_seconds=1e-9", code=1, **other)
    parts, _ = run(folder, *words, "solver.max_seconds=inf", **other)
    for name, array in read_path(whole / "path.zarr")[0].items():
        if name != "seconds":
            assert array.tobytes() == read_path(parts / "path.zarr")[0][name].tobytes(), name


def test_rule__and_step_rule_are_certified_like_any_other(folder: Path) -> None:
    made, said = run(folder, "path.rule=halves", "path.lambda_min=0.1", "solver.step=forwards")
    lams = read_path(made / "path.zarr")[0]["lambda"]
    assert (lams[1:] >= 0.5 * lams[:-1]).all()
    assert np.any(lams[1:] == 0.5 * lams[:-1])
    assert "every certificate holds" in said
    assert open_path(made).weights_at(float(0.7 * lams[0])).shape == (7,)


def test_names__of_parts_that_are_not_there_are_refused_with_those_there_are(folder: Path) -> None:
    _, said = run(folder, "solver.method=nothing", code=2)
    known = ", ".join(sorted([*methods(), "subgradient"]))
    assert f"solver.method: expected one of {known}, got 'nothing'" in said
    _, said = run(folder, "path.rule=nothing", code=2)
    known = "anytime, grid, halves, heuristic, one_sided, paper, single, two_sided"
    assert f"path.rule: expected one of {known}, got 'nothing'" in said
    _, said = run(folder, "solver.step=nothing", code=2)
    assert "solver.step: expected one of away, best, forwards, fw, pairwise, got 'nothing'" in said
