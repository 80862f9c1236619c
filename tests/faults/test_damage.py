"""Files that are not what was written: bits flipped, cut short, overwritten or gone. Checksums are as they were."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from harms import HARMS, digit, flip, garbage, largest
from real_runs import Calm, Sandbox, assert_same_path, assert_same_results, long

pytestmark = pytest.mark.slow


def newest(sandbox: Sandbox, pattern: str = "g*.zarr") -> Path:
    return max((sandbox.run / "state").glob(pattern))


def goes_on(sandbox: Sandbox, calm: Calm, says: str, *more: str) -> None:
    """The same command warns and ends with the same bits."""
    done = sandbox.finish(*(more or ("run.until=verify",)))
    assert says in done.err, done.err
    assert_same_path(sandbox, calm)


@pytest.mark.fault("chunk")
@pytest.mark.parametrize("harm", ["flipped", long("cut"), long("gone")])
def test_chunk__damaged_in_the_newest_generation_costs_one_commit(
    halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox], harm: str
) -> None:
    sandbox = copy(halfway)
    HARMS[harm](largest(newest(sandbox)))
    goes_on(sandbox, calm, "does not match its checksum; going on from generation")


@pytest.mark.fault("head")
@pytest.mark.parametrize("harm", ["gone", long("flipped"), long("garbage")])
def test_head__damaged_is_replaced_by_its_copy(
    halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox], harm: str
) -> None:
    sandbox = copy(halfway)
    HARMS[harm](sandbox.run / "state" / "HEAD.json")
    goes_on(sandbox, calm, "falling back on the newest generation that is intact")


@pytest.mark.fault("generation gone")
def test_generation__gone_costs_one_commit(halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox]) -> None:
    sandbox = copy(halfway)
    shutil.rmtree(newest(sandbox))
    newest(sandbox, "g*.json").unlink()
    goes_on(sandbox, calm, "is missing; going on from generation")


def refused(sandbox: Sandbox, calm: Calm) -> None:
    """The command says what is wrong and touches nothing; without the state it begins again."""
    before = {path: path.stat().st_mtime_ns for path in (sandbox.run / "state").rglob("*")}
    done = sandbox.issue()
    assert done.code == 1, done.err
    assert "no committed generation is intact" in done.err
    assert "delete it to solve again from the beginning" in done.err
    assert "Traceback" not in done.err
    assert {path: path.stat().st_mtime_ns for path in (sandbox.run / "state").rglob("*")} == before
    shutil.rmtree(sandbox.run / "state")
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)


@pytest.mark.fault("all generations")
def test_generations__all_damaged_are_an_error(
    halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox]
) -> None:
    sandbox = copy(halfway)
    for generation in (sandbox.run / "state").glob("g*.zarr"):
        flip(largest(generation))
    refused(sandbox, calm)


@pytest.mark.fault("segment")
def test_segment__damaged_is_an_error(halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox]) -> None:
    sandbox = copy(halfway)
    flip(largest(min((sandbox.run / "state").glob("s*.zarr"))))
    refused(sandbox, calm)


@pytest.mark.fault("features")
@pytest.mark.parametrize("harm", ["flipped", long("cut"), long("gone")])
def test_features__damaged_are_made_again(
    halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox], harm: str
) -> None:
    sandbox = copy(halfway)
    HARMS[harm](largest(next(sandbox.root.glob("features/sequences_csv-????????"))))
    if harm == "flipped":
        done = sandbox.issue("run.stage=solve")
        assert done.code == 1
        assert "run.stage=featurize makes the features again" in done.err
    goes_on(sandbox, calm, "the features are made again")


@pytest.mark.fault("features read-only")
def test_features__in_a_folder_that_cannot_be_written_are_used_and_if_damaged_refused(
    halfway: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = copy(halfway)
    features = sandbox.root / "features"
    for lock in features.glob("*.lock"):
        lock.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode, **_: Path(path) != features)
        sandbox.finish()
        assert_same_results(sandbox, calm)
        assert not list(features.glob("*.lock")), "nothing was written there"
        (store,) = features.glob("sequences_csv-????????")
        flip(largest(store))
        done = sandbox.issue("run.stage=featurize")
        assert done.code == 1
        assert f"{features} cannot be written, so they cannot be made again here" in done.err
        store.rename(features / "others")
        done = sandbox.issue("run.stage=featurize")
        assert done.code == 1
        assert f"no features here, and {features} cannot be written; make them elsewhere" in done.err
    sandbox.finish()
    assert_same_results(sandbox, calm)


@pytest.mark.fault("result")
@pytest.mark.parametrize("harm", ["flipped", long("cut")])
def test_path__damaged_before_verify_is_made_again(
    solved: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox], harm: str
) -> None:
    sandbox = copy(solved)
    HARMS[harm](largest(sandbox.run / "path.zarr"))
    goes_on(sandbox, calm, "changed since stage solve wrote it; the stage runs again")


@pytest.mark.fault("result")
def test_verification__damaged_is_made_again(calm: Calm, copy: Callable[[Sandbox], Sandbox]) -> None:
    sandbox = copy(calm)
    (sandbox.run / "result.json").unlink()
    file = sandbox.run / "verify.json"
    file.write_text(file.read_text().replace('"certified": true', '"certified": tRue'))
    sandbox.finish()
    assert_same_results(sandbox, calm)
    garbage(sandbox.run / "result.json")
    done = sandbox.finish()
    assert "result.json: not valid JSON" in done.err
    assert_same_results(sandbox, calm)


COMPLETE = {
    "path": ("path.zarr/weights", lambda file: flip(largest(file)), "stage solve wrote it"),
    "losses": ("path.zarr/test_loss", lambda file: flip(largest(file)), "stage evaluate wrote it"),
    "metrics": ("metrics.json", digit, "stage evaluate wrote it"),
    "verification": ("verify.json", digit, "stage verify wrote it"),
    "predictions": ("predictions.npz", flip, "stage evaluate wrote it"),
    "report": ("report.html", flip, "stage report wrote it"),
    "tables": ("predictions/labels.csv", Path.unlink, "stage evaluate wrote it"),
    "tables gone": ("predictions", shutil.rmtree, "stage evaluate wrote it"),
    "figure": ("figures/path.png", Path.unlink, "stage evaluate wrote it"),
    "trace": ("trace.zarr", lambda file: flip(largest(file)), "stage solve wrote it"),
    "path gone": ("path.zarr", shutil.rmtree, "stage solve wrote it"),
    "answer": ("result.json", digit, "does not match its own checksum"),
}


@pytest.mark.fault("result")
@pytest.mark.parametrize(
    "what",
    [
        "path",
        "losses",
        "answer",
        "predictions",
        "tables",
        "figure",
        *map(long, ("tables gone", "metrics", "verification", "report", "trace", "path gone")),
    ],
)
def test_complete_run__of_which_something_is_damaged_is_not_complete(
    calm: Calm, copy: Callable[[Sandbox], Sandbox], what: str
) -> None:
    sandbox = copy(calm)
    name, harm, says = COMPLETE[what]
    harm(sandbox.run / name)
    if what == "path":
        done = sandbox.issue("run.stage=verify")
        assert done.code == 1
        assert says in done.err
        assert not (sandbox.run / "result.json").exists()
        assert not (sandbox.run / "verify.json").exists()
        assert not (sandbox.run / "predictions").exists()
        sandbox.finish()
    else:
        assert says in sandbox.finish().err
    assert_same_results(sandbox, calm)


@pytest.mark.fault("manifest")
@pytest.mark.parametrize("harm", ["flipped", long("garbage"), long("gone")])
def test_manifest__damaged_is_made_again(
    solved: Sandbox, calm: Calm, copy: Callable[[Sandbox], Sandbox], harm: str
) -> None:
    sandbox = copy(solved)
    run = sandbox.run
    HARMS[harm](run / "manifest.json")
    done = sandbox.finish("run.until=verify")
    assert harm == "gone" or "its stages run again from what they committed" in done.err
    assert_same_path(sandbox, calm)
    assert (run / "damaged-manifest.json").exists() == (harm != "gone")
