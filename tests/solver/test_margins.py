"""Margin vectors: what they are, that steps by them keep what steps by features keep, and resume to the same bits.

The instances are too small for margin vectors to be worth their memory, so they are kept by force, in a Python without the
compiler: the code is the same for all structures.
"""

from __future__ import annotations

import numpy as np
import pytest
from dense import optimum
from equality import assert_same_path
from parts_of import visits_of
from pools import slots_of
from single import ACCELERATED_LAM as LAM
from single import accelerated_of, never, solver_of
from solved import options_of, path_of, solved, stopped_and_resumed
from tiny import TINY, feature_matrix, local, potts

from gapwise.stages.solver import margins
from gapwise.stages.solver.block.step import step
from gapwise.stages.solver.block.views.margins import by_margins
from gapwise.stages.solver.codes import ORACLE_ALWAYS
from gapwise.stages.solver.margins import MOST_BYTES, Margins, no_rows, with_rows, worth_keeping
from gapwise.stages.solver.objective import dual_value
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.supports import Pool, Supports, grown, unpack

pytestmark = pytest.mark.slow

NAMES = ("segmentation", "multiclass_cone")


@pytest.fixture
def margins_kept(monkeypatch):
    """Margin vectors wherever steps can take them."""
    monkeypatch.setattr(margins, "worth_keeping", lambda problem, atoms: True)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", [*NAMES, "potts"])
def test_vectors__are_differences_of_joint_features_in_rows_of_their_own(margins_kept, name):
    problem, seen = potts(meta={"slack": 0.0}) if name == "potts" else TINY[name](), 0
    solver = solver_of(problem, LAM, cache="gap", capacity=2, refresh_every=2)

    def boundary(solver):
        nonlocal seen
        pool, rows = solver.iterate.state.pool, []
        for i in range(problem.n):
            B, length = feature_matrix(problem, i), problem.label_ptr[i + 1] - problem.label_ptr[i]
            truth = local(problem, i, problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]])
            for s in slots_of(pool, i):
                if pool.row[s] >= 0:
                    expected = B @ (truth - local(problem, i, pool.labels[s, :length]))
                    np.testing.assert_allclose(solver.iterate.margins.rows.psi[pool.row[s]], expected, atol=1e-6)
                    rows.append(int(pool.row[s]))
        assert len(set(rows)) == len(rows)
        seen += len(rows)

    assert solver.solve(1e-3, boundary)[0] is Status.CONVERGED
    assert seen > 2 * problem.n


@pytest.mark.interpreted
@pytest.mark.parametrize(("method", "name"), [("bcfw", "segmentation"), ("accelerated_at_mean", "multiclass_cone")])
def test_solve__ends_at_the_optimum_with_w_that_of_alpha(margins_kept, method, name):
    problem = TINY[name]()
    solver = accelerated_of(problem, method)
    assert solver.solve(1e-3, never)[0] is Status.CONVERGED
    assert solver.iterate.margins is not None
    best = optimum(problem, LAM)
    assert best - 1e-3 - 1e-6 <= solver.dual_value() <= best + 1e-6
    _, w = solver.iterate.dual_point()
    u, w, ell = solver.iterate.dual_point()[0].copy(), w.copy(), float(solver.iterate.state.z_ell[1])
    assert dual_value(ell, u, w, LAM, problem.lower, problem.upper) == pytest.approx(solver.dual_value(), abs=1e-12)
    known = solver.iterate.cached_gaps(w)
    solver.iterate.margins = None
    solver.iterate.derive()  # by features, from the pool alone
    np.testing.assert_allclose(solver.iterate.dual_point()[0], u, rtol=1e-7, atol=1e-7)
    assert ell == pytest.approx(float(solver.iterate.state.z_ell[1]), abs=1e-10)
    np.testing.assert_allclose(solver.iterate.cached_gaps(w), known, atol=1e-7)


@pytest.mark.interpreted
@pytest.mark.parametrize("bound", [MOST_BYTES, 0])
@pytest.mark.parametrize(("method", "name"), [("bcfw", "segmentation"), ("accelerated_at_mean", "multiclass")])
def test_resume__is_bit_equal(margins_kept, tmp_path, monkeypatch, method, name, bound):
    monkeypatch.setattr(margins, "MOST_BYTES", bound)
    monkeypatch.setattr(margins, "SPARE", 64 if bound else 0)
    problem, path = TINY[name](), path_of(rule="two_sided", kappa=0.7, eps=0.1, lambda_min=0.5)
    options = options_of(method=method, capacity=3)
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(1).integers(0, 4, size=30)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 3
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.interpreted
def test_oracle__that_returns_the_worst_labelling_moves_nothing(margins_kept, monkeypatch):
    """Its score by features and that by its margin vector differ by rounding, which is no slope."""
    problem = TINY["multiclass"]()
    solver = solver_of(problem, LAM, cache="gap", refresh_every=0)
    monkeypatch.setattr(
        "gapwise.stages.solver.block.views.margins.note_answer", lambda P, S, flags, i, *rest: (S.pool.head[i], 1e9)
    )
    solver.rebase()
    visits_of(solver).run(visits_of(solver).flags(), np.empty(0, np.int64), 3 * problem.n)
    total = [solver.iterate.state.pool.alpha[slots_of(solver.iterate.state.pool, i)].sum() for i in range(problem.n)]
    np.testing.assert_allclose(total, 1.0)


@pytest.mark.interpreted
def test_exhausted__looks_at_no_block(margins_kept):
    """It is asked before every step, so it knows the most atoms of a block, also after an oracle has added one."""
    problem = TINY["multiclass"]()
    solver = solver_of(problem, LAM, cache="gap", refresh_every=0)
    solver.rebase()
    it = solver.iterate
    it.make_room(problem.n)
    it.margins.make_room(it.state.pool)
    view = by_margins(problem, it.state, it.margins.rows)
    for _ in range(2):
        counts = it.state.pool.counts
        for left in (0, counts.max(), counts.max() + 1):
            assert view._replace(left=np.array([left])).exhausted(None) == (left <= counts.max())
        step(problem, it.state, view, visits_of(solver).flags(vertex_from=ORACLE_ALWAYS), 2)


@pytest.mark.interpreted
def test_rows__are_enough_and_keep_what_is_known(margins_kept):
    problem = TINY["multiclass"]()
    solver = solver_of(problem, LAM, cache="gap", refresh_every=0)
    solver.rebase()
    visits_of(solver).run(visits_of(solver).flags(), np.empty(0, np.int64), 20)
    pool, before = solver.iterate.state.pool, solver.iterate.margins.rows.psi.copy()
    held = [int(pool.row[s]) for i in range(problem.n) for s in slots_of(pool, i) if pool.row[s] >= 0]
    after = with_rows(solver.iterate.margins.rows, pool)
    np.testing.assert_array_equal(after.psi[held], before[held])
    free = after.free[: after.left[0]].tolist()
    assert sorted([*free, *held]) == list(range(len(after.psi)))
    pool.row[:] = -1
    assert with_rows(no_rows(problem.d), pool).left[0] >= pool.counts.sum()


def pool_of(atoms: int) -> Pool:
    """A pool of blocks with one atom each."""
    numbers, nothing = np.arange(atoms + 1), np.zeros(atoms)
    labels = np.zeros(atoms, np.uint8)
    return unpack(Supports(numbers, nothing, nothing, numbers[:-1], labels, numbers), 1, atoms)


@pytest.mark.interpreted
def test_rows__are_seldom_copied_while_the_pool_grows():
    rows, copies = no_rows(3), 0
    for atoms in range(100, 5000, 20):
        before, rows = rows, with_rows(rows, pool_of(atoms))
        copies += rows.psi is not before.psi
    assert 1 < copies < 6


@pytest.mark.interpreted
def test_rows__of_a_pool_with_many_free_slots_are_those_of_its_atoms():
    pool = pool_of(100)
    for _ in range(7):
        pool = grown(list(pool), 1)
    assert pool.alpha.size > 1600
    assert len(with_rows(no_rows(3), pool).psi) == 4 * (100 + 2 + 64)


@pytest.mark.interpreted
def test_rows__never_take_more_than_their_bound(monkeypatch):
    monkeypatch.setattr(margins, "MOST_BYTES", 200 * 3 * 8)
    rows = with_rows(no_rows(3), pool_of(20))
    for atoms in range(20, 300):
        pool = pool_of(atoms)
        pool.row[:10] = np.arange(10)
        rows = with_rows(rows, pool)
        assert rows.psi.nbytes <= margins.MOST_BYTES
        known = 10 if atoms <= 200 - 66 else 0
        assert (pool.row[:10] >= 0).sum() == known
        assert rows.left[0] == len(rows.psi) - known
        assert Margins(rows).holds(pool) == (atoms <= 200)
    assert len(rows.psi) == 200


@pytest.mark.interpreted
def test_rows__are_not_copied_when_many_are_used(monkeypatch):
    """So that old and new ones together do not take more than the bound."""
    monkeypatch.setattr(margins, "MOST_BYTES", 10_000 * 3 * 8)
    rows = no_rows(3)
    for atoms in range(100, 9_000, 100):
        pool = pool_of(atoms)
        before, rows = rows, with_rows(rows, pool)
        assert rows.psi is before.psi or len(before.psi) <= 10_000 // 4
    assert len(rows.psi) == 10_000


@pytest.mark.interpreted
def test_steps__go_on_where_rows_run_out(margins_kept, monkeypatch):
    """As if there had been enough: a step never begins without the rows that it may need."""
    problem, ends, asked = TINY["multiclass"](), [], 0

    def few(known, pool):
        nonlocal asked
        asked += 1
        rows = with_rows(known, pool)
        return rows._replace(left=np.minimum(rows.left, pool.counts.max() + 2))

    for scarce in (False, True):
        solver = solver_of(problem, LAM, cache="gap", refresh_every=0)
        solver.rebase()
        if scarce:
            monkeypatch.setattr(margins, "with_rows", few)
            solver.iterate.margins.make_room(solver.iterate.state.pool)
        visits_of(solver).run(visits_of(solver).flags(), np.empty(0, np.int64), 40)
        S = solver.iterate.state
        ends.append((S.u, S.gap, S.counters, S.pool.alpha, S.pool.labels, S.pool.used))
    assert asked > 3
    for enough, short in zip(*ends, strict=True):
        np.testing.assert_array_equal(enough, short)


@pytest.mark.interpreted
def test_steps__do_not_depend_on_vectors_that_were_forgotten(margins_kept, monkeypatch):
    problem, ends, forgotten = TINY["multiclass"](), [], 0

    def counted(known, pool):
        nonlocal forgotten
        before = (pool.row >= 0).sum()
        rows = with_rows(known, pool)
        forgotten += bool(before and not (pool.row >= 0).any())
        return rows

    for bounded in (False, True):
        solver = solver_of(problem, LAM, cache="gap", refresh_every=0)
        solver.rebase()
        if bounded:
            monkeypatch.setattr(margins, "with_rows", counted)
            monkeypatch.setattr(margins, "SPARE", 0)
            monkeypatch.setattr(margins, "MOST_BYTES", 0)
            solver.iterate.margins.rows = no_rows(problem.d)
            solver.iterate.state.pool.row[:] = -1
        visits_of(solver).run(visits_of(solver).flags(), np.empty(0, np.int64), 40)
        S = solver.iterate.state
        ends.append((S.u, S.gap, S.counters, S.pool.alpha, S.pool.labels, S.pool.used))
    assert forgotten > 3
    assert len(solver.iterate.margins.rows.psi) <= 2 * S.pool.counts.max()
    for unbounded, bounded in zip(*ends, strict=True):
        np.testing.assert_array_equal(unbounded, bounded)


@pytest.mark.interpreted
def test_rows__are_given_back_when_the_vectors_become_too_large(margins_kept, monkeypatch):
    solver = accelerated_of(TINY["multiclass"]())
    solver.solve(0.3, never)
    assert (solver.iterate.state.pool.row >= 0).any()
    monkeypatch.setattr(margins, "worth_keeping", lambda problem, atoms: False)
    solver.rebase()
    assert solver.iterate.margins is None
    assert (solver.iterate.state.pool.row < 0).all()
    assert solver.solve(1e-3, never)[0] is Status.CONVERGED


@pytest.mark.interpreted
def test_worth_keeping__asks_for_large_features_and_little_memory():
    problem, many_labels = TINY["segmentation"](), potts()
    assert problem.features_per_block == (problem.unary.size + problem.pairwise.size) / problem.n
    assert not worth_keeping(problem, 10)
    assert not worth_keeping(many_labels, 10)
    assert worth_keeping(many_labels._replace(unary=np.zeros((4000, 3), np.float32)), 10)
    large = problem._replace(unary=np.zeros((4000, 3), np.float32))
    assert worth_keeping(large, 10)
    assert not worth_keeping(large, MOST_BYTES // (8 * problem.d) + 1)
    assert not worth_keeping(TINY["multiclass"](), 10)
