"""The model of every lambda, read from a solved path; its guarantee is in tests/stages/test_guarantee.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray
from records import FEATURES, breakpoint_record

from storage.backend import Location, location
from storage.layout import CELLS
from storage.paths import open_path
from storage.results import stack, write_path

LAMS = [0.8, 0.2, 0.4]  # as they were solved
CELL_VALUES = {
    "cell_interval": np.array([-1, 0, 1, 2, 3]),
    "cell_low": np.array([5.0, 0.8, 0.4, 0.2, 0.0]),
    "cell_high": np.array([np.inf, 5.0, 0.8, 0.4, 0.2]),
    "cell_primal": np.array([[1.0, 0.0], [0.0, 0.5], [0.25, 0.5], [0.5, 0.5], [1.5, 0.0]]),
    "cell_dual": np.full((5, 2), 0.5),
    "cell_inner": np.zeros(5),
    "cell_dual_inner": np.zeros(5),
}


def written(folder: Location, rule: str, **attrs) -> list[np.ndarray]:
    """A path over LAMS; their weights by falling lambda."""
    records = [breakpoint_record(k) | {"lambda": lam, "lambda_low": lam / 2} for k, lam in enumerate(LAMS)]
    if rule != "two_sided":
        records.sort(key=lambda r: -r["lambda"])
    attrs = {"kind": "regpath", "rule": rule, "lam_top": 5.0, "hinge_at_zero": 2.0, **attrs}
    write_path(folder / "path.zarr", [], stack(records), attrs, CELL_VALUES if rule == "two_sided" else None)
    return [r["weights"] for r in sorted(records, key=lambda r: -r["lambda"])]


def test_two_sided__mixes_the_weights_of_both_ends(tmp_path: Path) -> None:
    first, second, third = written(tmp_path, "two_sided")
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
        found = path.weights_at(lam)
        assert found.dims == ("feature",)
        np.testing.assert_allclose(found.values, expected, atol=1e-15)
    assert {spec.name for spec in CELLS} <= set(path.data_vars)


def test_open_path__takes_a_url() -> None:
    _, second, third = written(location("memory://paths/run"), "two_sided")
    np.testing.assert_allclose(open_path("memory://paths/run").weights_at(0.3).values, 0.5 * second + 0.5 * third)


def test_one_sided__keeps_the_weights_and_shrinks_above(tmp_path: Path) -> None:
    first, second, third = written(tmp_path, "one_sided")
    path = open_path(tmp_path)
    np.testing.assert_array_equal(path.weights_at(0.8).values, first)
    np.testing.assert_array_equal(path.weights_at(0.41).values, first)
    np.testing.assert_array_equal(path.weights_at(0.4).values, second)
    np.testing.assert_array_equal(path.weights_at(0.1).values, third)
    assert not path.weights_at(5.0).values.any()
    share = (2.0 - float(path["hinge"][0])) / (4.0 * float(path["norm2"][0]))
    np.testing.assert_allclose(path.weights_at(4.0).values, min(share, 1.0) * first)


def test_paper__scales_above(tmp_path: Path) -> None:
    first, _, third = written(tmp_path, "paper")
    np.testing.assert_allclose(open_path(tmp_path).weights_at(8.0).values, 0.1 * first)
    np.testing.assert_array_equal(open_path(tmp_path).weights_at(0.15).values, third)


def test_weights_at__takes_several(tmp_path: Path) -> None:
    written(tmp_path, "two_sided")
    found = open_path(tmp_path).weights_at([0.3, 2.0])
    assert found.dims == ("lambda", "feature")
    assert found.shape == (2, FEATURES)
    assert found["lambda"].values.tolist() == [0.3, 2.0]
    np.testing.assert_array_equal(found[1].values, open_path(tmp_path).weights_at(2.0).values)


@pytest.mark.parametrize("rule", ["one_sided", "paper"])
@pytest.mark.parametrize("lam", [0.09, 0.0, -1.0, np.nan])
def test_weights_at__says_where_the_path_ends(tmp_path: Path, rule: str, lam: float) -> None:
    written(tmp_path, rule)
    with pytest.raises(ValueError, match=r"expected lambda > 0 and >= 0\.1, where this path ends"):
        open_path(tmp_path).weights_at(lam)


def test_weights_at__knows_only_the_lambdas_of_a_grid(tmp_path: Path) -> None:
    first, *_ = written(tmp_path, "given", kind="grid")
    np.testing.assert_array_equal(open_path(tmp_path).weights_at(0.8).values, first)
    with pytest.raises(ValueError, match=r"lambda 0\.5 was not solved; there are \[0\.8, 0\.4, 0\.2\]"):
        open_path(tmp_path).weights_at(0.5)


def test_open_path__says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="run the solve stage first"):
        open_path(tmp_path)
