"""A move and a sampler of one's own, each from one file in a folder on PYTHONPATH, in the one loop; and the views' names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny import TINY
from toys import CYCLIC, HALF

from gapwise.stages.solver import margins
from gapwise.stages.solver.block.choice import DIRECTIONS, N_MOVES, Seen, choose
from gapwise.stages.solver.block.moves import bit, moves
from gapwise.stages.solver.block.samplers import samplers
from gapwise.stages.solver.block.views.chosen import views_of
from gapwise.stages.solver.methods import method as recipe
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions
from gapwise.stages.solver.sampling import GAP, MAX_GAP, PERMUTATION, UNIFORM
from gapwise.stages.solver.setup import Setup
from gapwise.stages.solver.state import truth_pool
from gapwise.stages.solver.steps import AWAY, FW, PAIRWISE, step_rule

SUPPORT = Path(__file__).resolve().parents[1] / "support"

SCRIPT = """
import json, sys
import numpy as np
from importlib import import_module

for kind in ("moves", "samplers"):  # one's own folder, as discovery sees it
    import_module(f"gapwise.stages.solver.block.{kind}").__path__.append(f"{sys.argv[1]}/{kind}")

from gapwise.stages.solver.block.samplers import samplers
from gapwise.stages.solver.codes import CACHE_FIRST, POOL_FULL
from gapwise.stages.solver.loop import steps_driver
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.state import derive, new_state, truth_pool
from gapwise.stages.solver.steps import step_rule
from gapwise.stages.solver.supports import grown
from pools import slots_of
from tiny import TINY

P, lam, found = TINY["chain"](), 0.3, {}
n, run = P.n, steps_driver(P)
for name, (step, sampler) in json.loads(sys.argv[2]).items():
    rule, S = step_rule(step), new_state(P, truth_pool(P))
    flags = Flags(samplers().index(sampler), rule.kinds, rule.by_slope, True, CACHE_FIRST, 1, 0.0, 0.25, 0.01, 50, 1.0,
                  False, 1.0 / (lam * n), 1.0, -1.0, 10**9)
    derive(P, S, flags.scale)
    moved = 0
    for turn in range(300):
        made, why = run(P, S, flags, np.random.default_rng(0), np.arange(n), n)
        moved = moved if turn else int((S.pool.counts > 1).sum())
        if why == POOL_FULL:
            S = S._replace(pool=grown(list(S.pool), 1))
    alpha = [S.pool.alpha[slots_of(S.pool, i)] for i in range(n)]
    least = min(float(a[-1]) for a in alpha)  # the truth is the oldest atom
    dual = float(S.z_ell[1] - 0.5 * lam * S.u @ S.u)
    found[name] = [least, moved, [float(a.sum()) for a in alpha], dual]
print(json.dumps(found))
"""


@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=[pytest.mark.long, pytest.mark.slow])])
def test_move__and_sampler_of_ones_own_run_in_the_one_loop(tmp_path: Path, jit: bool) -> None:
    asked = {"supplied": ("pairwise", "permutation"), "move": ("half", "permutation"), "both": ("half", "cyclic"),
             "sampler": ("fw", "cyclic")}  # fmt: skip
    for name, text in {"moves/half.py": HALF, "samplers/cyclic.py": CYCLIC}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = os.pathsep.join(str(part) for part in (SUPPORT, SUPPORT.parents[1]))
    kernels = {name: str(tmp_path / "kernels") for name in ("GAPWISE_KERNELS", "NUMBA_CACHE_DIR")}
    env = {**os.environ, **kernels, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": str(int(not jit))}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), json.dumps(asked)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout.splitlines()[-1])
    for name, (_, _, sums, dual) in runs.items():
        assert sums == pytest.approx([1.0] * len(sums)), name
        assert dual == pytest.approx(runs["supplied"][3], abs=1e-2), name
    assert runs["supplied"][0] == 0.0, "a block has dropped its truth"
    assert runs["move"][0] > 0.0, "a step gives away at most half of an atom's weight"
    assert runs["both"][1] == runs["move"][1], "n steps in turn visit every block once, as a permutation does"


def test_moves__have_the_bits_of_the_step_rules() -> None:
    assert (bit("fw"), bit("pairwise"), bit("away")) == (FW, PAIRWISE, AWAY)
    assert len(moves()) == N_MOVES
    assert DIRECTIONS[:3] == (FW, PAIRWISE, AWAY)
    assert step_rule("best").kinds == FW + PAIRWISE + AWAY


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ["away", "best"])
def test_away__is_made_although_the_oracle_has_nothing_better_than_the_mean(name: str) -> None:
    """The answer of an approximate oracle may be worth less than the mean of the labellings at hand: it is no vertex."""
    rule = step_rule(name)
    view = SimpleNamespace(allowed_moves=lambda flags: rule.kinds, measure_move=lambda *arguments: 2.0)
    flags, state = (
        SimpleNamespace(by_slope=rule.by_slope, scale=1.0),
        SimpleNamespace(pool=SimpleNamespace(alpha=[0.5, 0.5])),
    )
    seen = Seen(base=1.0, best=0, h_best=1.5, away=1, h_away=0.5, active=2)
    assert choose(None, state, view, flags, 0, seen, -1, 0.2) == (AWAY, 0.25, 0.5, 2.0)
    assert choose(None, state, view, flags, 0, seen._replace(active=1), -1, 0.2).gamma == 0.0


def test_samplers__have_the_numbers_that_compiled_code_knows() -> None:
    numbers = [samplers().index(name) for name in ("uniform", "permutation", "gap", "max_gap")]
    assert numbers == [UNIFORM, PERMUTATION, GAP, MAX_GAP]


@pytest.mark.parametrize(
    ("method", "views"),
    [("bcfw", ("features", "features")), ("accelerated", ("features", "distances")), ("mpbcfw", ("distances",) * 2),
     ("fasole", ("distances",) * 2), ("cutting_plane_nslack", ("features", "distances"))],
)  # fmt: skip
def test_views__are_those_that_the_method_chooses(method: str, views: tuple[str, str]) -> None:
    problem = TINY["multiclass"]()
    solver = recipe(method).begin(problem, method_options(method=method), truth_pool(problem), 0)
    solver.start_lambda(0.3, 0)
    solver.rebase()
    assert solver.iterate.views == views


def test_views__are_margins_where_they_may_serve_and_save_time(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = TINY["multiclass"]()
    may = Setup.of(method_options(cache=CacheOptions(kind="gap")), margins=True)
    for worth in (False, True):
        monkeypatch.setattr(margins, "worth_keeping", lambda problem, atoms, worth=worth: worth)
        assert views_of(problem, may, problem.n) == (("margins",) * 2 if worth else ("features",) * 2)
        assert views_of(problem, replace(may, margins=False), problem.n) == ("features", "features")
