"""Report and figure show photographs with poses, and alignments with the links of each kind in their colour."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from tiny.tree_instances import tree_arrays

from gapwise.stages.datasets.alignment.sentences import encoded
from gapwise.stages.problems import build
from gapwise.stages.reports import alignments, poses
from gapwise.stages.reports.page.sections import shown_poses, worst_alignments
from gapwise.stages.reports.paint import BLUE, GREEN, GRID, ORANGE
from gapwise.stages.reports.stored import StoredRun

LAMBDAS = np.array([9.0, 7.0, 5.0, 3.0, 2.0, 1.0])


@pytest.fixture
def run(tmp_path, monkeypatch) -> StoredRun:
    """Three blocks of 3 x 4 cells with two nodes; the first two have photographs. Every lambda predicts its own places."""
    blocks = tree_arrays(0, [-1, 0], 2, [(3, 4)] * 3)
    problem = build("tree", blocks, {})
    cells = problem.truth.reshape(3, -1)[:, :2].astype(int)
    points = 4.0 * np.stack([cells % 4, cells // 4], axis=-1) + 1.5
    blocks |= {
        "points": points.reshape(-1).astype(np.float32), "trunk": np.full(3, 10.0), "cell": np.array([4.0]),
        "point_nodes": np.arange(2), "limb_ends": np.eye(2)[None],
        "photo": np.zeros((2 * 12 * 16, 3), np.uint8), "photo_ptr": np.array([0, 192, 384, 384]),
        "photo_hw": np.tile([12, 16], (2, 1)), "photo_hw_ptr": np.array([0, 1, 2, 2]),
    }  # fmt: skip

    def predicted(problem, w, chosen):
        labels = problem.truth.reshape(3, -1)[chosen].copy()
        labels[:, 0] = int(w[0])
        return labels.reshape(-1), None

    monkeypatch.setattr(poses, "weights_at", lambda run_dir: lambda lam: np.array([lam]))
    monkeypatch.setattr(poses, "predictions", predicted)
    made = StoredRun(tmp_path, None)
    made.test_blocks, made.measured, made._numbers = blocks, {"best_lambda": 2.0}, ({"lambda": LAMBDAS}, {})
    return made


def test_poses__are_by_the_maps_by_some_lambdas_and_true(run):
    shown = poses.posed(run, 6)
    assert [picture.block for picture in shown] == [0, 1]
    assert shown[0].rgb.shape == (12, 16, 3)
    said = [pose.said for pose in shown[0].poses]
    assert said == ["maps alone", "λ = 9", "λ = 5", "λ = 2 (best)", "λ = 1", "truth"]
    points = run.test_blocks["points"].reshape(3, 2, 2)
    for i, picture in enumerate(shown):
        np.testing.assert_allclose(picture.poses[-1].limbs[0], points[i])
        np.testing.assert_allclose(picture.poses[1].limbs[0], [[4 * (9 % 4) + 1.5, 4 * (9 // 4) + 1.5], points[i, 1]])
        assert picture.poses[1].right == 0.5 + 0.5 * np.array_equal(picture.poses[1].limbs[0, 0], points[i, 0])
    run.test_blocks = {"hw": np.zeros((1, 2))}
    assert poses.posed(run, 6) == []


def test_section__draws_every_pose_over_its_photograph(run):
    figure = Figure()
    poses.draw_row(poses.posed(run, 1)[0], figure)
    assert [len(axes.lines) for axes in figure.axes] == [1] * 6
    assert figure.axes[3].get_title().startswith("λ = 2 (best), ")
    assert figure.axes[-1].get_title() == "truth"
    np.testing.assert_allclose(figure.axes[-1].lines[0].get_xydata().ravel(), run.test_blocks["points"][:4])
    assert str(shown_poses(run)).count("data:image/jpeg") == 2


COUNTS, COLUMN = np.array([3, 0, 2], np.int16), np.array([0, 1, 2, 1, 2], np.int16)


def aligned_run(french: str = "x y z") -> SimpleNamespace:
    """Two copies of a sentence pair; the second word has no candidate, the third one not the first column."""
    links = {"sure": [[0, 0], [1, 1]], "possible": [[0, 0], [1, 1], [0, 2]]}
    pair = {"counts": COUNTS, "column": COLUMN, "text": encoded(["a b c", french]), "number": np.array([101])}
    pair |= {name: np.array(pairs, np.int16) for name, pairs in links.items()}
    blocks = {name: np.concatenate([array, array]) for name, array in pair.items()}
    blocks |= {f"{name}_ptr": len(array) * np.arange(3) for name, array in pair.items()}
    labels = np.array([1, 3, 0, 0, 1, 0], np.uint8)  # words with two links: 00, 02 and 21
    predictions = {"labels": np.tile(labels, 2), "label_ptr": 6 * np.arange(3)}
    return SimpleNamespace(test_blocks=blocks, predictions=predictions, predicting="by the best λ")


def test_pair__is_a_grid_of_predicted_and_true_links():
    pair = alignments.Aligned(aligned_run(), 1)
    assert pair.predicted == {(0, 0), (0, 2), (2, 1)}
    assert pair.mistakes == 2  # 21 is wrong, 11 is missed
    axes = Figure().subplots()
    alignments.draw_pair(axes, pair)
    where: dict[str, set[tuple[int, int]]] = {}
    for square in axes.patches:
        look = to_hex(square.get_facecolor()) if square.get_fill() else "frame"
        where.setdefault(look, set()).add((int(square.get_y() + 0.5), int(square.get_x() + 0.5)))
    true = {GRID: {(0, 0), (1, 1), (0, 2)}, "frame": {(0, 0), (1, 1)}}
    assert where == {**true, GREEN: {(0, 0)}, BLUE: {(0, 2)}, ORANGE: {(2, 1)}}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    drawing = alignments.figure(aligned_run())
    assert drawing is not None
    drawing[0](figure := Figure())
    assert Counter(axes.get_title(loc="center") for axes in figure.axes) == {"sentence 101": 2}


def test_section__shows_the_worst_pairs_and_their_mistakes_in_words() -> None:
    text = str(worst_alignments(aligned_run("x <b> z")))
    assert text.count("<svg") == text.count("&lt;b&gt;</text>") == 2  # whatever the words are, the page stays whole
    assert "Wrong links: c – &lt;b&gt;. Missed: b – &lt;b&gt;." in text
    assert "0.0% of the 2 test sentence pairs" in text
    assert (
        "precision is 0.667, recall 0.500, and the alignment error rate 0.400" in text
    )  # A = 3, A ∩ P = 2, S = 2, A ∩ S = 1
