"""The model of every lambda, read from a solved path; its guarantee is in tests/stages/test_guarantee.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
from records import FEATURES, breakpoint_record

from gapwise.storage.backend import DamagedError, Location
from gapwise.storage.layout import CELL_CERTIFICATES, CELLS, open_group
from gapwise.storage.mixture import model_at
from gapwise.storage.paths import open_path
from gapwise.storage.results import add_losses, stack, write_path

LAMS = [0.8, 0.2, 0.4]  # as they were solved
JUST_ABOVE = [float(np.nextafter(lam, np.inf)) for lam in (0.4, 0.2)]
MIXED = {
    "cell_interval": np.array([-1, 0, 1, 2, 3]),
    "cell_low": np.array([5.0, 0.8, 0.4, 0.2, 0.0]),
    "cell_high": np.array([np.inf, 5.0, 0.8, 0.4, 0.2]),
    "cell_primal": np.array([[1.0, 0.0], [0.0, 0.5], [0.25, 0.5], [0.5, 0.5], [1.5, 0.0]]),
    "cell_scale": np.full(5, np.inf),
    "cell_dual": np.full((5, 2), 0.5),
    "cell_inner": np.zeros(5),
    "cell_dual_inner": np.zeros(5),
}
"""Cells that mix the weights of two breakpoints."""
STEPS = {
    "cell_interval": np.array([0, 1, 2, 3]),
    "cell_low": np.array([np.nextafter(0.8, np.inf), *JUST_ABOVE, 0.1]),
    "cell_high": np.array([np.inf, np.nextafter(0.8, np.inf), *JUST_ABOVE]),
    "cell_primal": np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]),
    "cell_scale": np.array([1.6, np.inf, np.inf, np.inf]),
}
"""Cells where one breakpoint's weights hold down to the next one, and shrink above the first."""


def written(folder: Location, cells: dict[str, np.ndarray] | None) -> list[np.ndarray]:
    """A path over LAMS; their weights by falling lambda."""
    records = [breakpoint_record(k) | {"lambda": lam, "lambda_low": lam / 2} for k, lam in enumerate(LAMS)]
    if cells is None:
        records.sort(key=lambda r: -r["lambda"])
    write_path(folder / "path.zarr", [], stack(records), {"eps": 10.0, "relative": False}, cells)
    return [r["weights"] for r in sorted(records, key=lambda r: -r["lambda"])]


def test_weights_at__mixes_the_weights_of_both_ends(tmp_path: Path) -> None:
    first, second, third = written(tmp_path, MIXED)
    path = open_path(tmp_path)
    assert isinstance(path, xarray.Dataset)
    assert path["lambda"].values.tolist() == [0.8, 0.4, 0.2]
    for lam, expected in (
        (7.0, 0.0 * first),
        (2.0, 0.5 * first),
        (0.5, 0.25 * first + 0.5 * second),
        (0.3, 0.5 * second + 0.5 * third),
        (0.01, 1.5 * third),
    ):
        weights = path.weights_at(lam)
        assert weights.dims == ("feature",)
        np.testing.assert_allclose(weights.values, expected, atol=1e-15)
    assert {spec.name for spec in (*CELLS, *CELL_CERTIFICATES)} <= set(path.data_vars)


def test_weights_at__keeps_weights_down_to_the_next_breakpoint_and_shrinks_them_above(tmp_path: Path) -> None:
    first, second, third = written(tmp_path, STEPS)
    path = open_path(tmp_path)
    for lam, expected in ((0.8, first), (0.41, first), (0.4, second), (0.21, second), (0.2, third), (0.1, third)):
        np.testing.assert_array_equal(path.weights_at(lam).values, expected)
    for lam, share in ((0.9, 1.0), (1.6, 1.0), (3.2, 0.5), (16.0, 0.1)):
        np.testing.assert_allclose(path.weights_at(lam).values, share * first)
    assert not {spec.name for spec in CELL_CERTIFICATES} & set(path.data_vars)


def test_weights_at__takes_several(tmp_path: Path) -> None:
    written(tmp_path, MIXED)
    several = open_path(tmp_path).weights_at([0.3, 2.0])
    assert several.dims == ("lambda", "feature")
    assert several.shape == (2, FEATURES)
    assert several["lambda"].values.tolist() == [0.3, 2.0]
    np.testing.assert_array_equal(several[1].values, open_path(tmp_path).weights_at(2.0).values)


@pytest.mark.parametrize("lam", [0.09, 0.0, -1.0, np.nan])
def test_weights_at__says_where_the_path_ends(tmp_path: Path, lam: float) -> None:
    written(tmp_path, STEPS)
    with pytest.raises(ValueError, match=r"expected lambda > 0 and >= 0\.1, where this path ends"):
        open_path(tmp_path).weights_at(lam)


def test_weights_at__knows_only_the_lambdas_of_a_grid(tmp_path: Path) -> None:
    first, *_ = written(tmp_path, None)
    np.testing.assert_array_equal(open_path(tmp_path).weights_at(0.8).values, first)
    with pytest.raises(ValueError, match=r"lambda 0\.5 was not solved; there are \[0\.8, 0\.4, 0\.2\]"):
        open_path(tmp_path).weights_at(0.5)


def test_model_at__is_the_same_model(tmp_path: Path) -> None:
    for number, cells in enumerate((MIXED, STEPS, None)):
        written(tmp_path / str(number), cells)
        path = open_path(tmp_path / str(number))
        for lam in (0.8, 0.4, 0.2) if cells is None else (7.0, 2.0, 0.8, 0.5, 0.4, 0.3, 0.2, 0.15):
            model = model_at(tmp_path / str(number) / "path.zarr", lam)
            assert model.weights.tobytes() == path.weights_at(lam).values.tobytes()
            solved = np.flatnonzero(path["lambda"].values == lam)
            assert model.gap == (float(path["gap"][solved[0]]) if solved.size else None)
    with pytest.raises(FileNotFoundError, match="no solved path here"):
        model_at(tmp_path / "nothing" / "path.zarr", 0.4)


def test_model_at__of_a_breakpoint_that_is_not_certified_is_what_the_cells_say_or_as_solved(tmp_path: Path) -> None:
    _, second, _ = written(tmp_path, MIXED | {"cell_primal": np.full((5, 2), 0.25)})
    group = open_group(tmp_path / "path.zarr", "a")
    group["gap"][...] = 11.0  # eps is 10
    model = model_at(tmp_path / "path.zarr", 0.4)
    assert model.weights.tobytes() == open_path(tmp_path).weights_at(0.4).values.tobytes() != second.tobytes()
    assert model.gap is None
    model = model_at(tmp_path / "path.zarr", 0.4, as_solved=True)
    assert model.weights.tobytes() == second.tobytes()
    assert (model.gap, model.allowed) == (11.0, 10.0)
    with pytest.raises(ValueError, match="where this path ends"):
        model_at(tmp_path / "path.zarr", -1.0, as_solved=True)


def test_open_path__refuses_a_path_that_lacks_a_chunk_of_any_array(tmp_path: Path) -> None:
    written(tmp_path, MIXED)
    add_losses(tmp_path / "path.zarr", {"test_loss": np.zeros(3)}, {"lambda": np.ones(2)})
    chunks = [file for file in (tmp_path / "path.zarr").rglob("*/c/**/*") if file.is_file()]
    assert {file.relative_to(tmp_path).parts[1] for file in chunks} > {"gap", "block_gap", "cell_low", "test_loss"}
    for chunk in chunks[::3]:
        kept = chunk.read_bytes()
        chunk.unlink()
        with pytest.raises(DamagedError, match=r"chunks missing: 1 of 1.*; delete .* and repeat the command"):
            open_path(tmp_path)
        chunk.write_bytes(kept)
    assert open_path(tmp_path)["test_loss"].values.tolist() == [0.0, 0.0, 0.0]
