"""Potts segmentation: the score written out plainly, the bound against brute force, labels that are void, bad input;
losses of pictures, for two classes and for more."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import all_labels, potts, potts_blocks, ragged, segmentation

from gapwise.stages.problems import build
from gapwise.stages.problems.images.graph import PIXELS, labelled_pixels
from gapwise.stages.problems.losses import VOID, silenced, with_unit
from gapwise.stages.problems.potts import metrics

pytestmark = pytest.mark.interpreted


def draw_w(problem, rng, smoothing=1.0):
    """Weights at which the Potts terms matter."""
    w = 0.3 * rng.normal(size=problem.d)
    pairs = problem.pairwise.shape[1]
    w[-pairs:] = smoothing * rng.random(pairs)
    return w


def augmented(problem, i, w):
    """(theta, the largest value of loss and score over all labellings of block i)."""
    theta = np.empty(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
    problem.scores(i, w, theta)
    return theta, max(problem.loss(i, y) + problem.value(i, theta, y) for y in all_labels(problem, i))


def answer(problem, i, theta, scratch=None):
    """(the oracle's labelling, its value with the loss, the bound)."""
    scratch = problem.scratch() if scratch is None else scratch
    y = np.empty(int(problem.label_ptr[i + 1] - problem.label_ptr[i]), np.uint8)
    loss = problem.max_oracle(i, theta, y, scratch)
    assert loss == problem.loss(i, y)
    return y, loss + problem.value(i, theta, y), problem.max_bound(i, theta, y, scratch)


def test_score__is_unary_evidence_less_the_edges_that_are_cut():
    problem, rng = potts(), np.random.default_rng(0)
    w = draw_w(problem, rng)
    width = problem.unary.shape[1]
    for i in range(problem.n):
        nodes, arcs = (slice(*p[i : i + 2]) for p in (problem.label_ptr, problem.images.edge_ptr))
        x, pairs, edges = problem.unary[nodes], problem.pairwise[arcs], problem.images.edges[arcs]
        theta, _ = augmented(problem, i, w)
        for y in all_labels(problem, i)[::7]:
            cut = y[edges[:, 0]] != y[edges[:, 1]]
            unary = sum(x[p] @ w[k * width : (k + 1) * width] for p, k in enumerate(y))
            assert problem.value(i, theta, y) == pytest.approx(unary - (pairs @ w[-2:]) @ cut, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("oracle", "sweeps"), [("trws", 1), ("expansion", 1), ("trws_expansion", 30)])
def test_bound__is_at_least_the_maximum_and_the_answer_at_most(oracle, sweeps):
    problem, rng = potts(n=6, meta={"oracle": oracle, "sweeps": sweeps, "slack": 0.0}), np.random.default_rng(1)
    loose = 0
    for smoothing in (0.0, 0.3, 1.5):
        for i in range(problem.n):
            theta, most = augmented(problem, i, draw_w(problem, rng, smoothing))
            _, value, bound = answer(problem, i, theta)
            truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
            assert problem.value(i, theta, truth) <= value + 1e-12
            assert value <= most + 1e-12
            assert most <= bound + 1e-12
            loose += bound - value > 1e-9
    assert loose < 18 if oracle == "expansion" else loose <= 9


@pytest.mark.parametrize("classes", [3, 9])
def test_bound__is_the_maximum_on_trees(classes):
    problem = potts(tree=True, classes=classes, most=4 if classes == 9 else 6, meta={"slack": 0.0})
    rng = np.random.default_rng(2)
    for i in range(problem.n):
        theta, most = augmented(problem, i, draw_w(problem, rng))
        _, value, bound = answer(problem, i, theta)
        assert value == pytest.approx(most, abs=1e-12)
        assert bound == pytest.approx(most, abs=1e-12)


def test_bound__holds_for_any_messages():
    """Whatever a faulty oracle leaves behind, no labelling is worth more than the bound; nan is not a bound."""
    problem, rng = potts(n=6), np.random.default_rng(4)
    scratch = problem.scratch()
    for scale in (0.0, 0.1, 10.0, 1e6):
        for i in range(problem.n):
            theta, most = augmented(problem, i, draw_w(problem, rng))
            y, _, _ = answer(problem, i, theta, scratch)
            scratch[0].u[:] += scale * rng.normal(size=scratch[0].u.size)
            assert problem.max_bound(i, theta, y, scratch) >= most - 1e-12 * max(1.0, scale)
    i = 2
    theta, _ = augmented(problem, i, draw_w(problem, rng))
    y, _, _ = answer(problem, i, theta, scratch)
    scratch[0].u[:] = np.nan
    assert np.isnan(problem.max_bound(i, theta, y, scratch))


def test_two_labels__agree_with_the_binary_structure():
    """The binary structure's maximum, by a minimum cut: between the answer and the bound, which meet it here."""
    binary = segmentation(n=8, seed=4)
    counts = np.zeros((binary.truth.size, 2), np.float32)
    arrays = {
        "unary": binary.unary, "pairwise": binary.pairwise, "edges": binary.images.edges, "labels": binary.truth,
        "area": np.ones(binary.truth.size), "counts": counts, "gram": binary.images.gram,
        "unary_ptr": binary.label_ptr, "pairwise_ptr": binary.images.edge_ptr, "edges_ptr": binary.images.edge_ptr,
        "labels_ptr": binary.label_ptr, "area_ptr": binary.label_ptr, "counts_ptr": binary.label_ptr,
        "gram_ptr": binary.images.gram_ptr,
    }  # fmt: skip
    problem = build("potts", arrays, {"classes": 2, "slack": 0.0, "sweeps": 300})
    costs = problem.images._replace(loss_if_wrong=binary.images.loss_if_wrong)
    problem = problem._replace(images=costs)
    rng = np.random.default_rng(6)
    for i in range(problem.n):
        w = np.append(rng.normal(size=3), rng.random(2))
        theta = np.empty(int(binary.local_ptr[i + 1] - binary.local_ptr[i]))
        binary.scores(i, w, theta)
        y = np.empty(int(binary.label_ptr[i + 1] - binary.label_ptr[i]), np.uint8)
        most = binary.max_oracle(i, theta, y, binary.scratch())
        most += binary.value(i, theta, y)
        both = np.empty(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
        problem.scores(i, np.concatenate([-w[:3], w]), both)
        _, value, bound = answer(problem, i, both)
        assert value <= most + 1e-9
        assert bound >= most - 1e-9
        assert bound - value <= 1e-9  # the linear program of a cut problem has no slack


@pytest.mark.parametrize("oracle", ["trws", "expansion"])
def test_decode__ignores_the_truth(oracle):
    blocks = potts_blocks(n=6)
    other = [{**b, "labels": (b["labels"] + 1) % 3} for b in blocks]
    problems = [build("potts", ragged(each), {"classes": 3, "oracle": oracle}) for each in (blocks, other)]
    w = draw_w(problems[0], np.random.default_rng(7))
    for i in range(6):
        theta, _ = augmented(problems[0], i, w)
        decoded = np.empty((2, int(np.diff(problems[0].label_ptr)[i])), np.uint8)
        for problem, y in zip(problems, decoded, strict=True):
            problem.decode(i, theta, y, problem.scratch())
        np.testing.assert_array_equal(*decoded)
        best = max(problems[0].value(i, theta, y) for y in all_labels(problems[0], i))
        if oracle != "expansion":
            assert problems[0].value(i, theta, decoded[0]) == pytest.approx(best, abs=1e-9)


def test_void__has_no_loss_and_no_score_in_training():
    blocks = [silenced(b) for b in potts_blocks(n=6, void=True)]
    problem = build("potts", ragged([b | {"gram": gram_of(b)} for b in blocks]), {"classes": 3})
    w = draw_w(problem, np.random.default_rng(8))
    voids = 0
    for i, block in enumerate(blocks):
        theta, _ = augmented(problem, i, w)
        truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        assert problem.loss(i, truth) == 0.0
        for p in np.flatnonzero(block["labels"] == VOID):
            voids += 1
            for k in range(3):
                y = truth.copy()
                y[p] = k
                assert problem.loss(i, y) == 0.0
                assert problem.value(i, theta, y) == pytest.approx(problem.value(i, theta, truth), abs=1e-12)
        wrong = (truth + 1) % 3
        assert problem.loss(i, wrong) == pytest.approx(1.0)
        assert 0.0 < problem.least_loss(i) <= 1.0
    assert voids == 3


def gram_of(block):
    x = np.asarray(block["unary"], float)
    return (x @ x.T).astype(np.float32).reshape(-1)


def test_metrics__count_pixels_and_average_over_the_classes_that_occur():
    problem = potts(n=1)  # four superpixels
    counts = np.array([[10, 0, 0], [0, 6, 4], [0, 10, 0], [20, 0, 0]], np.float32)
    measures = metrics(problem, {"counts": counts}, np.array([0, 1, 2, 1]))
    assert measures["pixel_accuracy"] == pytest.approx(16 / 50)
    assert measures["class_accuracy"] == pytest.approx((10 / 30 + 6 / 16 + 0 / 4) / 3)


def test_fixed_weight__is_a_box_of_one_point():
    problem = potts(meta={"potts": 1.0})
    assert problem.lower[-2:].tolist() == problem.upper[-2:].tolist() == [1.0, 1.0]
    assert np.isinf(problem.lower[:-2]).all()


@pytest.mark.parametrize(
    ("changes", "meta", "message"),
    [
        ({"labels": np.array([0, 1, 3, 0], np.uint8)}, {}, r"block 0: labels holds 3, expected 0 to 2, or 255 for void"),
        ({"edges": np.array([[1, 0]])}, {}, r"block 0: edges holds \[1, 0\], expected a < b < 4"),
        ({}, {"oracle": "icm"}, "oracle is 'icm', expected one of trws, expansion, trws_expansion"),
        ({}, {"potts": -1.0}, "potts is -1.0, expected a number >= 0"),
    ],
)  # fmt: skip
def test_build__says_what_is_wrong(changes, meta, message):
    (block,) = potts_blocks(n=1)
    block = {**block, "edges": block["edges"][:1], "pairwise": block["pairwise"][:1]} | changes
    with pytest.raises(ValueError, match=message):
        build("potts", ragged([block]), {"classes": 3, **meta})


def test_oracle__refuses_negative_and_infinite_scores():
    problem = potts()
    theta, scratch = np.zeros(int(problem.local_ptr[1])), problem.scratch()
    theta[-1] = -1.0
    y = np.empty(4, np.uint8)
    with pytest.raises(ValueError, match="an edge score is negative"):
        problem.max_oracle(0, theta, y, scratch)
    theta[-1] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        problem.max_oracle(0, theta, y, scratch)


MEAN = 37.0
"""Labelled pixels of a training image."""


def pixels_of(block: dict[str, np.ndarray]) -> float:
    """Labelled pixels."""
    return float(block["area"][block["labels"] != VOID].sum())


def expected(loss: str, block: dict[str, np.ndarray]) -> np.ndarray:
    """The loss of a wrong label at each superpixel, from the definition."""
    labels, area = block["labels"], np.where(block["labels"] == VOID, 0.0, block["area"])
    if loss == "per_image":
        return np.asarray(area / area.sum())
    if loss == "per_pixel":
        return np.asarray(area / MEAN)
    present = np.unique(labels[labels != VOID])
    shares = [area / area[labels == k].sum() * (labels == k) for k in present]
    return np.asarray(np.sum(shares, axis=0) / present.size)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["balanced", "per_image", "per_pixel", None])
def test_loss__is_what_its_name_says(classes: int, loss: str | None) -> None:
    """None is balanced with two classes, and per_image with more."""
    structure = "segmentation" if classes == 2 else "potts"
    usual = "balanced" if classes == 2 else "per_image"
    blocks = potts_blocks(classes=classes, void=True)
    problem = build(structure, ragged(blocks), {"classes": classes, "loss": loss, "mean_area": MEAN})
    for i, block in enumerate(blocks):
        costs = problem.images.loss_if_wrong[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        np.testing.assert_allclose(costs, expected(loss or usual, block))
        wrong = np.where(block["labels"] == 0, 1, 0).astype(np.uint8)
        assert problem.loss(i, wrong) == pytest.approx(pixels_of(block) / MEAN if loss == "per_pixel" else 1.0)
        assert 0 < problem.least_loss(i) == pytest.approx(costs[costs > 0].min())


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.interpreted)])
def test_per_pixel__counts_wrong_pixels_of_all_images_exactly(classes: int) -> None:
    """The mean loss over the training blocks is the share of wrong pixels; of two classes the oracle is the best of all."""
    structure = "segmentation" if classes == 2 else "potts"
    blocks = potts_blocks(classes=classes, void=True)
    pixels = [pixels_of(block) for block in blocks]
    assert [labelled_pixels(block) for block in blocks] == pytest.approx(pixels)
    facts = PIXELS.added({"classes": classes, "loss": "per_pixel"}, sum(pixels), len(blocks))
    problem = build(structure, ragged(blocks), facts)
    rng, losses, wrong = np.random.default_rng(0), [], 0.0
    for i, block in enumerate(blocks):
        y = rng.integers(classes, size=block["labels"].size).astype(np.uint8)
        losses.append(problem.loss(i, y))
        wrong += block["area"][(block["labels"] != VOID) & (y != block["labels"])].sum()
        theta = np.empty(problem.local_ptr[i + 1] - problem.local_ptr[i])
        problem.scores(i, np.clip(0.3 * rng.normal(size=problem.d), problem.lower, problem.upper), theta)
        best = max(problem.loss(i, z) + problem.value(i, theta, z) for z in all_labels(problem, i))
        z = np.empty(block["labels"].size, np.uint8)
        loss = problem.max_oracle(i, theta, z, problem.scratch())
        assert loss == pytest.approx(problem.loss(i, z))
        if classes == 2:
            assert loss + problem.value(i, theta, z) == pytest.approx(best)
    assert np.mean(losses) == pytest.approx(wrong / sum(pixels))
    with pytest.raises(ValueError, match="loss per_pixel: mean_area is None, expected pixels > 0"):
        build(structure, ragged(blocks), {"classes": classes, "loss": "per_pixel"})
    assert with_unit(PIXELS, facts, ragged(blocks)) == facts
    assert PIXELS.added({"loss": "per_image"}, 3.0, 2) == {"loss": "per_image"}
