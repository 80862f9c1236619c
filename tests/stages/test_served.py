"""Verify compares the models that a path gives out with its own: a mixture that is wrong anywhere ends in an error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from verified import copy_of, problem_of, run_of

from gapwise.stages.certify import served as serving
from gapwise.stages.certify.audit import verifier
from gapwise.stages.model.from_run import check_weights
from gapwise.stages.verify import CertificateError, in_memory, verified, verify
from gapwise.storage import mixture
from gapwise.storage.mixture import Mixture
from gapwise.storage.models import write_model
from gapwise.storage.paths import open_path
from gapwise.storage.results import read_path

OF_CELLS, SOLVED_AT, MIXED, CHECK = Mixture._of_cells, Mixture.solved_at, mixture.mixed, Mixture._check


def other_cell(self, lam):
    """The next cell down."""
    arrays = dict(self.arrays)
    if (at := SOLVED_AT(self, lam)) is not None:
        return {at: 1.0}
    c = min(int(np.argmax(arrays["cell_low"] <= lam)) + 1, arrays["cell_low"].size - 1)
    k, t = int(arrays["cell_interval"][c]), arrays["cell_primal"][c]
    return {k - 1: float(t[0]), k: float(t[1])}


def forgotten_share(self, lam):
    return dict(list(OF_CELLS(self, lam).items())[:1])


def swapped_ends(self, lam):
    parts = OF_CELLS(self, lam)
    return dict(zip(parts, reversed(parts.values()), strict=True))


def more(self, lam):
    """Shares times 1.1."""
    return {b: 1.1 * share for b, share in OF_CELLS(self, lam).items()}


def without_scale(self, lam):
    if (at := SOLVED_AT(self, lam)) is not None:
        return {at: 1.0}
    c = int(np.argmax(self.arrays["cell_low"] <= lam))
    k, t = int(self.arrays["cell_interval"][c]), self.arrays["cell_primal"][c]
    return {k - 1: float(t[0]), k: float(t[1])}


def lower_end(self, lam):
    """At a cell's lower end the cell below it."""
    return OF_CELLS(self, np.nextafter(lam, 0.0)) if lam in self.arrays["cell_low"][:-1] else OF_CELLS(self, lam)


def below_the_end(self, lam, low):
    return None


def any_given(self, lam):
    return {int(np.argmin(np.abs(self.arrays["lambda"] - lam))): 1.0}


def first_only(parts, solved, breakpoints, d):
    return MIXED(dict([*parts.items()][:1]), solved, breakpoints, d)


def next_row(parts, solved, breakpoints, d):
    """The weights of the breakpoint after each."""
    return MIXED(parts, lambda b: solved(min(b + 1, breakpoints - 1)), breakpoints, d)


TWO, ONE = ("two_sided", "two_sided_whole"), ("one_sided", "paper")
SABOTAGE = {
    "another cell": (TWO, "_of_cells", other_cell),
    "a forgotten share": (TWO, "_of_cells", forgotten_share),
    "swapped ends": ((*TWO, *ONE), "_of_cells", swapped_ends),
    "shares times 1.1": (TWO, "_of_cells", more),
    "a forgotten scale": (ONE, "_of_cells", without_scale),
    "the cell below at an end": (TWO, "_of_cells", lower_end),
    "nothing of solved points": (TWO, "solved_at", lambda self, lam: None),
    "a model below the end": (("two_sided", "paper"), "_check", below_the_end),
    "a model between given lambdas": (("grid",), "_solved_only", any_given),
    "only the first weights": (("two_sided",), "mixed", first_only),
    "the weights of the next": ((*TWO, *ONE, "grid"), "mixed", next_row),
}
CASES = [(kind, case) for case, (kinds, _, _) in SABOTAGE.items() for kind in kinds]


def sabotage(monkeypatch, case: str) -> None:
    _, name, wrong = SABOTAGE[case]
    monkeypatch.setattr(mixture if name == "mixed" else Mixture, name, wrong)


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_verify__finds_models_that_are_not_those_certified(tmp_path: Path, monkeypatch, kind: str, case: str) -> None:
    run = copy_of(run_of("multiclass", kind), tmp_path)
    sabotage(monkeypatch, case)
    with pytest.raises(CertificateError, match=r"lambda .*: weights_at.* expected "):
        verify(problem_of("multiclass", kind), run, samples=8)
    result = json.loads((run / "verify.json").read_text())
    assert not result["certified"]
    assert all(": weights_at" in line for line in result["broken"]), "nothing else is wrong"


def test_verify__finds_them_on_a_heuristic_path_which_claims_nothing(tmp_path: Path, monkeypatch) -> None:
    run = copy_of(run_of("multiclass", "heuristic"), tmp_path)
    assert not verify(problem_of("multiclass", "heuristic"), run, samples=2)["certified"]
    sabotage(monkeypatch, "a forgotten scale")
    with pytest.raises(CertificateError, match=r"lambda .*: weights_at gives .* of breakpoint 0, expected"):
        verify(problem_of("multiclass", "heuristic"), run, samples=2)


def test_verify__finds_them_in_memory(monkeypatch) -> None:
    arrays, attrs = read_path(run_of("multiclass", "two_sided") / "path.zarr")
    assert verified(problem_of("multiclass", "two_sided"), in_memory(arrays, attrs), samples=2)["certified"]
    sabotage(monkeypatch, "a forgotten share")
    with pytest.raises(CertificateError, match=r"in memory: .* weights_at gives .*, expected .* of breakpoint 0"):
        verified(problem_of("multiclass", "two_sided"), in_memory(arrays, attrs), samples=2)


@pytest.mark.parametrize("kind", ["two_sided", "one_sided", "paper", "two_sided_whole", "grid", "heuristic"])
def test_models_compared__are_at_all_ends_between_them_and_beyond(kind: str) -> None:
    run = run_of("multiclass", kind)
    arrays, attrs = read_path(run / "path.zarr")
    lams, lows = np.array([*serving.where(arrays)]), arrays.get("cell_low", np.empty(0))
    assert {*arrays["lambda"].tolist(), *lows[lows > 0.0].tolist()} <= {*lams.tolist()}
    assert lams.max() >= 2.0 * arrays["lambda"][0]
    for lo, hi in zip(lows, arrays.get("cell_high", lows), strict=True):
        assert np.any((lams > lo) & (lams < hi)) or lo == hi
    shares = [verifier(attrs["rule"]).shares(arrays, attrs, lam) for lam in lams if 0.0 < lam < np.inf]
    assert (None in shares) == (kind == "grid" or lows[-1] > 0.0)


@pytest.mark.parametrize("case", ["another cell", "a forgotten share", "shares times 1.1", "only the first weights"])
def test_model__with_weights_that_are_not_certified_is_not_made(monkeypatch, case: str) -> None:
    path = run_of("multiclass", "two_sided") / "path.zarr"
    arrays, _ = read_path(path)
    c = int(np.flatnonzero(np.all(arrays["cell_primal"] > 0.0, axis=1))[0])
    lam = float(np.sqrt(arrays["cell_low"][c] * arrays["cell_high"][c]))
    check_weights(path, lam, open_path(path.parent).weights_at(lam).values)
    sabotage(monkeypatch, case)
    with pytest.raises(CertificateError, match=rf"the weights at lambda {lam:.9g} should be .* but weight \d+ is"):
        check_weights(path, lam, mixture.model_at(path, lam).weights)


def test_model__of_a_lambda_without_one_is_not_made() -> None:
    path = run_of("multiclass", "two_sided") / "path.zarr"
    low = 0.5 * float(read_path(path)[0]["cell_low"][-1])
    with pytest.raises(CertificateError, match="should be no model, but they are given out"):
        check_weights(path, low, np.zeros(problem_of("multiclass", "two_sided").d))


def test_model__as_solved_is_that_of_the_breakpoint() -> None:
    path = run_of("multiclass", "grid") / "path.zarr"
    arrays, _ = read_path(path)
    check_weights(path, float(arrays["lambda"][1]), arrays["weights"][1], as_solved=True)
    with pytest.raises(CertificateError, match="should be 1 of breakpoint 1, but weight"):
        check_weights(path, float(arrays["lambda"][1]), arrays["weights"][2], as_solved=True)


def test_model__whose_weights_read_again_are_others_is_not_left(tmp_path: Path, monkeypatch) -> None:
    weights, save = np.arange(5.0), np.save
    write_model(tmp_path / "model", {"lambda": 1.0}, weights, {})
    before = (tmp_path / "model" / "model.json").read_bytes()

    def scaled(file, arr, allow_pickle=True):
        save(file, 1.1 * arr, allow_pickle=allow_pickle)

    monkeypatch.setattr(np, "save", scaled)
    with pytest.raises(ValueError, match="the written weights differ from the model's"):
        write_model(tmp_path / "model", {"lambda": 1.0}, 2.0 * weights, {})
    assert (tmp_path / "model" / "model.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
