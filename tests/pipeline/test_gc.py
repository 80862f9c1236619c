"""gapwise gc: lists first, removes with --yes, never what is resumable, in use, or behind a symbolic link."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_runs import fake_run, make_features

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.overview import rubbish as module
from gapwise.pipeline.overview.standing import standing
from gapwise.storage.files import locked

Items = Callable[..., dict[str, Any]]


@pytest.fixture
def listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Items:
    """listed(*words): path below the root to item, of `gapwise gc --json`."""

    def run(*words: str) -> dict[str, Any]:
        assert carry_out(["gc", "--root", str(tmp_path), "--json", *words]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["bytes"] == sum(item["bytes"] for item in report["items"] if not item["kept"])
        return {str(Path(item["path"]).relative_to(tmp_path)): item for item in report["items"]}

    return run


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def scratch(run: Path) -> None:
    """What killed processes leave, and a tree that stepped aside for one that never came."""
    (run / ".tmp-path.zarr").mkdir()
    (run / ".tmp-path.zarr" / "zarr.json").write_text("12345")
    (run / "state" / ".tmp-HEAD.json").write_text("1")
    (run / ".old-manifest.json").write_text("1")
    (run / ".old-path.zarr").mkdir()


def test_gc__lists_scratch_and_old_generations_and_removes_them_only_with_yes(listed: Items, tmp_path: Path) -> None:
    complete, cut, other = (
        fake_run(tmp_path, f"toy-bcfw-0000000{k}", done=d) for k, d in enumerate((None, ("featurize",), None))
    )
    for run in (complete, cut):
        scratch(run)
    changed = standing(other)
    assert changed.state == "complete"
    before = files(tmp_path)
    items = listed()
    c, h = complete.name, cut.name
    assert sorted(items) == sorted(
        [
            f"{c}/.old-manifest.json", f"{c}/.tmp-path.zarr", f"{c}/state/.tmp-HEAD.json", f"{h}/.old-manifest.json",
            f"{h}/.tmp-path.zarr", f"{h}/state/.tmp-HEAD.json", f"{c}/state/g000004.json", f"{c}/state/g000004.zarr",
            f"{other.name}/state/g000004.json", f"{other.name}/state/g000004.zarr",
        ]
    )  # fmt: skip
    assert items[f"{c}/.tmp-path.zarr"]["bytes"] == 5
    assert files(tmp_path) == before
    assert all(not item["kept"] for item in listed("--yes").values())
    assert sorted(set(before) - set(files(tmp_path))) == sorted(
        [
            *items,
            f"{c}/.tmp-path.zarr/zarr.json",
            f"{h}/.tmp-path.zarr/zarr.json",
            f"{c}/state/g000004.zarr/zarr.json",
            f"{other.name}/state/g000004.zarr/zarr.json",
        ]
    )
    assert [standing(run).state for run in (complete, cut, other)] == ["complete", "interrupted", "complete"]
    assert listed() == {}


def test_gc__keeps_state_that_a_run_may_go_on_from(listed: Items, tmp_path: Path) -> None:
    fake_run(tmp_path, "toy-bcfw-00000001", done=("featurize", "init_path"))
    fake_run(tmp_path, "toy-bcfw-00000002", status="TIME_LIMIT")
    broken = fake_run(tmp_path, "toy-bcfw-00000003")
    (broken / "state" / "HEAD.json").write_text("{}")
    assert listed() == {}


def test_gc__takes_features_that_no_run_needs(listed: Items, tmp_path: Path) -> None:
    fake_run(tmp_path, "toy-bcfw-00000001", features="aaaaaaaa1111", generations=(4,))
    needed, spare, fresh = (
        make_features(tmp_path, "toy-aaaaaaaa"),
        make_features(tmp_path, "toy-bbbbbbbb"),
        make_features(tmp_path, "toy-cccccccc", age=5),
    )
    other = make_features(tmp_path, "ocr-dddddddd")
    foreign = tmp_path / "features" / "mine"
    foreign.mkdir()
    (tmp_path / "features" / ".tmp-toy-bbbbbbbb").mkdir()
    (tmp_path / "features" / ".tmp-digests.json-1").write_text("x")
    assert sorted(listed()) == ["features/.tmp-toy-bbbbbbbb", "features/ocr-dddddddd", "features/toy-bbbbbbbb"]
    (tmp_path / "sweeps" / "x").mkdir(parents=True)
    with locked(tmp_path / "sweeps" / "x" / "lock"):  # a sweep makes features before its runs begin
        assert sorted(listed()) == ["features/.tmp-toy-bbbbbbbb"]
    beginning = fake_run(tmp_path, "toy-bcfw-00000002", done=("init_path",), generations=())
    assert "features/toy-bbbbbbbb" not in listed(), "a run of this data set may be about to use them"
    (beginning / "manifest.json").write_text("damaged")
    assert "features/toy-bbbbbbbb" not in listed(), "so may one whose manifest cannot be read"
    listed("--yes", beginning.name)
    assert [path.exists() for path in (needed, spare, fresh, other, foreign)] == [True, False, True, False, True]
    assert not (tmp_path / "features" / "toy-bbbbbbbb.lock").exists()


def test_gc__looks_again_when_it_holds_the_lock(listed: Items, tmp_path: Path, monkeypatch) -> None:
    spare = make_features(tmp_path, "toy-bbbbbbbb")
    late = fake_run(tmp_path, "toy-bcfw-00000001", generations=(4, 5))
    stay = {f"{late.name}/state/g000004.json", f"{late.name}/state/g000004.zarr"}
    real = module.locked

    def meanwhile(path: Path, *more: Any):
        if not (tmp_path / "toy-bcfw-00000002").exists():
            fake_run(tmp_path, "toy-bcfw-00000002", done=("featurize",), features="bbbbbbbb")
            (late / "result.json").unlink()
        return real(path, *more)

    monkeypatch.setattr(module, "locked", meanwhile)
    items = listed("--yes")
    assert {name: item["kept"] for name, item in items.items()} == dict.fromkeys(
        [*stay, "features/toy-bbbbbbbb"], "it is needed or gone by now"
    )
    assert spare.is_dir()


def test_gc__leaves_what_a_process_works_on(listed: Items, tmp_path: Path, capsys) -> None:
    run = fake_run(tmp_path)
    scratch(run)
    items = listed()
    with locked(run / "lock"):
        assert listed() == {}
        assert carry_out(["gc", run.name, "--root", str(tmp_path), "--yes"]) == 1
        assert f"{run} is in use by process " in capsys.readouterr().err
    assert listed() == items


def test_gc__removes_a_named_run_whole_and_its_features(listed: Items, tmp_path: Path, capsys) -> None:
    gone, stays = (
        fake_run(tmp_path, "toy-bcfw-00000001", done=("featurize",), features="aaaaaaaa"),
        fake_run(tmp_path, "toy-bcfw-00000002", generations=(4,), features="bbbbbbbb"),
    )
    make_features(tmp_path, "toy-aaaaaaaa")
    make_features(tmp_path, "toy-bbbbbbbb")
    assert listed() == {}
    assert carry_out(["gc", "00000001", "--root", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "named; it is interrupted" in said
    assert "nothing is removed yet: add --yes" in said
    assert sorted(listed("00000001", "--yes")) == ["features/toy-aaaaaaaa", gone.name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["features", stays.name]
    assert sorted(path.name for path in (tmp_path / "features").iterdir()) == ["toy-bbbbbbbb", "toy-bbbbbbbb.lock"]


def test_gc__never_follows_links(listed: Items, tmp_path: Path, tmp_path_factory, capsys) -> None:
    outside = tmp_path_factory.mktemp("outside")
    real = fake_run(outside)
    scratch(real)
    make_features(outside, "toy-eeeeeeee")
    before = files(outside)
    (tmp_path / "toy-bcfw-00000009").symlink_to(real)
    run = fake_run(tmp_path, "toy-bcfw-00000001", generations=())
    (run / "state").symlink_to(real / "state")
    (run / ".tmp-x").symlink_to(outside)
    (tmp_path / "features").symlink_to(outside / "features")
    assert list(listed("--yes")) == [f"{run.name}/.tmp-x"]
    assert not (run / ".tmp-x").is_symlink()
    for word in (str(tmp_path / "toy-bcfw-00000009"), "toy-bcfw-00000009"):
        assert carry_out(["gc", word, "--root", str(tmp_path), "--yes"]) == 1
        assert "a symbolic link, which is never followed" in capsys.readouterr().err
    assert listed("--yes", run.name).keys() == {run.name}
    assert files(outside) == before


def test_gc__cleans_up_after_sweeps(listed: Items, tmp_path: Path) -> None:
    for name, summary in (("ended-1", True), ("killed-1", False), ("foreign", False)):
        (tmp_path / "sweeps" / name / "workers").mkdir(parents=True)
        if name != "foreign":
            (tmp_path / "sweeps" / name / "lock").write_text("")
        if summary:
            (tmp_path / "sweeps" / name / "summary.json").write_text("{}")
    with locked(tmp_path / "sweeps" / "killed-1" / "lock"):
        assert list(listed()) == ["sweeps/ended-1/workers"]
    assert list(listed("--yes")) == ["sweeps/ended-1/workers", "sweeps/killed-1"]
    assert sorted(path.name for path in (tmp_path / "sweeps").iterdir()) == ["ended-1", "foreign"]


def test_gc__refuses_an_object_store(cache: Path, capsys) -> None:
    from gapwise.storage.backend import UrlPath

    root = f"memory://gc-{time.time_ns()}"
    (UrlPath(root) / "x" / "manifest.json").write_bytes(b"{}")
    assert carry_out(["gc", "--root", root]) == 1
    assert "expected a folder of this machine" in capsys.readouterr().err
