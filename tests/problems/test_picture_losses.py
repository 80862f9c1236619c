"""Losses of pictures: classes in balance or pixels alike, for two classes and for more, and void."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import all_labels
from tiny.blocks import ragged
from tiny.potts import potts_blocks

from gapwise.stages.problems import build
from gapwise.stages.problems.images.graph import PIXELS, labelled_pixels
from gapwise.stages.problems.losses import VOID, with_unit

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
