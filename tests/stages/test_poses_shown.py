"""Report and figure show test photographs with the poses of the maps alone, of some lambdas, and the true ones."""

from __future__ import annotations

import json
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from tiny.tree_instances import tree_arrays

from gapwise.stages.problems import build
from gapwise.stages.reports import poses
from gapwise.stages.reports.page.sections import poses as section

LAMBDAS = np.array([9.0, 7.0, 5.0, 3.0, 2.0, 1.0])


@pytest.fixture
def run(tmp_path, monkeypatch) -> SimpleNamespace:
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
    (tmp_path / "metrics.json").write_text(json.dumps({"best_lambda": 2.0}))
    return SimpleNamespace(
        test_blocks=blocks, run_dir=tmp_path, arrays={"lambda": LAMBDAS}, features=SimpleNamespace(meta={}),
        has_features=True,
    )  # fmt: skip


def test_poses__are_by_the_maps_by_some_lambdas_and_true(run):
    shown = poses.posed(run)
    assert [picture.block for picture in shown] == [0, 1]
    assert shown[0].rgb.shape == (12, 16, 3)
    said = [pose.said for pose in shown[0].poses]
    assert said == ["maps alone", "λ = 9", "λ = 5", "λ = 2 (best)", "λ = 1", "truth"]
    points = run.test_blocks["points"].reshape(3, 2, 2)
    for i, picture in enumerate(shown):
        np.testing.assert_allclose(picture.poses[-1].limbs[0], points[i])
        np.testing.assert_allclose(picture.poses[1].limbs[0], [[4 * (9 % 4) + 1.5, 4 * (9 // 4) + 1.5], points[i, 1]])
        assert picture.poses[1].right == 0.5 + 0.5 * np.array_equal(picture.poses[1].limbs[0, 0], points[i, 0])
    assert poses.has_poses(run)
    assert not poses.has_poses(SimpleNamespace(test_blocks={"hw": np.zeros((1, 2))}))


def test_section__draws_every_pose_over_its_photograph(run):
    assert section.applies(run)
    text = str(section.content(run))
    drawings = [f"<svg{part.split('</svg>')[0]}</svg>" for part in text.split("<svg")[1:]]
    assert len(drawings) == 2
    root = ElementTree.fromstring(drawings[0])
    groups = root.findall("g")
    assert [len(group.findall(".//line")) for group in groups] == [1] * 6
    assert groups[3].find("text").text.startswith("λ = 2 (best) · ")
    assert groups[-1].find("text").text == "truth"
    end = groups[-1].find(".//line")
    scale = section.WIDTH / 16
    np.testing.assert_allclose(
        [float(end.get(name)) for name in ("x1", "y1", "x2", "y2")], scale * run.test_blocks["points"][:4], atol=0.06
    )
