"""Files that are not what was written: bits flipped, cut short, overwritten or gone. Checksums are as they were."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from harms import HARMS, digit, flip, garbage, largest
from real_runs import Calm, Place, assert_same_path, assert_same_results, long

pytestmark = pytest.mark.slow


def newest(place: Place, pattern: str = "g*.zarr") -> Path:
    return max((place.run / "state").glob(pattern))


def goes_on(place: Place, calm: Calm, says: str, *more: str) -> None:
    """The same command warns and ends with the same bits."""
    done = place.finish(*(more or ("run.until=verify",)))
    assert says in done.err, done.err
    assert_same_path(place, calm)


@pytest.mark.fault("chunk")
@pytest.mark.parametrize("harm", ["flipped", long("cut"), long("gone")])
def test_chunk__damaged_in_the_newest_generation_costs_one_commit(
    halfway: Place, calm: Calm, copy: Callable[[Place], Place], harm: str
) -> None:
    place = copy(halfway)
    HARMS[harm](largest(newest(place)))
    goes_on(place, calm, "does not match its checksum; going on from generation")


@pytest.mark.fault("head")
@pytest.mark.parametrize("harm", ["gone", long("flipped"), long("garbage")])
def test_head__damaged_is_replaced_by_its_copy(
    halfway: Place, calm: Calm, copy: Callable[[Place], Place], harm: str
) -> None:
    place = copy(halfway)
    HARMS[harm](place.run / "state" / "HEAD.json")
    goes_on(place, calm, "falling back on the newest generation that is intact")


@pytest.mark.fault("generation gone")
def test_generation__gone_costs_one_commit(halfway: Place, calm: Calm, copy: Callable[[Place], Place]) -> None:
    place = copy(halfway)
    shutil.rmtree(newest(place))
    newest(place, "g*.json").unlink()
    goes_on(place, calm, "is missing; going on from generation")


def refused(place: Place, calm: Calm) -> None:
    """The command says what is wrong and touches nothing; without the state it begins again."""
    before = {path: path.stat().st_mtime_ns for path in (place.run / "state").rglob("*")}
    done = place.issue()
    assert done.code == 1, done.err
    assert "no committed generation is intact" in done.err
    assert "delete it to solve again from the beginning" in done.err
    assert "Traceback" not in done.err
    assert {path: path.stat().st_mtime_ns for path in (place.run / "state").rglob("*")} == before
    shutil.rmtree(place.run / "state")
    place.finish("run.until=verify")
    assert_same_path(place, calm)


@pytest.mark.fault("all generations")
def test_generations__all_damaged_are_an_error(halfway: Place, calm: Calm, copy: Callable[[Place], Place]) -> None:
    place = copy(halfway)
    for generation in (place.run / "state").glob("g*.zarr"):
        flip(largest(generation))
    refused(place, calm)


@pytest.mark.fault("segment")
def test_segment__damaged_is_an_error(halfway: Place, calm: Calm, copy: Callable[[Place], Place]) -> None:
    place = copy(halfway)
    flip(largest(min((place.run / "state").glob("s*.zarr"))))
    refused(place, calm)


@pytest.mark.fault("features")
@pytest.mark.parametrize("harm", ["flipped", long("cut"), long("gone")])
def test_features__damaged_are_made_again(
    halfway: Place, calm: Calm, copy: Callable[[Place], Place], harm: str
) -> None:
    place = copy(halfway)
    HARMS[harm](largest(next(place.root.glob("features/sequences_csv-????????"))))
    if harm == "flipped":
        done = place.issue("run.stage=solve")
        assert done.code == 1
        assert "run.stage=featurize makes the features again" in done.err
    goes_on(place, calm, "the features are made again")


@pytest.mark.fault("result")
@pytest.mark.parametrize("harm", ["flipped", long("cut")])
def test_path__damaged_before_verify_is_made_again(
    solved: Place, calm: Calm, copy: Callable[[Place], Place], harm: str
) -> None:
    place = copy(solved)
    HARMS[harm](largest(place.run / "path.zarr"))
    goes_on(place, calm, "changed since stage solve wrote it; the stage runs again")


@pytest.mark.fault("result")
def test_verification__damaged_is_made_again(calm: Calm, copy: Callable[[Place], Place]) -> None:
    place = copy(calm)
    (place.run / "result.json").unlink()
    file = place.run / "verify.json"
    file.write_text(file.read_text().replace('"certified": true', '"certified": tRue'))
    place.finish()
    assert_same_results(place, calm)
    garbage(place.run / "result.json")
    done = place.finish()
    assert "result.json: not valid JSON" in done.err
    assert_same_results(place, calm)


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
    calm: Calm, copy: Callable[[Place], Place], what: str
) -> None:
    place = copy(calm)
    name, harm, says = COMPLETE[what]
    harm(place.run / name)
    if what == "path":
        done = place.issue("run.stage=verify")
        assert done.code == 1
        assert says in done.err
        assert not (place.run / "result.json").exists()
        assert not (place.run / "verify.json").exists()
        assert not (place.run / "predictions").exists()
        place.finish()
    else:
        assert says in place.finish().err
    assert_same_results(place, calm)


@pytest.mark.fault("manifest")
@pytest.mark.parametrize("harm", ["flipped", long("garbage"), long("gone")])
def test_manifest__damaged_is_made_again(solved: Place, calm: Calm, copy: Callable[[Place], Place], harm: str) -> None:
    place = copy(solved)
    run = place.run
    HARMS[harm](run / "manifest.json")
    done = place.finish("run.until=verify")
    assert harm == "gone" or "its stages run again from what they committed" in done.err
    assert_same_path(place, calm)
    assert (run / "damaged-manifest.json").exists() == (harm != "gone")
