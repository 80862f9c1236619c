"""Verify trusts nothing: it finds any wrong number and names its lambda."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tiny import TINY
from tiny.python_oracle_instances import lying
from verified import problem_of, run_of

from gapwise.stages.certify.cells import Cells
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.verify import CertificateError, in_memory, verify
from gapwise.storage.layout import BOUNDS, PATH, TWO_POINTS
from gapwise.storage.results import read_path


class Opened(NamedTuple):
    """A copy of a path, in memory."""

    arrays: dict[str, np.ndarray]
    attrs: dict[str, Any]


def opened(run: Path) -> Opened:
    arrays, attrs = read_path(run / "path.zarr")
    return Opened({name: array.copy() for name, array in arrays.items()}, dict(attrs))


def change(name: str, index, value: Callable) -> Callable:
    """Tamper with one entry of an array."""

    def tamper(path: Opened) -> None:
        path.arrays[name][index] = value(path.arrays[name][index])

    return tamper


def moved_alpha(path: Opened) -> None:
    """Still on the simplex: weight moved from one labelling of a block to another."""
    offset, alpha = path.arrays["support_offset"][1], path.arrays["support_alpha"]
    i = int(np.argmax(np.diff(offset)))
    assert offset[i + 1] - offset[i] >= 2
    share = 0.01 * alpha[offset[i]]
    alpha[offset[i]] -= share
    alpha[offset[i] + 1] += share


def keep_rows(path: Opened, rows: np.ndarray) -> None:
    """The breakpoints of these numbers and no others."""
    for spec in (*PATH, *BOUNDS, *TWO_POINTS):
        if spec.name in path.arrays and spec.dims[0] == "breakpoint":
            path.arrays[spec.name] = path.arrays[spec.name][rows]


def drop(*rows: int) -> Callable:
    """Tamper by leaving out these breakpoints, counted from the end if negative."""
    return lambda path: keep_rows(path, np.delete(np.arange(path.arrays["lambda"].size), rows))


def keep_last_two(path: Opened) -> None:
    keep_rows(path, np.arange(path.arrays["lambda"].size)[-2:])


def scaled(share: float, *names: str) -> Callable:
    """Tamper with attributes; those of w = 0 can be consistent in themselves, and wrong."""

    def tamper(path: Opened) -> None:
        path.attrs.update({name: share * path.attrs[name] for name in names})

    return tamper


def first_of(name: str, b: int = 1) -> Callable:
    """Entry number of breakpoint b's first atom, or of its first label."""

    def entry_of(path: Opened) -> int:
        atom = int(path.arrays["support_offset"][b][0])
        return int(path.arrays["label_offset"][atom]) if name == "support_label" else atom

    return entry_of


def put(name: str, value: Callable, index_of: Callable | None = None) -> Callable:
    """Tamper with the entry that breakpoint 1 begins at, or the one that `index_of` finds."""
    return lambda path: change(name, (index_of or first_of(name))(path), value)(path)


def wider(name: str) -> Callable:
    """An array with a column, or an entry, too many."""

    def tamper(path: Opened) -> None:
        array = path.arrays[name]
        path.arrays[name] = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 1)])

    return tamper


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
    "simplex": (put("support_alpha", lambda x: x + 1e-6), "breakpoint 1.*simplex"),
    "label": (put("support_label", lambda y: (y + 1) % 2), "breakpoint 1"),
}


def stretched(c: int, share: float) -> Callable:
    """Tamper with the edge between cells c and c + 1: they still touch."""

    def tamper(path: Opened) -> None:
        path.arrays["cell_low"][c] *= share
        path.arrays["cell_high"][c + 1] *= share

    return tamper


def without_last_cell(path: Opened) -> None:
    path.arrays.update({name: array[:-1] for name, array in path.arrays.items() if name.startswith("cell_")})


ALONE = r"breakpoint 1\): lambda_low is stored as .* rests on it alone"
LOWS = {
    "low": (change("lambda_low", 1, lambda x: x * 0.9), ALONE),
    "low nan": (change("lambda_low", 1, lambda x: np.nan), ALONE),
    "low negative": (change("lambda_low", 1, lambda x: -1.0), ALONE),
    "high low": (change("lambda_low", 1, lambda x: x * 1.01), ALONE),
    "missing breakpoint": (drop(1), "the model is not that of breakpoint 1"),
    "missing beginning": (keep_last_two, "the model is not that of breakpoint 0"),
    "missing end": (drop(-1), "no such interval"),
    "missing last cell": (without_last_cell, "ends above lambda_min"),
    "further down": (stretched(3, 0.9), r"interval 3\): the gap reaches 0\.1"),
    "further up": (stretched(3, 1.1), r"interval 4\): the model is not that of breakpoint 3"),
    "model share": (change("cell_primal", 3, lambda x: 0.5 * x), "the model is not that of breakpoint 2"),
    "model edge": (change("cell_low", 3, lambda x: 0.9 * x), "two cells do"),
    "model scale": (change("cell_scale", 2, lambda x: 1.0), "the model is not that of breakpoint 1"),
    "model top": (change("cell_high", 1, lambda x: 0.1 * x), "no cell covers this interval"),
    "hinge at zero": (scaled(0.9, "hinge_at_zero"), "hinge_at_zero is stored as"),
}
TOPS = {
    "smaller top": (scaled(1 / 3, "psi_norm2", "lam_top"), "psi_norm2 is stored as"),
    "only smaller top": (scaled(1 / 3, "lam_top"), "but lam_top is stored as"),
}


CELLS = {
    "scale": (change("cell_scale", 3, lambda x: 1.0), "expected a model that is not scaled"),
    "low": (change("cell_low", -1, lambda x: 0.1 * x), "interval.*the gap reaches"),
    "low nan": (change("cell_low", 3, lambda x: np.nan), "expected 0 <= low <= high"),
    "hole": (change("cell_high", 3, lambda x: 0.99 * x), "no cell covers this interval"),
    "beginning": (change("cell_high", 0, lambda x: 1e9), "the largest lambdas"),
    "end": (change("cell_low", -1, lambda x: x * 1.1), "ends above"),
    "other t": (change("cell_primal", 3, lambda x: x[::-1] * [1.0, 0.0]), "interval.*the gap reaches"),
    "other tau": (change("cell_dual", 3, lambda x: 0.7 * x), "interval.*the gap reaches"),
    "negative t": (change("cell_primal", 3, lambda x: [1.2, -0.2]), "the shares t = .* are not >= 0"),
    "inner": (change("cell_inner", 3, lambda x: x * (1 + 1e-5)), "inner is stored as"),
    "dual inner": (change("cell_dual_inner", 3, lambda x: x * (1 + 1e-5)), "dual_inner is stored as"),
    "last breakpoint low": (
        change("lambda_low", -1, lambda x: 0.9 * x),
        "lambda_low is stored as .*the last cell ends",
    ),
    "no interval": (change("cell_interval", 3, lambda x: 99), "no such interval"),
    "missing breakpoint": (drop(1), "inner is stored as"),
}


SCALES = {
    "too small": (
        change("cell_primal", -1, lambda x: 0.5 + 0.5 * x - [0.0, 0.5]),
        "the scaled weights have a mean hinge",
    ),
    "not at all": (change("cell_primal", -1, lambda x: [1.0, 0.0]), "the gap reaches 1 >"),
    "of two": (change("cell_primal", -1, lambda x: [x[0], 0.1]), "expected the model down to 0 to be a multiple"),
}


AXIS = {
    "eps": (scaled(0.9, "eps"), "the gap reaches|duality gap"),
    "end": (lambda path: path.attrs.update(axis_end="PASS_LIMIT"), "axis_end is stored as 'PASS_LIMIT'"),
    "bottom": (change("cell_low", -1, lambda x: x + 1e-3), "ends above"),
}
"""Of a path that may be stopped anywhere."""


FIRST = "breakpoint 1.*block 0"
BASELESS = {
    "label": (put("support_label", lambda y: 200), f"{FIRST}: holds 200, expected labels 0 to 2"),
    "alpha": (put("support_alpha", lambda x: np.nan), "breakpoint 1.*support_alpha: block 0: holds nan"),
    "loss": (put("support_loss", lambda x: np.inf), "breakpoint 1.*support_loss: block 0: holds inf"),
    "label offset": (put("label_offset", lambda x: 10**12), "breakpoint 1.*label_offset: block 0: holds 10{12}"),
    "shifted labels": (
        put("label_offset", lambda x: x + 1, lambda path: first_of("label_offset")(path) + 1),
        "breakpoint 1.*label_offset: block 0: holds a length of 2",
    ),
    "negative offset": (change("support_offset", (1, 2), lambda x: -5), "support_offset: block 2: holds -5"),
    "falling offset": (change("support_offset", (1, 2), lambda x: x + 100), "support_offset: block "),
    "wide weights": (wider("weights"), r"breakpoint 0.*weights: is float64 \(13,\), expected float64 \(12\)"),
    "wide offsets": (wider("support_offset"), "every breakpoint: support_offset: is int64"),
    "long lambda": (wider("lambda"), "every breakpoint: lambda_low: is float64"),
}


def cases(kinds: list[str], table: dict[str, tuple[Callable, str]]) -> list[Any]:
    """Each way to tamper with a path, at one of these kinds of path in turn."""
    pairs = zip(itertools.cycle(kinds), table.items(), strict=False)
    return [pytest.param(kind, *wrong, id=f"{kind}-{name}") for kind, (name, wrong) in pairs]


@pytest.mark.parametrize(
    ("kind", "tamper", "message"),
    [
        *cases(["two_sided", "paper", "grid"], TAMPER),
        *cases(["paper"], LOWS),
        *cases(["two_sided"], TOPS),
        *cases(["two_sided"], CELLS),
        *cases(["two_sided_whole"], SCALES),
        *cases(["anytime_whole"], AXIS),
        *cases(["paper", "grid", "heuristic"], BASELESS),
    ],
)
def test_verify__finds_what_is_not_so_and_names_its_lambda(kind: str, tamper: Callable, message: str) -> None:
    path, kept = opened(run_of("multiclass", kind)), []
    tamper(path)
    with pytest.raises(CertificateError) as error:
        verify(problem_of("multiclass", kind), in_memory(*path, keep=kept.append))
    (result,) = kept
    assert result["certified"] is False
    assert any(re.search(message, line) for line in result["broken"]), result["broken"]
    assert all(line.startswith("lambda ") for line in result["broken"])
    assert result["broken"][0] in str(error.value)


@pytest.mark.parametrize("kind", [{"rule": "two_sided", "kappa": 0.7}, {"rule": "single", "lam": 0.1}])
def test_verify__finds_a_max_oracle_that_always_returns_the_truth(tmp_path: Path, kind: dict) -> None:
    """Every hinge is 0 then, w = 0 is "optimal", and every other check of verify holds."""
    problem = lying("truth", n=6)
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=100.0)
    path = PathOptions(**{"eps": 0.1, "kappa": 0.9, **kind})
    assert solve(Task(problem, options, path), tmp_path, key="k") is Status.CONVERGED
    with pytest.raises(CertificateError, match=r"w = 0: block \d: the max-oracle's answer is worth 0 "):
        verify(problem, tmp_path)
    assert json.loads((tmp_path / "verify.json").read_text())["certified"] is False


@pytest.mark.parametrize("kind", ["two_sided", "grid"])
def test_verify__finds_a_max_oracle_that_lies_about_one_block(kind: str) -> None:
    """The path was solved with an honest one."""
    path = opened(run_of("python_oracle", kind))
    with pytest.raises(CertificateError, match=r"lambda .*\): block 2: the max-oracle's answer is worth"):
        verify(lying("truth", block=2), in_memory(*path))


@pytest.mark.parametrize("kind", ["grid", "relative"])
def test_verify__finds_a_gap_above_the_tolerance_it_claims(kind: str) -> None:
    """Every number as it is, and the promise far below what was solved to."""
    path = opened(run_of("multiclass", kind))
    path.attrs["eps"] = 1e-6
    with pytest.raises(CertificateError, match=r"breakpoint 0.*the duality gap .* is above"):
        verify(TINY["multiclass"](), in_memory(*path))


def test_verify__samples_find_what_the_arithmetic_would_miss(monkeypatch) -> None:
    """Were the certificate's formula wrong, an exact pass between two breakpoints would say so."""
    path = opened(run_of("multiclass", "paper"))
    lams = path.arrays["lambda"]
    assert lams.size >= 5
    path.arrays["lambda_low"][1] = lams[4]
    monkeypatch.setattr(Cells, "_cell", lambda *args: 0.0)
    monkeypatch.setattr(Cells, "_coverage", lambda self: None)
    drop(2, 3)(path)
    with pytest.raises(CertificateError, match=r"sampled\): an exact pass finds a gap"):
        verify(TINY["multiclass"](), in_memory(*path), samples=60)


def test_verify__knows_a_primal_point_that_is_not_that_of_the_supports() -> None:
    path = opened(run_of("multiclass", "grid", method="accelerated"))
    assert verify(TINY["multiclass"](), in_memory(*path))["certified"]
    path.arrays["weights"][1, 0] += 0.1
    with pytest.raises(CertificateError, match="breakpoint 1"):
        verify(TINY["multiclass"](), in_memory(*path))
