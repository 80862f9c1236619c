"""Tampering with the checksums made again: what arithmetic finds, and what nothing can.

Each test stands for a row of the second table in storage/README.md: a row that says "not caught" has a test that shows so.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import numpy as np
import pytest
import resealed
from in_process import Here, here
from real_runs import Bench, Calm, Done, Sandbox, assert_same_path, assert_same_results, timeless
from reseal import reseal
from tampering import Tamper

from gapwise.storage.results import read_path

pytestmark = pytest.mark.slow

Copy = Callable[[Sandbox], Here]


def cases(rows: dict[str, dict[str, Tamper]], row: str, some: int = 2) -> list:
    """The cases of a row; all but the first few only with --faults=full."""
    return [
        pytest.param(tamper, id=name, marks=() if number < some else pytest.mark.long)
        for number, (name, tamper) in enumerate(rows[row].items())
    ]


@pytest.fixture
def whole(form: str, request: pytest.FixtureRequest) -> bool:
    """Whether to go on to the same bits: with --faults=full, and otherwise for one tampering of path.zarr and of state/."""
    return form == "full" or request.node.name.endswith(("[gap]", "[array gone]"))


def tampered(sandbox: Here, tamper: Tamper) -> Here:
    tamper(sandbox.run)
    reseal(sandbox.root)
    return sandbox


def fails(sandbox: Here, *more: str) -> Done:
    done = sandbox.issue(*more)
    assert done.code == 1, done.err
    assert "error: " in done.err
    assert "delete" in done.err or "Move the directory away" in done.err, done.err
    return done


def caught_in_path(sandbox: Here, calm: Calm, tamper: Tamper, whole: bool) -> None:
    """The command fails; if the `whole` way is to be tried, again when repeated, and not once path.zarr is deleted."""
    tampered(sandbox, tamper)
    fails(sandbox, "run.until=verify")
    assert not (sandbox.run / "result.json").exists()
    if whole:
        fails(sandbox, "run.until=verify")
        shutil.rmtree(sandbox.run / "path.zarr")
        sandbox.finish("run.until=verify")
        assert_same_path(sandbox, calm)


@pytest.mark.resealed("numbers")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_PATH, "numbers", 3))
def test_numbers__are_recomputed(solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool) -> None:
    caught_in_path(copy(solved), calm, tamper, whole)


@pytest.mark.resealed("weights")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_PATH, "weights"))
def test_weights__are_recomputed(solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool) -> None:
    caught_in_path(copy(solved), calm, tamper, whole)


@pytest.mark.resealed("supports")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_PATH, "supports"))
def test_supports__give_the_numbers(solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool) -> None:
    caught_in_path(copy(solved), calm, tamper, whole)


@pytest.mark.resealed("cells")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_PATH, "cells", 1))
def test_cells__are_those_of_the_rule(solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool) -> None:
    caught_in_path(copy(solved), calm, tamper, whole)


@pytest.mark.resealed("attributes")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_PATH, "attributes", 5))
def test_attributes__are_those_of_the_configuration(
    solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool
) -> None:
    caught_in_path(copy(solved), calm, tamper, whole)


@pytest.mark.resealed("top")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_PATH, "top", 1))
def test_top__is_recomputed(solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool) -> None:
    caught_in_path(copy(solved), calm, tamper, whole)


@pytest.mark.resealed("breakpoint")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_PATH, "breakpoint"))
def test_breakpoint__that_is_missing_leaves_a_hole(
    solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool
) -> None:
    caught_in_path(copy(solved), calm, tamper, whole)


@pytest.mark.resealed("unusable")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_PATH, "unusable", 6))
def test_path__that_cannot_be_used_is_an_error(
    solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool
) -> None:
    caught_in_path(copy(solved), calm, tamper, whole)


@pytest.mark.resealed("complete")
def test_complete_run__is_checked_again_once_verify_json_is_deleted(calm: Calm, copy: Copy) -> None:
    sandbox = tampered(copy(calm), resealed.CAUGHT_IN_PATH["numbers"]["gap"])
    sandbox.finish()  # taken at its word
    (sandbox.run / "verify.json").unlink()
    fails(sandbox)
    assert not (sandbox.run / "result.json").exists()
    shutil.rmtree(sandbox.run / "path.zarr")
    sandbox.finish()
    assert_same_results(sandbox, calm)


def caught_in_state(sandbox: Here, calm: Calm, tamper: Tamper, whole: bool) -> None:
    """The command fails and leaves the state as it is; with path.zarr and state/ deleted, the `whole` way, it does not."""
    tampered(sandbox, tamper)
    before = sandbox.generation
    fails(sandbox, "run.until=verify")
    assert sandbox.generation >= before
    if whole:
        shutil.rmtree(sandbox.run / "path.zarr", ignore_errors=True)
        fails(sandbox, "run.until=verify")
        shutil.rmtree(sandbox.run / "path.zarr", ignore_errors=True)
        shutil.rmtree(sandbox.run / "state")
        sandbox.finish("run.until=verify")
        assert_same_path(sandbox, calm)


@pytest.mark.resealed("segment")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_STATE, "segment", 1))
def test_segment__is_recomputed_as_part_of_the_path(
    halfway: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool
) -> None:
    caught_in_state(copy(halfway), calm, tamper, whole)


@pytest.mark.resealed("start")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_STATE, "start", 1))
def test_start__is_recomputed(halfway: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool) -> None:
    caught_in_state(copy(halfway), calm, tamper, whole)


@pytest.mark.resealed("state")
@pytest.mark.parametrize("tamper", cases(resealed.CAUGHT_IN_STATE, "state", 9))
def test_state__that_does_not_fit_is_an_error(
    halfway: Sandbox, calm: Calm, copy: Copy, tamper: Tamper, whole: bool
) -> None:
    caught_in_state(copy(halfway), calm, tamper, whole)


@pytest.mark.resealed("point")
@pytest.mark.parametrize("tamper", cases({"point": resealed.POINTS}, "point", 1))
def test_point__of_a_state_leads_to_another_path_that_is_certified(
    halfway: Sandbox, calm: Calm, copy: Copy, tamper: Tamper
) -> None:
    sandbox = tampered(copy(halfway), tamper)
    sandbox.finish("run.until=verify")
    assert json.loads((sandbox.run / "verify.json").read_text())["certified"] is True
    with pytest.raises(AssertionError):
        assert_same_path(sandbox, calm)


@pytest.mark.resealed("features")
@pytest.mark.parametrize("tamper", cases({"features": resealed.FEATURES}, "features", 1))
def test_features__changed_after_the_solve_break_its_certificates(
    solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper
) -> None:
    sandbox = tampered(copy(solved), tamper)
    fails(sandbox, "run.until=verify")
    shutil.rmtree(sandbox.root / "features")
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)


@pytest.mark.resealed("features before")
def test_features__changed_before_the_solve_are_believed(bench: Bench, calm: Calm) -> None:
    sandbox = here(bench.sandbox("features before"))
    sandbox.finish("run.stage=featurize")
    tampered(sandbox, resealed.FEATURES["labels"]).finish("run.until=verify")
    assert json.loads((sandbox.run / "verify.json").read_text())["certified"] is True
    with pytest.raises(AssertionError):
        assert_same_path(sandbox, calm)


@pytest.mark.resealed("made again")
@pytest.mark.parametrize("tamper", cases({"made again": resealed.MADE_AGAIN}, "made again", 1))
def test_answers__are_made_again_once_verify_json_is_deleted(calm: Calm, copy: Copy, tamper: Tamper) -> None:
    sandbox = tampered(copy(calm), tamper)
    sandbox.finish()  # taken at its word
    (sandbox.run / "verify.json").unlink()
    sandbox.finish()
    assert_same_results(sandbox, calm)


@pytest.mark.resealed("measured")
@pytest.mark.parametrize("tamper", cases(resealed.BELIEVED, "measured", 3))
def test_counts__that_no_certificate_rests_on_are_believed(
    solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper
) -> None:
    sandbox = tampered(copy(solved), tamper)
    sandbox.finish("run.until=verify")
    assert (sandbox.run / "verify.json").read_bytes() == (calm.run / "verify.json").read_bytes()
    assert_certificates_alike(sandbox, calm)


def assert_certificates_alike(sandbox: Sandbox, calm: Calm) -> None:
    """Assert that all that certificates rest on has the same bits."""
    (a, _), (b, _) = (read_path(at.run / "path.zarr") for at in (sandbox, calm))
    for name in (*resealed.NUMBERS, "weights", *resealed.SUPPORTS, *resealed.CELLS):
        assert a[name].tobytes() == b[name].tobytes(), name


@pytest.mark.resealed("manifest")
@pytest.mark.parametrize("tamper", cases(resealed.BELIEVED, "manifest", 1))
def test_manifest__descriptions_are_believed_and_change_no_number(
    solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper
) -> None:
    sandbox = tampered(copy(solved), tamper)
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)


@pytest.mark.resealed("test features")
@pytest.mark.parametrize("tamper", cases(resealed.BELIEVED, "test features"))
def test_test_features__changed_before_evaluate_are_believed(
    solved: Sandbox, calm: Calm, copy: Copy, tamper: Tamper
) -> None:
    sandbox = tampered(copy(solved), tamper)
    sandbox.finish()
    assert_certificates_alike(sandbox, calm)
    losses, expected = (read_path(at.run / "path.zarr")[0]["test_loss"] for at in (sandbox, calm))
    assert not np.array_equal(losses, expected)
    assert timeless(sandbox.run / "result.json") != timeless(calm.run / "result.json")
