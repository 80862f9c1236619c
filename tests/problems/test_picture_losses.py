"""Losses of pictures: classes in balance or pixels alike, for two classes and for more, and void."""

from __future__ import annotations

import numpy as np
import pytest
from library import graphs
from tiny.blocks import ragged
from tiny.potts import potts_blocks

from gapwise import SegmentationSVM
from gapwise.stages.datasets import OptionError
from gapwise.stages.datasets.vision.classes import PottsOptions
from gapwise.stages.datasets.vision.own_columns import ModelOptions
from gapwise.stages.problems import build
from gapwise.stages.problems.segmentation.images import costs_by
from gapwise.stages.problems.void import VOID


def expected(loss: str, block: dict[str, np.ndarray]) -> np.ndarray:
    """The loss of a wrong label at each superpixel, from the definition."""
    labels, area = block["labels"], np.where(block["labels"] == VOID, 0.0, block["area"])
    if loss == "per_image":
        return np.asarray(area / area.sum())
    present = np.unique(labels[labels != VOID])
    shares = [area / area[labels == k].sum() * (labels == k) for k in present]
    return np.asarray(np.sum(shares, axis=0) / present.size)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["balanced", "per_image", None])
def test_loss__is_what_its_name_says(classes: int, loss: str | None) -> None:
    """None is balanced with two classes, and per_image with more."""
    structure = "segmentation" if classes == 2 else "potts"
    usual = "balanced" if classes == 2 else "per_image"
    blocks = potts_blocks(classes=classes, void=True)
    problem = build(structure, ragged(blocks), {"classes": classes, "loss": loss})
    for i, block in enumerate(blocks):
        costs = problem.images.loss_if_wrong[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        np.testing.assert_allclose(costs, expected(loss or usual, block))
        wrong = np.where(block["labels"] == 0, 1, 0).astype(np.uint8)
        assert problem.loss(i, wrong) == pytest.approx(1.0)
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


def test_unknown__losses_list_the_choices() -> None:
    with pytest.raises(ValueError, match="loss is 'even', expected balanced or per_image"):
        costs_by("even", 2)
    with pytest.raises(ValueError, match="loss: expected 'balanced' or 'per_image', got 'even'"):
        SegmentationSVM(loss="even").fit(*graphs())
    says = r"dataset\.loss: expected balanced, per_image, or null for "
    with pytest.raises(OptionError, match=f"{says}balanced, got 'even'"):
        ModelOptions(loss="even")
    with pytest.raises(OptionError, match=f"{says}per_image"):
        PottsOptions(loss="even")
    assert "loss" not in ModelOptions().facts() | PottsOptions().facts()
    assert ModelOptions(loss="per_image").facts() == {"loss": "per_image"}
