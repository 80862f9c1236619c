"""A stop between two rebase points: noticed soon, the last rebase point kept, and the same bits in the end."""

from __future__ import annotations

import math
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same_path
from single import solver_of
from solved import AT_MEAN, SINGLE, Kept, bits_of, options_of, path_of, restored, solved
from tiny import chain, multiclass

from gapwise.stages import Stopped
from gapwise.stages.certify.recompute import rebuild_zero
from gapwise.stages.problems import parallel
from gapwise.stages.problems.parallel import MOST_VISITS, MOST_WORK, Pace, Spread
from gapwise.stages.solver import dual_point, ledger
from gapwise.stages.solver.block.by_margins import Margins
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.exact import exact_pass
from gapwise.stages.solver.methods import methods
from gapwise.stages.solver.options import LEAST_FALL, Status
from gapwise.stages.solver.visits import visit
from gapwise.storage import sink
from gapwise.storage.commits import CommitStore
from gapwise.storage.results import read_trace


class StopAtCheck:
    """check() raises at its `left`-th call."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Stopped


def test_stop__between_rebase_points_costs_no_bit(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sink, "KEPT_SECONDS", 0.0)
    problem, path = multiclass(n=9), path_of(**SINGLE)
    options = options_of(rebase_steps=40)
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)  # every step is a piece
    generations = []
    for left in (7, 40, 90, 150, 60):
        try:
            solved(problem, tmp_path / "parts", options, path, spread=Spread(check=StopAtCheck(left)))
        except Stopped:
            generations.append(CommitStore(tmp_path / "parts" / "state", {"key": "k"}).load() is not None)
    assert all(generations[1:])  # the first stop may come before there is a state to keep
    solved(problem, tmp_path / "parts", options, path)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


EVERY_STOP = {
    **{name: {"method": name} for name in (*methods(), AT_MEAN)},
    "lists": {"method": AT_MEAN, "n_best": 2},
    "ssg with average": {"method": "ssg", "averaging": "weighted"},
    "mpbcfw with two averages": {"method": "mpbcfw", "averaging": "two_track"},
}


@pytest.mark.interpreted
@pytest.mark.parametrize("held", [True, False], ids=["held", "not held"])
@pytest.mark.parametrize("case", sorted(EVERY_STOP))
def test_stop__at_any_check_leaves_a_state_of_the_undisturbed_solve(monkeypatch, case: str, held: bool) -> None:
    """Every method, stopped at each place where a stop is noticed; what is committed goes on with the same bits.

    Where no offer is held, a stop may only come where the present state can be committed.
    """
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)  # every step is a piece
    choices = {"method": "bcfw", **EVERY_STOP[case]}
    if choices["method"] in ("eg", "ssg", "fw"):
        choices["max_passes"] = 5.0
    options = options_of(**choices)
    problem = chain(lengths=(2, 1, 2)) if case == "lists" else multiclass(n=5)
    task = Task(problem, options, path_of(rule="grid", lambdas=[0.3, 0.05], tolerance=0.02))
    whole = Kept()
    (*_, last) = Engine.begin(task).walk(sink=whole)
    boundaries = {bits_of(state): k for k, state in enumerate(whole.offers)}
    state, left, at, stops = None, 1, -1, 0
    while True:
        spread, sink = Spread(check=StopAtCheck(left)), Kept(held, state)
        try:
            engine = Engine.begin(task, spread) if state is None else restored(task, state, spread)
            (*_, end) = engine.walk(sink=sink)
        except Stopped:
            stops, state = stops + 1, sink.state
            assert state is None or bits_of(state) in boundaries
            reached = -1 if state is None else boundaries[bits_of(state)]
            left, at = (left + 1, at) if reached == at else (1, reached)
        else:
            break
    assert stops >= len(boundaries)
    np.testing.assert_array_equal(end.weights, last.weights)
    assert (end.point, end.oracle_calls) == (last.point, last.oracle_calls)


def test_stop__does_not_reach_steps_whose_rebase_point_is_not_kept(tmp_path: Path, monkeypatch) -> None:
    """Where rebase points are close, the next one is waited for: no work is lost."""
    monkeypatch.setattr(sink, "KEPT_SECONDS", 1e9)
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)
    problem, asked = multiclass(n=9), []
    far = options_of(rebase_steps=40, refresh_every=0, max_passes=30.0)

    def stop() -> bool:
        asked.append(len(asked))
        return len(asked) > 3

    def check() -> None:
        steps = sys._getframe(1).f_code.co_name == "check_stop"
        if steps and len(asked) > 1:  # the first rebase point is always kept
            raise Stopped

    status = solved(
        problem, tmp_path, far, path_of(**{**SINGLE, "tolerance": 1e-12}), stop=stop, spread=Spread(check=check)
    )
    assert status is Status.INTERRUPTED
    assert len(asked) == 4


LONG, SHORT = 25_005_000, 870
"""Local coordinates of a token with 5,000 labels, and of a word of OCR."""


def sizes_of_pieces(widths: np.ndarray) -> list[int]:
    """Blocks of every piece of a pass over blocks of these local sizes that a clock never ends."""
    work = np.concatenate([[0], np.cumsum(widths)])
    return Pace().run(lambda a, b: b - a, 0, widths.size, lambda: None, work)


def test_pieces__hold_as_much_work_as_the_sizes_of_the_problem_allow(monkeypatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    assert set(sizes_of_pieces(np.full(50, LONG))) == {1}
    most = MOST_WORK // SHORT
    sizes = sizes_of_pieces(np.full(5 * most, SHORT))
    assert max(sizes) == most
    assert len(sizes) < 30
    assert max(sizes_of_pieces(np.ones(4 * MOST_VISITS, np.int64))) == MOST_VISITS
    mixed = sizes_of_pieces(np.concatenate([np.full(5 * most, SHORT), np.full(9, LONG), np.full(50, SHORT)]))
    assert mixed[-9:] == [1] * 8 + [51]  # although 190,000 blocks before them took no time


@pytest.mark.parametrize("way", ["by features", pytest.param("by margins", marks=pytest.mark.interpreted)])
def test_passes__in_pieces_have_the_bits_of_one_piece(monkeypatch, way: str) -> None:
    """Rebase points, gaps over the cache, and the move of keep_primal; `chunk_length` is 64, so pieces end within chunks."""
    problem = multiclass(n=150)
    states = []
    for size in (1, 7, 1 << 40):
        solver = solver_of(problem, sampler="permutation", cache="gap", step="pairwise")
        it = solver.it
        solver.it.rebase()
        exact_pass(it)
        visit(solver.it, rounds=2)
        it.margins = Margins.at_rebase(it.margins, problem, it.state.pool, way == "by margins")
        pieces = []
        width = int(problem.local_ptr[1])
        work = parallel.work_before(problem)

        def over(fn, P, size=size, pieces=pieces, work=work, width=width):
            edges = [*range(0, P.n, size), P.n]
            for a, b in pairwise(edges):
                pieces.append(int(work[b] - work[a]) // width)
                fn(a, b)

        monkeypatch.setattr(it.ledger, "over_blocks", over, raising=False)
        it.derive()
        gaps, u = it.cached_gaps(it.state.w), it.state.u.copy()
        it.move_to(0.5 * it.counts.lam, "keep_primal")
        assert max(pieces) == min(size, problem.n)
        states.append((u, it.state.ell.copy(), gaps, it.state.gap.copy(), it.state.pool.alpha.copy()))
    for one, other, whole in zip(*states, strict=True):
        np.testing.assert_array_equal(one, whole)
        np.testing.assert_array_equal(other, whole)
        assert np.any(whole)


def test_verify__in_pieces_has_the_bits_of_one_piece(monkeypatch) -> None:
    problem = multiclass(n=130)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    whole, pieces = rebuild_zero(problem), []

    def in_order(self, fn, P):
        pieces.append(7)
        return [fn(a, min(a + 7, P.n)) for a in range(0, P.n, 7)]

    monkeypatch.setattr(Spread, "in_order", in_order)
    zero = rebuild_zero(problem)
    assert pieces
    assert (zero.hinge, zero.psi_norm2, zero.psi_scale) == (whole.hinge, whole.psi_norm2, whole.psi_scale)
    np.testing.assert_array_equal(zero.psi, whole.psi)


def test_stop__ends_the_first_rebase_of_a_solve(monkeypatch) -> None:
    """Before the first state there is nothing to keep, so nothing is waited for."""
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)
    calls = StopAtCheck(3)
    engine = Engine.begin(Task(multiclass(n=150), options_of(), path_of(**SINGLE)))
    engine.solver.ledger.spread = Spread(check=calls)
    engine.solver.ledger.pace.size = 1
    with pytest.raises(Stopped):
        engine.solver.it.rebase()


def test_spread__checks_between_pieces_and_keeps_the_order(monkeypatch) -> None:
    monkeypatch.setattr(parallel, "PIECE_SECONDS", 0.0)
    checks = []
    spread, problem = Spread(check=lambda: checks.append(1)), multiclass(n=50)
    w = np.zeros(problem.d)
    parts = spread.blocks(lambda problem, w, blocks: blocks, problem, w, range(50))
    assert np.concatenate(parts).tolist() == list(range(50))
    assert len(checks) == 50
    seen = np.zeros(50, int)
    spread.over_threads(lambda a, b: seen.__setitem__(slice(a, b), seen[a:b] + 1), parallel.work_before(problem))
    assert seen.tolist() == [1] * 50
    assert np.concatenate(spread.in_order(lambda a, b: np.arange(a, b), problem)).tolist() == list(range(50))


def test_stalled_lambda__ends_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As if the dual value were wrong: P - D stays above the tolerance, however often the exact pass is repeated."""
    monkeypatch.setattr(ledger, "STALLED", 8)
    options, path = options_of(max_passes=math.inf), path_of(**{**SINGLE, "tolerance": 1e-3})
    right = dual_point.DualPoint.dual_and_excess
    monkeypatch.setattr(
        dual_point.DualPoint, "dual_and_excess", lambda self, w: (right(self, w)[0], right(self, w)[1] + 0.1)
    )
    assert solved(multiclass(), tmp_path, options, path) is Status.STALLED
    gaps = read_trace(tmp_path)["gap"]
    assert gaps.size % 8 == 0
    assert gaps[-8:].min() > 0.1
    assert gaps[-8:].min() > (1.0 - LEAST_FALL) * gaps[-16:-8].min()
