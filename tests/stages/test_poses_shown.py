"""Report and figure show test photographs with the poses of the maps alone, of some lambdas, and the true ones."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from tiny.tree_instances import tree_arrays

from gapwise.stages.problems import build
from gapwise.stages.reports import poses
from gapwise.stages.reports.page.sections import shown_poses
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
