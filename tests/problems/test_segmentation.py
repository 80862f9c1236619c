"""Segmentation beyond the contract suite: the score written out plainly, losses, bad input, metrics."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from dense import optimum
from scipy.optimize import minimize
from tiny import all_labels, ragged, segmentation, segmentation_u8

from gapwise.stages.problems.images.kernels import PIECE, rows_add, rows_dot
from gapwise.stages.problems.losses import VOID
from gapwise.stages.problems.segmentation import build, derived, metrics
from gapwise.stages.solver.engine import solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import require_cone
from gapwise.stages.solver.options import CacheOptions


def block(**changes):
    """A path of three superpixels: foreground 30 + 10 pixels, background 60."""
    arrays = {
        "unary": np.array([[1, 0.5], [1, -0.2], [1, 0.3]], np.float32),
        "pairwise": np.array([[1, 0.25], [1, 0.75]], np.float32),
        "edges": np.array([[0, 1], [1, 2]], np.int32),
        "labels": np.array([1, 0, 1], np.uint8),
        "area": np.array([30.0, 60.0, 10.0]),
        "foreground": np.array([27.0, 6.0, 10.0]),
    }
    arrays |= derived(unary=arrays["unary"], pairwise=arrays["pairwise"])
    return arrays | changes


@pytest.mark.parametrize(("tiny", "scale"), [(segmentation, 1.0), (segmentation_u8, 1 / 255)])
def test_score__is_the_one_of_the_design(tiny, scale):
    """Unary evidence with both signs, minus the Potts terms of the edges that are cut."""
    problem = tiny()
    rng = np.random.default_rng(0)
    w = rng.random(problem.d)
    for i in range(problem.n):
        nodes, arcs = (slice(*p[i : i + 2]) for p in (problem.label_ptr, problem.images.edge_ptr))
        x, p, edges = scale * problem.unary[nodes], problem.pairwise[arcs], problem.images.edges[arcs]
        theta = np.empty(len(x) + len(p))
        problem.scores(i, w, theta)
        for y in all_labels(problem, i):
            cut = y[edges[:, 0]] != y[edges[:, 1]]
            expected = (x @ w[: x.shape[1]]) @ np.where(y == 1, 1, -1) - (p @ w[x.shape[1] :]) @ cut
            assert problem.value(i, theta, y) == pytest.approx(expected, rel=1e-6)


def test_score__sums_float32_features_in_float64():
    big = block(unary=np.array([[1e8, 1.0], [1.0, 1.0], [1.0, 1.0]], np.float32))
    problem, theta = build(ragged([big]), {}), np.empty(5)
    problem.scores(0, np.array([1.0, 0.5, 0.0, 0.0]), theta)
    assert theta[0] == 1e8 + 0.5


@pytest.mark.parametrize(("kind", "extra"), [(np.float32, 1), (np.float32, PIECE), (np.uint8, -1), (np.uint8, 0)])
def test_score__of_rows_wider_than_a_piece_is_the_product(kind, extra):
    """Rows are multiplied piece by piece; the last piece may be short."""
    width = PIECE // np.dtype(kind).itemsize + extra
    rng = np.random.default_rng(0)
    x, w, scores = rng.integers(0, 200, (5, width)).astype(kind), rng.normal(size=width), np.empty(3)
    rows_dot(x, 0.5, 1, w, scores)
    np.testing.assert_allclose(scores, 0.5 * (x[1:4].astype(float) @ w), rtol=1e-12)


@pytest.mark.parametrize("kind", [np.float32, np.uint8])
@pytest.mark.parametrize("count", [0, 1, 7, 12, 17])
def test_push__of_any_number_of_rows_is_the_product(kind, count):
    """Rows are added eight or four at a time, and those of entry 0 are not looked at."""
    rng = np.random.default_rng(count)
    x, delta, w = rng.integers(0, 200, (25, 11)).astype(kind), np.zeros(22), rng.normal(size=11)
    delta[rng.permutation(22)[:count]] = rng.normal(size=count)
    expected = w + 0.5 * (delta @ x[2:24].astype(float))
    if kind is np.float32:
        x[2:24][delta == 0.0] = np.nan
    rows_add(x, 2, 0.5, delta, w)
    np.testing.assert_allclose(w, expected, rtol=1e-12)


def codes(**changes):
    """Arrays of one block with unary rows in uint8; of scale 1/256, so that float32 holds them without rounding."""
    unary, scale = np.array([[255, 128], [255, 0], [255, 77]], np.uint8), np.array([1 / 256])
    stored = block(unary=unary, **derived(unary=unary, pairwise=block()["pairwise"], unary_scale=scale))
    return ragged([stored]) | {"unary_scale": scale} | changes


def test_codes__give_the_problem_of_the_rows_they_stand_for():
    exact = block(unary=(codes()["unary"] / 256).astype(np.float32))
    exact |= derived(unary=exact["unary"], pairwise=exact["pairwise"])
    both = [build(codes(), {}), build(ragged([exact]), {})]
    delta, w = np.array([1.0, -2.0, 0.5, -1.0, 1.0]), np.array([0.3, -1.0, 0.2, 0.1])
    for results in zip(*(products(problem, delta, w) for problem in both), strict=True):
        np.testing.assert_allclose(*results, rtol=1e-12)


def products(problem, delta, w):
    """Scores, norm2 and push of block 0."""
    theta, moved = np.empty(5), np.zeros(4)
    problem.scores(0, w, theta)
    problem.push(0, -0.7, delta, moved)
    return theta, problem.norm2(0, delta), moved


@pytest.mark.parametrize("arrays", [ragged([block()]), codes()], ids=["f32", "u8"])
def test_build__uses_mapped_features_where_they_lie(arrays, tmp_path):
    mapped = {}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    problem = build(mapped, {})
    for name in ("unary", "pairwise", "gram"):
        field = getattr(problem.images if name == "gram" else problem, name)
        assert np.shares_memory(field, mapped[name]), name
        assert field.dtype == arrays[name].dtype


def test_bounds__keep_only_the_pairwise_weights_positive():
    problem = build(ragged([block()]), {})
    np.testing.assert_array_equal(problem.lower, [-np.inf, -np.inf, 0, 0])
    assert (problem.upper == np.inf).all()


@pytest.mark.interpreted
def test_fixed_weight__solves_the_problem_whose_only_unknowns_are_unary_weights():
    """Written out with the Potts terms beside the losses (S15), and minimised over w_U and a slack per image."""
    lam, weight = 0.3, 0.4
    problem = segmentation(potts=weight)
    assert problem.lower[-2:].tolist() == problem.upper[-2:].tolist() == [weight, weight]
    free, rows, least = problem.unary.shape[1], [], []
    for i in range(problem.n):
        nodes, arcs = (slice(*p[i : i + 2]) for p in (problem.label_ptr, problem.images.edge_ptr))
        x, truth, edges = problem.unary[nodes].astype(float), problem.truth[nodes], problem.images.edges[arcs]
        strength = weight * problem.pairwise[arcs].astype(float).sum(axis=1)
        energy = {y.tobytes(): strength @ (y[edges[:, 0]] != y[edges[:, 1]]) for y in all_labels(problem, i)}
        for y in all_labels(problem, i):
            psi = x.T @ (2.0 * truth - 2.0 * y)
            rows.append(np.append(psi, np.eye(problem.n)[i]))
            loss = problem.images.loss_if_wrong[nodes] @ (y != truth)
            least.append(loss - energy[y.tobytes()] + energy[truth.tobytes()])
    a, b, mean = np.array(rows), np.array(least), np.append(np.zeros(free), np.full(problem.n, 1 / problem.n))
    written = minimize(
        lambda z: 0.5 * lam * z[:free] @ z[:free] + mean @ z,
        np.append(np.zeros(free), np.full(problem.n, max(least))),
        jac=lambda z: np.append(lam * z[:free], mean[free:]),
        constraints=[{"type": "ineq", "fun": lambda z: a @ z - b, "jac": lambda z: a}],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assert written.success
    constant = 0.5 * lam * 2 * weight**2  # of the two weights that are fixed
    assert optimum(problem, lam) == pytest.approx(written.fun + constant, abs=1e-8)
    for choices in ({"method": "accelerated"}, {"method": "bcfw", "step": "pairwise"}):
        options = method_options(cache=CacheOptions("gap"), max_passes=2000.0, **choices)
        solved = solve(problem, lam, options, tolerance=1e-8)
        assert solved.breakpoint.point.dual == pytest.approx(written.fun + constant, abs=1e-7)
        assert (solved.weights[free:] == weight).all()
        np.testing.assert_allclose(solved.weights[:free], written.x[:free], atol=1e-3)


def test_fixed_weight__leaves_no_path():
    with pytest.raises(
        ValueError, match=r"bounds must be 0 or \+-inf .* lower=0.4. Give the lambdas: path=grid or path=single"
    ):
        require_cone(segmentation(potts=0.4))
    require_cone(segmentation(potts=0.0))


def test_loss__halves_the_missed_share_of_each_class():
    problem = build(ragged([block()]), {})
    for y, expected in (([1, 0, 0], 0.5 * 10 / 40), ([1, 1, 1], 0.5), ([0, 0, 0], 0.5), ([0, 1, 0], 1.0)):
        assert problem.loss(0, np.array(y, np.uint8)) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("label", [0, 1])
def test_loss__is_the_share_of_the_only_class(label):
    problem = build(ragged([block(labels=np.full(3, label, np.uint8))]), {})
    wrong = np.array([label, 1 - label, label], np.uint8)
    assert problem.loss(0, wrong) == pytest.approx(0.6)
    assert problem.loss(0, np.full(3, 1 - label, np.uint8)) == pytest.approx(1.0)


def test_oracles__give_ties_to_the_background():
    problem = build(ragged([block()]), {})
    y = np.ones(3, np.uint8)
    problem.decode(0, np.zeros(5), y, problem.scratch())
    assert y.tolist() == [0, 0, 0]
    assert problem.max_oracle(0, np.zeros(5), y, problem.scratch()) == pytest.approx(1.0)
    assert y.tolist() == [0, 1, 0]


def test_oracles__refuse_scores_that_are_no_cut():
    problem, y = build(ragged([block()]), {}), np.zeros(3, np.uint8)

    def call(theta):
        problem.max_oracle(0, np.array(theta), y, problem.scratch())

    call([0.1, 0.2, 0.3, 1.0, -1e-12])  # rounding: counts as 0
    with pytest.raises(ValueError, match="edge score is negative"):
        call([0.1, 0.2, 0.3, 1.0, -1e-6])
    for entry, value in itertools.product((1, 4), (np.nan, np.inf)):
        theta = np.ones(5)
        theta[entry] = value
        with pytest.raises(ValueError, match="not finite"):
            call(theta)


NAN, NEGATIVE = block()["unary"].copy(), block()["pairwise"].copy()
NAN[2, 1], NEGATIVE[1, 0] = np.nan, -0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unary": NAN}, r"block 1: unary is nan in row 2, feature 1"),
        ({"pairwise": NEGATIVE}, r"block 1: pairwise is -0.5 in row 1, feature 0; expected >= 0"),
        ({"edges": np.array([[0, 1], [1, 3]])}, r"block 1: edges holds \[1, 3\], expected a < b < 3"),
        ({"labels": np.array([0, 2, 1])}, r"block 1: labels holds 2, expected 0 or 1"),
        ({"area": np.array([1.0, 0.0, 3.0])}, r"block 1: area holds 0.0, expected a positive number"),
    ],
)
def test_build__names_block_and_field(changes, message):
    with pytest.raises(ValueError, match=message):
        build(ragged([block(), block(**changes)]), {})


def test_metrics__count_pixels():
    other = block(foreground=np.zeros(3), labels=np.zeros(3, np.uint8))
    arrays = ragged([block(), other])
    problem = build(arrays, {})
    result = metrics(problem, arrays, np.array([1, 0, 0, 0, 0, 0], np.uint8))
    assert result["pixel_accuracy"] == pytest.approx((27 + 54 + 0 + 100) / 200)
    assert result["foreground_iou"] == pytest.approx((27 / (30 + 6 + 10) + 1.0) / 2)
    assert result["foreground_iou_pooled"] == pytest.approx(27 / 46)
    spilled = metrics(problem, arrays, np.array([1, 0, 0, 1, 0, 0], np.uint8))
    assert spilled["foreground_iou"] == pytest.approx(27 / 46 / 2)
    assert spilled["foreground_iou_pooled"] == pytest.approx(27 / (46 + 30))


def test_void__superpixels_have_no_loss_and_take_nothing_of_the_others():
    labels, unary, pairwise = np.array([1, VOID, 1], np.uint8), block()["unary"].copy(), np.zeros((2, 2), np.float32)
    unary[1] = 0.0  # as `silenced` leaves it, with both of its edges
    arrays = block(labels=labels, unary=unary, pairwise=pairwise, **derived(unary=unary, pairwise=pairwise))
    problem, w = build(ragged([arrays]), {}), np.array([-1.0, 0.5, 1.0, 1.0])
    assert problem.images.loss_if_wrong.tolist() == [0.75, 0.0, 0.25]
    assert problem.least_loss(0) == 0.25
    theta, y = np.empty(5), np.empty(3, np.uint8)
    problem.scores(0, w, theta)
    worth = {tuple(z): problem.loss(0, z) + problem.value(0, theta, z) for z in all_labels(problem, 0)}
    loss = problem.max_oracle(0, theta, y, problem.scratch())
    assert loss + problem.value(0, theta, y) == pytest.approx(max(worth.values()))
    assert worth[1, 0, 1] == worth[1, 1, 1]
    with pytest.raises(ValueError, match="block 0: labels holds 2, expected 0 or 1, or 255 for void"):
        build(ragged([block(labels=np.array([1, 2, 1], np.uint8))]), {})
    every = block(labels=np.full(3, VOID, np.uint8), area=np.zeros(3))
    assert build(ragged([every]), {}).images.loss_if_wrong.tolist() == [0.0, 0.0, 0.0]


def test_derived__refuses_an_image_that_is_too_large_before_it_takes_memory():
    with pytest.raises(
        ValueError, match=r"^200,000 superpixels, .* 149 GiB in training; expected at most 16,384 .* divide"
    ):
        derived(unary=np.zeros((200_000, 1), np.float32), pairwise=np.zeros((0, 1), np.float32))
