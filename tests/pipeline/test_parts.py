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
from dataclasses import asdict, dataclass, field

import numpy as np

from gapwise.stages.solver.codes import ORACLE_CALLS, STEPS
from gapwise.stages.solver.counts import Counts
from gapwise.stages.solver.ledger import restored_trace
from gapwise.stages.solver.objective import Certificate, squared_norm
from gapwise.stages.solver.options import MethodOptions, check
from gapwise.stages.solver.oracles import corners_at
from gapwise.stages.solver.schedule import Capabilities, Schedule
from gapwise.stages.solver.solver import Recipe

SPECS = (
    ("w", ("feature",), "f8", "primal point"),
    ("steps", ("counter",), "i8", "steps and oracle calls"),
    ("trace", ("row", "column"), "f8", "a row a pass"),
)


@dataclass
class Options(MethodOptions):
    offset: float = 1.0

    def check(self):
        super().check()
        check("solver.offset", self.offset, self.offset > 0, "a number > 0")


@dataclass
class Point:
    problem: object
    ledger: object
    w: np.ndarray
    fresh: bool = False
    known_gap: float = math.nan
    hinges: np.ndarray = field(default_factory=lambda: np.empty(0))

    def rebase(self): ...
    def primal(self): return self.w
    def supports(self): return None
    def block_gaps(self): return np.full(self.problem.n, np.nan)
    def dual_value(self): return math.nan
    def begin_lambda(self, lam, breakpoint, exact_due): self.ledger.begin_lambda(lam, breakpoint)
    def move_to(self, lam, warm_start): ...

    def mean_hinge(self):
        P = self.problem
        return float(np.sum(corners_at(P, self.w, range(P.n), self.ledger.spread).hinge)) / P.n

    def packed(self):
        arrays = {"w": self.w.copy(), "steps": self.ledger.counters.copy(), "trace": self.ledger.packed_trace()}
        return arrays, {"counts": asdict(self.ledger.at)}


def begin(problem, options, pool, seed, ledger):
    return Point(problem, ledger, np.zeros(problem.d))


def restored(problem, options, seed, arrays, attrs, ledger):
    ledger.at, ledger.trace = Counts(**attrs["counts"]), restored_trace(arrays["trace"])
    ledger.counters[:] = arrays["steps"]
    return Point(problem, ledger, arrays["w"].copy())


def schedule(it, options, own_primal):
    P, ledger = it.problem, it.ledger

    def advance(goal):
        lam = ledger.at.lam
        for i in range(P.n):
            size, scratch = P.local_ptr[i + 1] - P.local_ptr[i], P.scratch()
            theta, delta = np.zeros(size), np.zeros(size)
            truth = P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]
            y = truth.copy()
            P.scores(i, it.w, theta)
            P.max_oracle(i, theta, y, scratch)
            P.add(i, truth, 1.0, delta)
            P.add(i, y, -1.0, delta)
            ledger.counters[[STEPS, ORACLE_CALLS]] += 1
            rate = 1.0 / (lam * (ledger.steps + options.offset))
            it.w *= 1.0 - rate * lam
            P.push(i, rate, delta, it.w)
        ledger.record(Certificate(lam, math.nan, it.mean_hinge(), math.nan, squared_norm(it.w), math.nan))
        status = ledger.limit()
        return (status, None) if status else None

    return Schedule(advance, rewrites_w=True)


METHOD = Recipe(schedule, begin, restored, SPECS, capabilities=Capabilities(certifies=False))
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
    assert "path.rule: expected one of anytime, halves, one_sided, paper, two_sided, got 'nothing'" in said
    _, said = run(folder, "solver.step=nothing", code=2)
    assert "solver.step: expected one of away, best, forwards, fw, pairwise, got 'nothing'" in said
