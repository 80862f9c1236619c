"""Disks that are full or may not be written to, and files that are not what was written."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from real_runs import Bench, Calm, Place, assert_same_path, assert_same_results, long

pytestmark = pytest.mark.slow

FLIPS = {"short": 2, "full": 40}
SMALL = 3000
"""Bytes to which a file may grow under the quota: less than a feature array, more than a line of the log."""


# -- no room ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(tmp_path)], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(f"no small file system can be mounted: {made.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def fill(disk: Path, left: int) -> Path:
    """A file that leaves so many bytes of a file system."""
    ballast = disk / "ballast"
    room = shutil.disk_usage(disk).free - left
    with ballast.open("wb") as file:
        file.write(b"\0" * room)
    return ballast


@pytest.mark.fault("full disk")
def test_full_disk__in_a_commit_loses_nothing_committed(
    bench: Bench, halfway: Place, calm: Calm, small_disk: Path
) -> None:
    place = Place(small_disk / "runs", bench.command)
    shutil.copytree(halfway.root, place.root)
    before = place.generation
    ballast = fill(small_disk, 300_000)
    done = place.issue()
    assert done.code == 1, done.err
    assert "No space left on device" in done.err
    assert "Traceback" not in done.err
    assert "Logging error" not in done.err
    assert place.generation >= before
    ballast.unlink()
    place.finish()
    assert_same_results(place, calm)


@pytest.mark.fault("full disk")
def test_full_disk__while_features_are_made_leaves_none(bench: Bench, calm: Calm, small_disk: Path) -> None:
    place = Place(small_disk / "runs", bench.command)
    ballast = fill(small_disk, 40_000)
    done = place.issue()
    assert done.code == 1, done.err
    assert "No space left on device" in done.err
    assert "Traceback" not in done.err
    assert not list(place.root.glob("features/*/meta.json"))
    ballast.unlink()
    place.finish("run.until=verify")
    assert_same_path(place, calm)


@pytest.mark.fault("quota")
@pytest.mark.parametrize("began", [True, long(False)], ids=["halfway", "nothing"])
def test_quota__is_an_error_and_loses_nothing_committed(
    bench: Bench, halfway: Place, calm: Calm, copy: Callable[[Place], Place], began: bool
) -> None:
    place = copy(halfway) if began else bench.place("quota")
    before = place.generation
    done = place.issue(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, resource.RLIM_INFINITY)))
    assert done.code == 1, done.err
    assert "File too large" in done.err
    assert "Traceback" not in done.err
    assert place.generation >= before
    place.finish("run.until=verify")
    assert_same_path(place, calm)


# -- read-only --------------------------------------------------------------------------------------------------------
def read_only(place: Place, *more: str) -> tuple[int, str, str]:
    """Issue the command where its runs cannot be written to. (Permissions do not bind root, a mount does.)"""
    if os.geteuid() == 0:
        script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
        if subprocess.run(["unshare", "-m", "sh", "-c", script, str(place.root), "true"], check=False).returncode:
            pytest.skip("no file system can be mounted read-only here")
        done = place.issue(*more, wrap=("unshare", "-m", "sh", "-c", script, str(place.root)))
    else:
        modes = {path: path.stat().st_mode for path in [place.root, *place.root.rglob("*")]}
        for path, mode in modes.items():
            path.chmod(mode & ~0o222)
        done = place.issue(*more)
        for path, mode in modes.items():
            path.chmod(mode)
    return done.code, done.out, done.err


@pytest.mark.fault("read-only")
def test_read_only__is_an_error_and_a_complete_run_still_answers(
    halfway: Place, calm: Calm, copy: Callable[[Place], Place]
) -> None:
    place = copy(halfway)
    code, _, err = read_only(place)
    assert code == 1, err
    assert "Read-only file system" in err or "Permission denied" in err
    assert "Traceback" not in err
    place.finish("run.until=verify")
    assert_same_path(place, calm)
    code, out, err = read_only(calm)
    assert code == 0, err
    assert out.splitlines()[-1] == f"run: {calm.run}"


# -- damage -----------------------------------------------------------------------------------------------------------
def flip(file: Path) -> None:
    """One bit in the middle."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut(file: Path) -> None:
    """The second half is gone."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garbage(file: Path) -> None:
    file.write_bytes(b"\0" * file.stat().st_size)


HARMS = {"flipped": flip, "cut": cut, "gone": Path.unlink, "garbage": garbage}


def largest(folder: Path) -> Path:
    """The largest file below a folder: a chunk."""
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


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


@pytest.mark.fault("anywhere")
def test_bit__flipped_anywhere_is_survived_or_told(
    halfway: Place, solved: Place, calm: Calm, copy: Callable[[Place], Place], form: str, request: pytest.FixtureRequest
) -> None:
    rng = np.random.default_rng(2)
    codes: Counter[int] = Counter()
    for k in range(FLIPS[form]):
        place = copy((halfway, solved)[k % 2])
        files = [path for path in sorted(place.root.rglob("*")) if path.is_file() and path.stat().st_size]
        file = files[rng.integers(len(files))]
        content = bytearray(file.read_bytes())
        bit = int(rng.integers(8 * len(content)))
        content[bit // 8] ^= 1 << bit % 8
        file.write_bytes(content)
        where = f"bit {bit} of {file.relative_to(place.root)}"
        run = place.run
        done = place.issue("run.until=verify")
        codes[done.code] += 1
        assert "Traceback" not in done.err, f"{where}: {done.err}"
        if done.code == 0:
            assert_same_path(place, calm)
        else:
            assert done.code == 1, where
            assert "error: " in done.err, where
        assert run == place.run
        shutil.rmtree(place.root)
    request.node.user_properties.append(("found", f"{codes[0]} of {codes.total()} the same bits, {codes[1]} exit 1"))


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


def digit(file: Path) -> None:
    """The last digit of a JSON file is another one: still JSON, and plausible."""
    text = file.read_text()
    at = max(k for k, character in enumerate(text) if character in "123456789" and text[k - 1] in "0123456789.")
    file.write_text(text[:at] + str(int(text[at]) % 9 + 1) + text[at + 1 :])


COMPLETE = {
    "path": ("path.zarr/weights", lambda file: flip(largest(file)), "stage solve wrote it"),
    "losses": ("path.zarr/test_loss", lambda file: flip(largest(file)), "stage evaluate wrote it"),
    "metrics": ("metrics.json", digit, "stage evaluate wrote it"),
    "verification": ("verify.json", digit, "stage verify wrote it"),
    "path gone": ("path.zarr", shutil.rmtree, "stage solve wrote it"),
    "answer": ("result.json", digit, "does not match its own checksum"),
}


@pytest.mark.fault("result")
@pytest.mark.parametrize("what", ["path", "losses", "answer", *map(long, ("metrics", "verification", "path gone"))])
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
