"""Verify trusts nothing: it finds any wrong number and names its lambda."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zarr
from lying import lying
from tiny import TINY, by_all_methods
from verified import copy_of, problem_of, run_of

from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.verify import CertificateError, verify

pytestmark = pytest.mark.slow


def change(name: str, index, value: Callable) -> Callable:
    """Tamper with one entry of an array."""

    def tamper(group: zarr.Group) -> None:
        array = group[name][...]
        array[index] = value(array[index])
        group[name][...] = array

    return tamper


def moved_alpha(group: zarr.Group) -> None:
    """Still on the simplex: weight moved from one labelling of a block to another."""
    offset, alpha = group["support_offset"][1], group["support_alpha"][...]
    i = int(np.argmax(np.diff(offset)))
    assert offset[i + 1] - offset[i] >= 2
    share = 0.01 * alpha[offset[i]]
    alpha[offset[i]] -= share
    alpha[offset[i] + 1] += share
    group["support_alpha"][...] = alpha


def scaled_alpha(group: zarr.Group) -> None:
    first = int(group["support_offset"][1][0])
    change("support_alpha", first, lambda x: x + 1e-6)(group)


def other_label(group: zarr.Group) -> None:
    atom = int(group["support_offset"][1][0])
    change("support_label", int(group["label_offset"][atom]), lambda y: (y + 1) % 2)(group)


def keep_rows(group: zarr.Group, rows: np.ndarray) -> None:
    """The breakpoints of these numbers and no others."""
    for _, array in list(group.arrays()):
        if array.metadata.dimension_names[0] == "breakpoint":
            values = array[...][rows]
            array.resize(values.shape)
            array[...] = values


def drop_breakpoint(group: zarr.Group) -> None:
    keep_rows(group, np.delete(np.arange(group["lambda"].size), 1))


def keep_last_two(group: zarr.Group) -> None:
    keep_rows(group, np.arange(group["lambda"].size - 2, group["lambda"].size))


def drop_last(group: zarr.Group) -> None:
    keep_rows(group, np.arange(group["lambda"].size - 1))


def smaller_top(group: zarr.Group) -> None:
    """As if init_path had found a third of psi~: consistent in itself, and wrong."""
    group.attrs["psi_norm2"] = group.attrs["psi_norm2"] / 3.0
    group.attrs["lam_top"] = group.attrs["lam_top"] / 3.0


def only_smaller_top(group: zarr.Group) -> None:
    group.attrs["lam_top"] = group.attrs["lam_top"] / 3.0


def other_hinge_at_zero(group: zarr.Group) -> None:
    group.attrs["hinge_at_zero"] = group.attrs["hinge_at_zero"] * 0.9


SMALL = 2e-6
TAMPER = {
    "hinge": (change("hinge", 1, lambda x: x - SMALL), "breakpoint 1.*hinge is stored as"),
    "norm2": (change("norm2", 1, lambda x: x * (1 + SMALL) + SMALL), "breakpoint 1.*norm2 is stored as"),
    "gap": (change("gap", 1, lambda x: x - SMALL), "breakpoint 1.*gap is stored as"),
    "loss_dual": (change("loss_dual", 1, lambda x: x + SMALL), "breakpoint 1.*loss_dual is stored as"),
    "primal": (change("primal", 1, lambda x: x - SMALL), "breakpoint 1.*primal is stored as"),
    "dual": (change("dual", 1, lambda x: x + SMALL), "breakpoint 1.*dual is stored as"),
    "nan": (change("gap", 1, lambda x: np.nan), "breakpoint 1.*gap is stored as nan"),
    "lambda": (change("lambda", 1, lambda x: x * (1 - SMALL)), "breakpoint 1|no breakpoint covers"),
    "weight": (change("weights", (1, 2), lambda x: x + SMALL), "breakpoint 1.*stored weights differ"),
    "alpha": (moved_alpha, "breakpoint 1"),
    "simplex": (scaled_alpha, "breakpoint 1.*simplex"),
    "label": (other_label, "breakpoint 1"),
}
LOWS = {
    "low": (change("lambda_low", 1, lambda x: x * 0.9), r"lambda .*breakpoint 1.*the gap reaches"),
    "low nan": (change("lambda_low", 1, lambda x: np.nan), "breakpoint 1"),
    "low negative": (change("lambda_low", 1, lambda x: -1.0), "breakpoint 1.*the gap reaches inf"),
    "low zero": (change("lambda_low", 1, lambda x: 0.0), "breakpoint 1.*the gap reaches"),
    "high low": (change("lambda_low", 1, lambda x: x * 1.01), "no breakpoint covers"),
    "missing breakpoint": (drop_breakpoint, "no breakpoint covers"),
    "missing beginning": (keep_last_two, r"breakpoint 0.*the gap reaches"),
    "missing end": (drop_last, "ends above lambda_min"),
    "model share": (change("cell_primal", 3, lambda x: 0.5 * x), "cell 3 of the model .* is not the rule's"),
    "model edge": (change("cell_low", 3, lambda x: 0.9 * x), "cell 3 of the model .* is not the rule's"),
    "model scale": (change("cell_scale", 2, lambda x: 1.0), "cell 2 of the model .* is not the rule's"),
    "model top": (change("cell_high", 1, lambda x: 0.1 * x), "cell 1 of the model .* is not the rule's"),
    "hinge at zero": (other_hinge_at_zero, "hinge_at_zero is stored as"),
}
TOPS = {
    "smaller top": (smaller_top, "psi_norm2 is stored as"),
    "only smaller top": (only_smaller_top, "the gap of w = 0"),
}


CELLS = {
    "scale": (change("cell_scale", 3, lambda x: 1.0), "expected a model that is not scaled"),
    "low": (change("cell_low", -1, lambda x: 0.1 * x), "interval.*the gap reaches"),
    "low zero": (change("cell_low", -1, lambda x: 0.0), "interval.*the gap reaches"),
    "low nan": (change("cell_low", 3, lambda x: np.nan), "expected 0 <= low <= high"),
    "hole": (change("cell_high", 3, lambda x: 0.99 * x), "no cell covers this interval"),
    "beginning": (change("cell_high", 0, lambda x: 1e9), "the largest lambdas"),
    "end": (change("cell_low", -1, lambda x: x * 1.1), "ends above"),
    "other t": (change("cell_primal", 3, lambda x: x[::-1] * [1.0, 0.0]), "interval.*the gap reaches"),
    "other tau": (change("cell_dual", 3, lambda x: 0.7 * x), "interval.*the gap reaches"),
    "negative t": (change("cell_primal", 3, lambda x: [1.2, -0.2]), "the shares t = .* are not >= 0"),
    "too much tau": (change("cell_dual", 3, lambda x: [0.7, 0.7]), "the shares tau = .* are not >= 0"),
    "inner": (change("cell_inner", 3, lambda x: x * (1 + 1e-5)), "inner is stored as"),
    "dual inner": (change("cell_dual_inner", 3, lambda x: x * (1 + 1e-5)), "dual_inner is stored as"),
    "interval": (change("cell_interval", 3, lambda x: x + 1), "inner is stored as|the gap reaches"),
    "breakpoint low": (change("lambda_low", 1, lambda x: 0.9 * x), "breakpoint 1.*lambda_low is stored as"),
    "last breakpoint low": (
        change("lambda_low", -1, lambda x: 0.9 * x),
        "lambda_low is stored as .*the last cell ends",
    ),
    "no interval": (change("cell_interval", 3, lambda x: 99), "no such interval"),
    "missing breakpoint": (drop_breakpoint, "inner is stored as"),
    "missing end": (drop_last, "inner is stored as"),
    "hinge at zero": (other_hinge_at_zero, "hinge_at_zero is stored as"),
    "smaller top": (smaller_top, "psi_norm2 is stored as"),
}


@pytest.mark.parametrize("case", CELLS)
def test_verify__finds_a_cell_that_is_not_so(tmp_path: Path, case: str) -> None:
    assert_refused("two_sided", *CELLS[case], tmp_path)


SCALES = {
    "too small": (
        change("cell_primal", -1, lambda x: 0.5 + 0.5 * x - [0.0, 0.5]),
        "the scaled weights have a mean hinge",
    ),
    "not at all": (change("cell_primal", -1, lambda x: [1.0, 0.0]), "the gap reaches 1 >"),
    "too large": (change("cell_primal", -1, lambda x: x * 1.5), "the gap reaches"),
    "of two": (change("cell_primal", -1, lambda x: [x[0], 0.1]), "expected the model down to 0 to be a multiple"),
}


@pytest.mark.parametrize("case", SCALES)
def test_verify__finds_weights_without_hinge_that_are_not_so(tmp_path: Path, case: str) -> None:
    assert_refused("two_sided_whole", *SCALES[case], tmp_path)


def assert_refused(kind: str, tamper: Callable, message: str, folder: Path) -> None:
    run = copy_of(run_of("multiclass", kind), folder)
    tamper(zarr.open_group(run / "path.zarr", mode="a"))
    with pytest.raises(CertificateError) as error:
        verify(problem_of("multiclass", kind), run)
    result = json.loads((run / "verify.json").read_text())
    assert result["certified"] is False
    assert any(re.search(message, line) for line in result["broken"]), result["broken"]
    assert all(line.startswith("lambda ") for line in result["broken"])
    assert result["broken"][0] in str(error.value)


@pytest.mark.parametrize("case", TAMPER)
@pytest.mark.parametrize("kind", ["one_sided", "two_sided", "paper", "grid"])
def test_verify__finds_a_number_that_is_not_so(tmp_path: Path, kind: str, case: str) -> None:
    assert_refused(kind, *TAMPER[case], tmp_path)


def first_of(name: str, b: int = 1) -> Callable:
    """Entry number of breakpoint b's first atom, or of its first label."""

    def entry_of(group: zarr.Group) -> int:
        atom = int(group["support_offset"][b][0])
        return int(group["label_offset"][atom]) if name == "support_label" else atom

    return entry_of


def put(name: str, value: Callable, index_of: Callable | None = None) -> Callable:
    """Tamper with the entry that breakpoint 1 begins at, or the one that `index_of` finds."""
    return lambda group: change(name, (index_of or first_of(name))(group), value)(group)


def wider(name: str) -> Callable:
    """An array with a column, or an entry, too many."""

    def tamper(group: zarr.Group) -> None:
        array = group[name]
        array.resize((*array.shape[:-1], array.shape[-1] + 1))
        array[..., -1] = 0  # else a chunk may be missing, which is another fault

    return tamper


FIRST = "breakpoint 1.*block 0"
BASELESS = {
    "label": (put("support_label", lambda y: 200), f"{FIRST}: holds 200, expected labels 0 to 2"),
    "label edge": (put("support_label", lambda y: 3), f"{FIRST}: holds 3, expected labels 0 to 2"),
    "alpha": (put("support_alpha", lambda x: np.nan), "breakpoint 1.*support_alpha: block 0: holds nan"),
    "loss": (put("support_loss", lambda x: np.inf), "breakpoint 1.*support_loss: block 0: holds inf"),
    "label offset": (put("label_offset", lambda x: 10**12), "breakpoint 1.*label_offset: block 0: holds 10{12}"),
    "shifted labels": (
        put("label_offset", lambda x: x + 1, lambda group: first_of("label_offset")(group) + 1),
        "breakpoint 1.*label_offset: block 0: holds a length of 2",
    ),
    "negative offset": (change("support_offset", (1, 2), lambda x: -5), "support_offset: block 2: holds -5"),
    "large offset": (change("support_offset", (1, 2), lambda x: 10**15), "support_offset: block 2: holds 10{15}"),
    "falling offset": (change("support_offset", (1, 2), lambda x: x + 100), "support_offset: block "),
    "wide weights": (wider("weights"), r"breakpoint 0.*weights: is float64 \(13,\), expected float64 \(12\)"),
    "wide offsets": (wider("support_offset"), "every breakpoint: support_offset: is int64"),
    "long lambda": (wider("lambda"), "every breakpoint: lambda_low: is float64"),
}


@pytest.mark.parametrize("case", BASELESS)
@pytest.mark.parametrize("kind", ["one_sided", "grid", "heuristic"])
def test_verify__refuses_arrays_that_do_not_fit_the_problem(tmp_path: Path, kind: str, case: str) -> None:
    assert_refused(kind, *BASELESS[case], tmp_path)


@pytest.mark.parametrize("kind", [{}, {"rule": "two_sided", "kappa": 0.7}, {"rule": "single", "lam": 0.1}])
def test_verify__finds_a_max_oracle_that_always_returns_the_truth(tmp_path: Path, kind: dict) -> None:
    """Every hinge is 0 then, w = 0 is "optimal", and every other check of verify holds."""
    problem = lying("truth", n=6)
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=100.0)
    path = PathOptions(**{"eps": 0.1, "kappa": 0.9, **kind})
    assert solve(Task(problem, options, path), tmp_path, key="k") is Status.CONVERGED
    with pytest.raises(CertificateError, match=r"w = 0: block \d: the max-oracle's answer is worth 0 "):
        verify(problem, tmp_path)
    assert json.loads((tmp_path / "verify.json").read_text())["certified"] is False


@pytest.mark.parametrize("kind", ["one_sided", "two_sided", "grid"])
def test_verify__finds_a_max_oracle_that_lies_about_one_block(tmp_path: Path, kind: str) -> None:
    """The path was solved with an honest one."""
    run = copy_of(run_of("python_oracle", kind), tmp_path)
    with pytest.raises(CertificateError, match=r"lambda .*\): block 2: the max-oracle's answer is worth"):
        verify(lying("truth", block=2), run)


@pytest.mark.parametrize("case", LOWS)
@pytest.mark.parametrize("kind", ["one_sided", "paper"])
def test_verify__finds_a_lambda_that_nothing_certifies(tmp_path: Path, kind: str, case: str) -> None:
    assert_refused(kind, *LOWS[case], tmp_path)


@pytest.mark.parametrize("case", TOPS)
def test_verify__finds_a_top_that_is_too_low(tmp_path: Path, case: str) -> None:
    assert_refused("one_sided", *TOPS[case], tmp_path)


def test_verify__finds_a_gap_above_the_tolerance_it_claims(tmp_path: Path) -> None:
    """Every number as it is, and the promise a tenth of what was solved to."""
    for kind in ("grid", "relative"):
        run = copy_of(run_of("multiclass", kind), tmp_path / kind)
        zarr.open_group(run / "path.zarr", mode="a").attrs["eps"] = 1e-6
        with pytest.raises(CertificateError, match=r"breakpoint 0.*the duality gap .* is above"):
            verify(TINY["multiclass"](), run)


def test_verify__samples_find_what_the_arithmetic_would_miss(tmp_path: Path, monkeypatch) -> None:
    """Were the certificate's formula wrong, an exact pass between two breakpoints would say so."""
    from gapwise.stages.certify.one_sided import OneSided

    run = copy_of(run_of("multiclass", "one_sided"), tmp_path)
    group = zarr.open_group(run / "path.zarr", mode="a")
    lams = group["lambda"][...]
    assert lams.size >= 5
    change("lambda_low", 1, lambda x: lams[4])(group)
    monkeypatch.setattr(OneSided, "gap_below", lambda *args: 0.0)
    monkeypatch.setattr(OneSided, "check_model", lambda self: None)
    monkeypatch.setattr("gapwise.stages.verify.compare", lambda served, expected, arrays, weights, sampled: (0, []))
    keep_rows(group, np.setdiff1d(np.arange(lams.size), [2, 3]))
    with pytest.raises(CertificateError, match=r"sampled\): an exact pass finds a gap"):
        verify(TINY["multiclass"](), run, samples=60)


@pytest.mark.parametrize("name", by_all_methods())
def test_verify__knows_a_primal_point_that_is_not_that_of_the_supports(tmp_path: Path, name: str) -> None:
    run = copy_of(run_of(name, "grid", method="accelerated"), tmp_path)
    assert verify(TINY[name](), run)["certified"]
    change("weights", (1, 0), lambda x: x + 0.1)(zarr.open_group(run / "path.zarr", mode="a"))
    with pytest.raises(CertificateError, match="breakpoint 1"):
        verify(TINY[name](), run)
