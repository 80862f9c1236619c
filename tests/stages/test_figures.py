"""Figures of one run: drawn only from what the run and its features contain."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from matplotlib.figure import Figure
from PIL import Image
from reported import digits
from solved import options_of, path_of, solved

from gapwise.stages.evaluate import evaluate
from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.losses import VOID
from gapwise.stages.reports import pictures
from gapwise.stages.reports.bounds import whole_axis
from gapwise.stages.reports.figures import draw
from gapwise.stages.solver.path.rules.paper import Paper
from gapwise.storage.features import FeatureWriter, open_features
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.results import read_path, write_trace

ZERO = {"lam_top": 1.0, "hinge_at_zero": 1.0, "psi_norm2": 0.2, "relative": False}
"""Attributes of a path that are about w = 0."""
PICTURES = ["convergence.png", "losses.png", "path.png", "pictures.png", "work.png"]
SINGLE = ["convergence.png", "pictures.png"]
"""Of one lambda: all others would show one dot."""


def write_run(run_dir: Path, count: int, kind: str = "regpath") -> None:
    """A path.zarr of `count` breakpoints, each certified down to the next one, and the last down to 0."""
    lam = 0.5 * 0.6 ** np.arange(count)
    columns: dict[str, np.ndarray] = {
        "lambda": lam, "lambda_low": np.append(lam[1:], 0.0), "gap": np.full(count, 0.08), "hinge": 0.5 * lam**0.5,
        "norm2": 0.02 / lam, "loss_dual": np.full(count, 0.6), "effective_passes": np.full(count, 3.0),
        "status": np.zeros(count, np.int8), "seconds": np.full(count, 0.2), "train_loss": 0.4 * lam**0.3,
        "test_loss": 0.2 + 0.1 * np.abs(np.arange(count) - count // 2),
    }  # fmt: skip
    if kind != "single":
        columns |= Paper(None, None).model(columns)
    group = zarr.open_group(run_dir / "path.zarr", mode="w")
    for name, column in columns.items():
        group.create_array(name, data=column)
    (run_dir / "metrics.json").write_text(json.dumps({"best_lambda": float(lam[count // 2])}))
    rule = "paper" if kind == "regpath" else kind
    group.attrs.update({
        **ZERO, "format_version": FORMAT_VERSION, "rule": rule, "eps": 0.1, "certified": True, "certainty": "exact",
        "dual_point": True, "status_meanings": ["CONVERGED"],
    })  # fmt: skip
    steps = np.arange(1.0, 3.0 * count + 1.0)
    trace = {
        "lambda": np.repeat(lam, 3),
        "passes": steps,
        "seconds": 0.1 * steps,
        "gap": np.tile([0.5, 0.2, 0.08], count),
    }
    write_trace(run_dir / "trace.zarr", np.stack([*trace.values()], axis=1), [*trace])


def write_features(target: Path, pictures: int) -> None:
    with FeatureWriter(target) as writer:
        for _ in range(max(pictures, 2)):
            regions = np.repeat(np.arange(12), 10).reshape(10, 12)
            blocks = {"labels": np.zeros(12, np.uint8)}
            if pictures:
                blocks |= {
                    "superpixel_map": regions.astype(np.uint16).ravel(), "mask": (regions > 5).astype(np.uint8).ravel(),
                    "rgb": np.full((120, 3), 90, np.uint8), "hw": np.array([[10, 12]], np.int32),
                }  # fmt: skip
            writer.append("test", **blocks)


def test_pictures__leave_void_pixels_out_of_the_score() -> None:
    regions, mask = np.array([[0, 0, 1, 1]]), np.array([1, VOID, 0, 0], np.uint8)
    blocks = {
        "superpixel_map": regions.ravel(), "mask": mask, "rgb": np.full((4, 3), 90, np.uint8), "hw": np.array([[1, 4]]),
    }  # fmt: skip
    blocks |= {f"{name}_ptr": np.array([0, len(array)]) for name, array in blocks.items()}
    run = SimpleNamespace(test_blocks=blocks, predictions={"labels": np.array([1, 0]), "label_ptr": np.array([0, 2])})
    figure = Figure()
    drawing = pictures.figure(run)  # type: ignore[arg-type]
    assert drawing is not None
    drawing[0](figure)
    assert [axes.get_title(loc="center") for axes in figure.axes if axes.get_title(loc="center")] == ["IoU 1.00"]


@pytest.mark.parametrize(("count", "kind"), [(1, "single"), (17, "regpath")])
def test_draw__makes_every_figure(tmp_path: Path, count: int, kind: str) -> None:
    write_run(tmp_path, count, kind)
    write_features(tmp_path / "features", pictures=3)
    labels = np.tile((np.arange(12) > 4).astype(np.uint8), 3)
    np.savez(tmp_path / "predictions.npz", labels=labels, label_ptr=np.arange(4) * 12)
    made = draw(tmp_path, open_features(tmp_path / "features"))
    expected = SINGLE if kind == "single" else PICTURES
    assert sorted(path.name for path in made) == expected
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == expected
    for path in made:
        with Image.open(path) as picture:
            assert np.asarray(picture.convert("L")).std() > 5


def below_first(arrays: dict[str, np.ndarray], attrs: dict[str, object]) -> tuple[np.ndarray, np.ndarray]:
    """The curve from the first breakpoint down; 200 points lie above it."""
    lam = arrays["lambda"]
    lams, bound = whole_axis(arrays, attrs, float(lam[0]), 0.3 * float(lam[-1]))
    return lams[200:], bound[200:]


def test_whole_axis__is_the_convex_bound_within_each_cell() -> None:
    """One cell of both points, and what the last point certifies down to 0."""
    arrays = {
        "lambda": np.array([0.4, 0.2]), "gap": np.array([0.01, 0.02]), "hinge": np.array([0.3, 0.05]),
        "loss_dual": np.array([0.5, 0.4]), "norm2": np.array([0.5, 1.8]), "cell_interval": np.array([0, 1, 2]),
        "cell_low": np.array([0.4, 0.2, 0.0]), "cell_high": np.array([np.inf, 0.4, 0.2]),
        "cell_primal": np.array([[0, 1], [0.5, 0.5], [1, 0]]), "cell_dual": np.array([[0, 1], [0.25, 0.75], [1, 0]]),
        "cell_inner": np.array([0.0, 0.9, 0.0]), "cell_dual_inner": np.array([0.0, 0.072, 0.0]),
        "cell_scale": np.full(3, np.inf),
    }  # fmt: skip
    attrs = {"rule": "two_sided", "hinge_at_zero": 0.9, "psi_norm2": 0.2, "relative": False}
    lams, bound = below_first(arrays, attrs)
    assert np.all(np.diff(lams) <= 0)
    A = 0.25 * (0.5 + 2 * 0.9 + 1.8)
    B = 0.0625 * 0.16 * 0.5 + 2 * 0.25 * 0.75 * 0.072 + 0.5625 * 0.04 * 1.8
    assert bound[0] == pytest.approx(0.4 * A / 2 + 0.175 - 0.425 + B / 0.8)
    assert bound[29] == pytest.approx(0.2 * A / 2 + 0.175 - 0.425 + B / 0.4)
    assert lams[-1] == pytest.approx(0.06)
    assert bound[-1] == pytest.approx(
        0.06 * 0.9 + 0.05 - (0.4 - 0.072 / 0.12 if 0.4 * 0.06 >= 0.072 else 0.06 * 0.16 / 0.144)
    )
    relative = below_first(arrays, {**attrs, "relative": True})[1]
    assert relative[0] == pytest.approx(bound[0] / (0.4 * A / 2 + 0.175))


def test_figures__of_a_path_that_a_limit_ended_at_its_first_breakpoint(tmp_path: Path) -> None:
    features = digits(tmp_path)
    problem = open_problem(features, "train")
    solved(problem, tmp_path / "run", options_of(), path_of(eps=0.005, max_breakpoints=1))
    arrays, attrs = read_path(tmp_path / "run" / "path.zarr")
    assert attrs["status"] == "PASS_LIMIT"
    assert not (arrays["cell_interval"] >= 1).any()  # nothing is certified below it
    evaluate(features, tmp_path / "run")
    assert draw(tmp_path / "run", open_features(features))
