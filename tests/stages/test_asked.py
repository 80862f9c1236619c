"""Verify compares a path with what the run was asked for, and believes nothing that path.zarr says of itself."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import zarr
from tiny import TINY, multiclass
from verified import KINDS, copy_of, problem_of, run_of

from gapwise.stages.solver.options import PathOptions
from gapwise.stages.verify import Asked, CertificateError, asked_for, verify


def asked(kind: str, **other) -> Asked:
    path = PathOptions(**{"eps": 0.1, "kappa": 0.9, **KINDS[kind], **other})
    return asked_for(path, "bcfw", seed=0, key="k", status="PASS_LIMIT" if kind == "limited" else "CONVERGED")


def keep(group: zarr.Group, count: int) -> None:
    """The first breakpoints only."""
    for _, array in list(group.arrays()):
        if array.metadata.dimension_names[0] == "breakpoint":
            values = array[...][:count]
            array.resize(values.shape)
            array[...] = values


@pytest.mark.parametrize("kind", ["two_sided", "heuristic", "relative", "single", "limited"])
def test_verify__passes_what_was_asked_for(kind: str) -> None:
    result = verify(problem_of("multiclass", kind), run_of("multiclass", kind), asked=asked(kind))
    assert result["broken"] == [] or kind == "heuristic"  # which claims nothing
    assert result["certified"] is (kind not in ("heuristic", "limited"))


def test_verify__refuses_a_path_cut_and_called_a_grid(tmp_path: Path) -> None:
    """Each breakpoint alone is certified, and nothing is between them."""
    run = copy_of(run_of("multiclass", "paper"), tmp_path)
    group = zarr.open_group(run / "path.zarr", mode="a")
    keep(group, 2)
    for name in [name for name, _ in group.arrays() if name.startswith("cell_")]:
        del group[name]
    group.attrs.update({"rule": "grid"})
    assert verify(TINY["multiclass"](), run)["certified"]  # as a grid of two lambdas it is what it says
    with pytest.raises(CertificateError, match="attribute rule: 'grid' is stored, 'paper' was asked for"):
        verify(TINY["multiclass"](), run, asked=asked("paper"))
    result = json.loads((run / "verify.json").read_text())
    assert result["certified"] is False
    assert result["broken"]


OTHER = {
    "rule": "two_sided", "eps": 0.2, "relative": True, "kappa": 0.5, "seed": 7, "key": "other", "method": "accelerated",
    "status": "TIME_LIMIT", "certified": False, "dual_point": False, "n": 8, "d": 13,
}  # fmt: skip


def test_verify__names_every_attribute_that_is_not_as_asked_or_gone(tmp_path: Path) -> None:
    run = copy_of(run_of("multiclass", "paper"), tmp_path)
    attrs = zarr.open_group(run / "path.zarr", mode="a").attrs
    before = {name: attrs[name] for name in OTHER}
    attrs.update(OTHER)
    del attrs["lambda_min"]
    with pytest.raises(CertificateError):
        verify(TINY["multiclass"](), run, asked=asked("paper"))
    said = "\n".join(json.loads((run / "verify.json").read_text())["broken"])
    for name, other in OTHER.items():
        assert f"attribute {name}: {other!r} is stored, {before[name]!r} was asked for" in said
    assert "attribute lambda_min: nothing is stored" in said


def test_verify__knows_the_size_of_the_problem_without_a_configuration() -> None:
    with pytest.raises(CertificateError, match=r"attribute n: 7 is stored, 8 was asked for"):
        verify(multiclass(n=8), run_of("multiclass", "paper"))


@pytest.mark.parametrize("kind", ["grid", "single"])
def test_verify__misses_a_lambda_that_was_asked_for(tmp_path: Path, kind: str) -> None:
    more = {"lam": 0.02} if kind == "single" else {"lambdas": [1.0, 0.2, 0.05, 0.02]}
    with pytest.raises(CertificateError, match=r"lambda: \[.*\] are stored, \[0.02\] were asked for as well"):
        verify(TINY["multiclass"](), copy_of(run_of("multiclass", kind), tmp_path), asked=asked(kind, **more))


ENDS = {
    "negligible": ("LAMBDA_NEGLIGIBLE", {"lambda_min": 0.0}, "where the regulariser is negligible"),
    "asked for less": ("LAMBDA_NEGLIGIBLE", {"lambda_min": 0.05}, "where the regulariser is negligible"),
    "rounding": ("ROUNDING_LIMIT", {"lambda_min": 0.0}, "the path says that rounding ends it"),
    "zero": ("CONVERGED", {"lambda_min": 0.0}, "ends above lambda_min without reaching its end"),
}


@pytest.mark.parametrize(("kind", "case"), [*zip(itertools.cycle(["two_sided", "paper"]), ENDS, strict=False)])
def test_verify__checks_the_reason_a_path_gives_for_its_end(tmp_path: Path, kind: str, case: str) -> None:
    status, attributes, message = ENDS[case]
    run = copy_of(run_of("multiclass", kind), tmp_path)
    zarr.open_group(run / "path.zarr", mode="a").attrs.update({"status": status, **attributes})
    with pytest.raises(CertificateError, match=message):
        verify(TINY["multiclass"](), run)
