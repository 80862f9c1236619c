"""Losses of pictures: classes in balance or pixels alike, for two classes and for more, and void."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from library import graphs
from tiny import all_labels
from tiny.blocks import ragged
from tiny.potts import potts_blocks

from gapwise import SegmentationSVM
from gapwise.stages.datasets import OptionError, specimen
from gapwise.stages.datasets.offers.options import taken_from
from gapwise.stages.datasets.vision.classes import PottsOptions
from gapwise.stages.datasets.vision.own_columns import ModelOptions
from gapwise.stages.featurize import _SplittingSink
from gapwise.stages.problems import build
from gapwise.stages.problems.held_out import HeldOut
from gapwise.stages.problems.loss_unit import with_unit
from gapwise.stages.problems.segmentation.images import PIXELS, costs_by, labelled_pixels
from gapwise.stages.problems.void import VOID
from gapwise.storage.features import FeatureWriter

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


def test_estimator__is_scored_by_its_loss() -> None:
    X, y = graphs()
    X = [{**graph, "area": np.array([1.0, 2.0, 3.0, 4.0, 5.0])} for graph in X]
    model = SegmentationSVM(lam=0.1, tolerance=0.05, loss="per_image").fit(X, y)
    shares = [
        np.sum(graph["area"][labels != truth]) / 15 for graph, labels, truth in zip(X, model.predict(X), y, strict=True)
    ]
    assert model.score(X, y) == pytest.approx(1.0 - np.mean(shares))
    assert model.problem(X, y).loss(0, 1 - np.asarray(y[0]).astype(np.uint8)) == pytest.approx(1.0)
    assert model.problem(X, y).images.loss_if_wrong[0] == pytest.approx(1 / 15)


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


def test_per_pixel__counts_in_pixels_of_training_pictures_that_are_not_held_out(tmp_path: Path) -> None:
    blocks = potts_blocks(classes=2, void=True) * 2
    rule = HeldOut.of({"folds": 2, "fold": 0})
    with FeatureWriter(tmp_path / "features") as writer:
        sink = _SplittingSink(writer, "segmentation", rule)
        for block in blocks:
            sink.append("train", **block)
        facts = sink.finish({"loss": "per_pixel"})
        writer.meta = {"structure": "segmentation", **facts}
    rest = [pixels_of(block) for i, block in enumerate(blocks) if not rule(i)]
    assert facts["mean_area"] == pytest.approx(np.mean(rest))
    assert facts["mean_area"] != pytest.approx(np.mean([pixels_of(block) for block in blocks]))


def test_per_pixel__has_a_specimen_to_compile_for() -> None:
    example = specimen({"name": "horses_sample", "loss": "per_pixel"})
    assert build(example.structure, example.arrays, example.meta).least_loss(0) > 0.0


def test_per_pixel__of_an_estimator_counts_all_pixels_alike() -> None:
    X, y = graphs()
    X = [{**graph, "area": (1.0 + k) * np.array([1.0, 2.0, 3.0, 4.0, 5.0])} for k, graph in enumerate(X)]
    model = SegmentationSVM(lam=0.1, tolerance=0.05, loss="per_pixel").fit(X, y)
    problem = model.problem(X, y)
    np.testing.assert_allclose(problem.images.loss_if_wrong[:5], X[0]["area"] / (15 * 3.5))
    wrong = sum(np.sum(x["area"][z != t]) for x, z, t in zip(X, model.predict(X), y, strict=True))
    assert model.score(X, y) == pytest.approx(1.0 - wrong / (15 * 21))


def test_unknown__losses_list_the_choices() -> None:
    with pytest.raises(ValueError, match="loss is 'even', expected balanced or per_image or per_pixel"):
        costs_by("even", 2)
    with pytest.raises(ValueError, match="loss: expected 'balanced', 'per_image', 'per_pixel', got 'even'"):
        SegmentationSVM(loss="even").fit(*graphs())
    for options in (ModelOptions, PottsOptions):
        says = r"dataset\.loss: expected one of balanced, per_image, per_pixel, or null, got 'even'"
        with pytest.raises(OptionError, match=says):
            taken_from(options, {"loss": "even"})
    assert "loss" not in ModelOptions().facts() | PottsOptions().facts()
    assert ModelOptions(loss="per_image").facts() == {"loss": "per_image"}
