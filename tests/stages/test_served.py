"""Verify compares the models that a path gives out with its own: a mixture that is wrong anywhere ends in an error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from verified import copy_of, problem_of, run_of

from gapwise.stages.model.from_run import check_weights
from gapwise.stages.verify import CertificateError, in_memory, verified, verify
from gapwise.storage import mixture
from gapwise.storage.mixture import Mixture
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


def without_scale(self, lam):
    if (at := SOLVED_AT(self, lam)) is not None:
        return {at: 1.0}
    c = int(np.argmax(self.arrays["cell_low"] <= lam))
    k, t = int(self.arrays["cell_interval"][c]), self.arrays["cell_primal"][c]
    return {k - 1: float(t[0]), k: float(t[1])}


def first_only(parts, solved, breakpoints, d):
    return MIXED(dict([*parts.items()][:1]), solved, breakpoints, d)


def next_row(parts, solved, breakpoints, d):
    """The weights of the breakpoint after each."""
    return MIXED(parts, lambda b: solved(min(b + 1, breakpoints - 1)), breakpoints, d)


TWO, ONE = ("two_sided", "two_sided_whole"), ("paper",)
SABOTAGE = {
    "another cell": (TWO, "_of_cells", other_cell),
    "a forgotten share": (TWO, "_of_cells", forgotten_share),
    "swapped ends": ((*TWO, *ONE), "_of_cells", swapped_ends),
    "a forgotten scale": (ONE, "_of_cells", without_scale),
    "a model below the end": (("two_sided", "paper"), "_check", lambda self, lam, low: None),
    "only the first weights": (("two_sided",), "mixed", first_only),
    "the weights of the next": ((*TWO, *ONE, "grid"), "mixed", next_row),
}
CASES = [(kinds[number % len(kinds)], case) for number, (case, (kinds, _, _)) in enumerate(SABOTAGE.items())]


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


def test_verify__finds_them_in_memory(monkeypatch) -> None:
    arrays, attrs = read_path(run_of("multiclass", "two_sided") / "path.zarr")
    assert verified(problem_of("multiclass", "two_sided"), in_memory(arrays, attrs), samples=2)["certified"]
    sabotage(monkeypatch, "a forgotten share")
    with pytest.raises(CertificateError, match=r"in memory: .* weights_at gives .*, expected .* of breakpoint 0"):
        verified(problem_of("multiclass", "two_sided"), in_memory(arrays, attrs), samples=2)


@pytest.mark.parametrize("case", ["another cell", "only the first weights"])
def test_model__with_weights_that_are_not_certified_is_not_made(monkeypatch, case: str) -> None:
    path = run_of("multiclass", "two_sided") / "path.zarr"
    arrays, _ = read_path(path)
    c = int(np.flatnonzero(np.all(arrays["cell_primal"] > 0.0, axis=1))[0])
    lam = float(np.sqrt(arrays["cell_low"][c] * arrays["cell_high"][c]))
    check_weights(path, lam, open_path(path.parent).weights_at(lam).values)
    sabotage(monkeypatch, case)
    with pytest.raises(CertificateError, match=rf"the weights at lambda {lam:.9g} should be .* but weight \d+ is"):
        check_weights(path, lam, mixture.model_at(path, lam).weights)
