"""Margin vectors: what they are, that steps by them keep what steps by features keep, and resume to the same bits.

The instances are too small for margin vectors to be worth their memory, so they are kept by force, in a Python without the
compiler: the code is the same for all structures.
"""

from __future__ import annotations

import numpy as np
import pytest
from dense import optimum
from equality import assert_same_path
from single import ACCELERATED_LAM as LAM
from single import accelerated_of, never, slots_of, solver_of
from solved import options_of, path_of, solved, stopped_and_resumed
from tiny import TINY, feature_matrix, local, potts

from gapwise.stages.solver import dual_point
from gapwise.stages.solver.block import by_margins as margins
from gapwise.stages.solver.block.by_margins import MOST_BYTES, by_margins, no_rows, with_rows
from gapwise.stages.solver.block.step import step
from gapwise.stages.solver.codes import ORACLE_ALWAYS
from gapwise.stages.solver.objective import Goal, dual_value
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.visits import run_steps

pytestmark = pytest.mark.interpreted


@pytest.fixture
def margins_kept(monkeypatch):
    """Margin vectors wherever steps can take them."""
    monkeypatch.setattr(dual_point, "worth_keeping", lambda problem, atoms: True)


@pytest.mark.parametrize("name", ["segmentation", "potts"])
def test_vectors__are_differences_of_joint_features_in_rows_of_their_own(margins_kept, name):
    problem, seen = potts(meta={"slack": 0.0}) if name == "potts" else TINY[name](), 0
    solver = solver_of(problem, LAM, cache="gap", capacity=2, refresh_every=2)

    def boundary(solver):
        nonlocal seen
        pool, rows = solver.it.state.pool, []
        for i in range(problem.n):
            B, length = feature_matrix(problem, i), problem.label_ptr[i + 1] - problem.label_ptr[i]
            truth = local(problem, i, problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]])
            for s in slots_of(pool, i):
                if pool.row[s] >= 0:
                    expected = B @ (truth - local(problem, i, pool.labels[s, :length]))
                    np.testing.assert_allclose(solver.it.margins.rows.psi[pool.row[s]], expected, atol=1e-6)
                    rows.append(int(pool.row[s]))
        assert len(set(rows)) == len(rows)
        seen += len(rows)

    assert solver.solve(Goal(1e-3), boundary)[0] is Status.CONVERGED
    assert seen > 2 * problem.n


@pytest.mark.parametrize(("method", "name"), [("bcfw", "segmentation"), ("accelerated_at_mean", "multiclass_cone")])
def test_solve__ends_at_the_optimum_with_w_that_of_alpha(margins_kept, method, name):
    problem = TINY[name]()
    solver = accelerated_of(problem, method)
    assert solver.solve(Goal(1e-3), never)[0] is Status.CONVERGED
    assert solver.it.margins is not None
    best = optimum(problem, LAM)
    assert best - 1e-3 - 1e-6 <= solver.dual_value() <= best + 1e-6
    _, w = solver.it.v_and_weights()
    u, w, ell = solver.it.v_and_weights()[0].copy(), w.copy(), float(solver.it.state.z_ell[1])
    assert dual_value(ell, u, w, LAM, problem.lower, problem.upper) == pytest.approx(solver.dual_value(), abs=1e-12)
    known = solver.it.cached_gaps(w)
    solver.it.margins = None
    solver.it.derive()  # by features, from the pool alone
    np.testing.assert_allclose(solver.it.v_and_weights()[0], u, rtol=1e-7, atol=1e-7)
    assert ell == pytest.approx(float(solver.it.state.z_ell[1]), abs=1e-10)
    np.testing.assert_allclose(solver.it.cached_gaps(w), known, atol=1e-7)


@pytest.mark.parametrize(
    ("method", "name", "bound"), [("bcfw", "segmentation", MOST_BYTES), ("accelerated_at_mean", "multiclass", 0)]
)
def test_resume__is_bit_equal(margins_kept, tmp_path, monkeypatch, method, name, bound):
    monkeypatch.setattr(margins, "MOST_BYTES", bound)
    monkeypatch.setattr(margins, "SPARE", 64 if bound else 0)
    problem, path = TINY[name](), path_of(rule="two_sided", kappa=0.7, eps=0.1, lambda_min=0.5)
    options = options_of(method=method, capacity=3)
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(1).integers(0, 4, size=30)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 3
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


def test_oracle__that_returns_the_worst_labelling_moves_nothing(margins_kept, monkeypatch):
    """Its score by features and that by its margin vector differ by rounding, which is no slope."""
    problem = TINY["multiclass"]()
    solver = solver_of(problem, LAM, cache="gap", refresh_every=0)
    monkeypatch.setattr(
        "gapwise.stages.solver.block.by_margins.note_answer", lambda P, S, flags, i, *rest: (S.pool.head[i], 1e9)
    )
    solver.it.rebase()
    run_steps(solver.it, solver.it.flags(), np.empty(0, np.int64), 3 * problem.n)
    total = [solver.it.state.pool.alpha[slots_of(solver.it.state.pool, i)].sum() for i in range(problem.n)]
    np.testing.assert_allclose(total, 1.0)


def after_steps(change=lambda solver: None):
    """A solver after 40 steps, before which `change` is made, and the numbers of its state."""
    solver = solver_of(TINY["multiclass"](), LAM, cache="gap", refresh_every=0)
    solver.it.rebase()
    change(solver)
    run_steps(solver.it, solver.it.flags(), np.empty(0, np.int64), 40)
    S = solver.it.state
    return solver, (S.u, S.gap, S.counters, S.pool.alpha, S.pool.labels, S.pool.used)


def test_steps__go_on_where_rows_run_out(margins_kept, monkeypatch):
    """As if there had been enough: a step never begins without the rows that it may need."""
    asked = 0

    def few(known, pool):
        nonlocal asked
        asked += 1
        rows = with_rows(known, pool)
        return rows._replace(left=np.minimum(rows.left, pool.counts.max() + 2))

    _, expected = after_steps()
    monkeypatch.setattr(margins, "with_rows", few)
    _, found = after_steps(lambda solver: solver.it.margins.make_room(solver.it.state.pool))
    assert asked > 3
    for enough, short in zip(expected, found, strict=True):
        np.testing.assert_array_equal(enough, short)


def test_steps__do_not_depend_on_vectors_that_were_forgotten(margins_kept, monkeypatch):
    forgotten = 0

    def counted(known, pool):
        nonlocal forgotten
        before = (pool.row >= 0).sum()
        rows = with_rows(known, pool)
        forgotten += bool(before and not (pool.row >= 0).any())
        return rows

    def bounded(solver):
        monkeypatch.setattr(margins, "with_rows", counted)
        monkeypatch.setattr(margins, "SPARE", 0)
        monkeypatch.setattr(margins, "MOST_BYTES", 0)
        solver.it.margins.rows = no_rows(solver.problem.d)
        solver.it.state.pool.row[:] = -1

    _, expected = after_steps()
    solver, found = after_steps(bounded)
    assert forgotten > 3
    assert len(solver.it.margins.rows.psi) <= 2 * solver.it.state.pool.counts.max()
    for whole, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(whole, other)


def test_exhausted__looks_at_no_block(margins_kept):
    """It is asked before every step, so it knows the most atoms of a block, also after an oracle has added one."""
    problem = TINY["multiclass"]()
    solver = solver_of(problem, LAM, cache="gap", refresh_every=0)
    solver.it.rebase()
    it = solver.it
    it.make_room(problem.n)
    it.margins.make_room(it.state.pool)
    view = by_margins(problem, it.state, it.margins.rows)
    for _ in range(2):
        counts = it.state.pool.counts
        for left in (0, counts.max(), counts.max() + 1):
            assert view._replace(left=np.array([left])).exhausted() == (left <= counts.max())
        step(problem, it.state, view, solver.it.flags(vertex_from=ORACLE_ALWAYS), 2)
