"""gapwise gc: lists first, removes with --yes, never what is resumable, in use, or behind a symbolic link."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_runs import fake_run, make_features

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.overview import rubbish as module
from gapwise.pipeline.overview.run_state import run_state
from gapwise.storage.files import locked

Items = Callable[..., dict[str, Any]]


@pytest.fixture
def listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Items:
    """listed(*words): path below the root to item, of `gapwise gc --json`."""

    def run(*words: str) -> dict[str, Any]:
        assert carry_out(["gc", "--root", str(tmp_path), "--json", *words]) == 0
        report = json.loads(capsys.readouterr().out)
        return {str(Path(item["path"]).relative_to(tmp_path)): item for item in report["items"]}

    return run


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def scratch(run: Path) -> None:
    """What killed processes leave."""
    (run / ".tmp-path.zarr").mkdir()
    (run / ".tmp-path.zarr" / "zarr.json").write_text("12345")
    (run / "state" / ".tmp-HEAD.json").write_text("1")


def test_gc__removes_scratch_only_with_yes_and_keeps_what_a_run_goes_on_from(listed: Items, tmp_path: Path) -> None:
    complete, cut = fake_run(tmp_path), fake_run(tmp_path, "b-2", done=("featurize",))
    for run in (complete, cut):
        scratch(run)
    before, c, h = files(tmp_path), complete.name, cut.name
    items = listed()
    assert {*items} == {
        f"{c}/.tmp-path.zarr", f"{c}/state/.tmp-HEAD.json",
        f"{h}/.tmp-path.zarr", f"{h}/state/.tmp-HEAD.json",
    }  # fmt: skip
    assert items[f"{c}/.tmp-path.zarr"]["bytes"] == 5
    assert files(tmp_path) == before
    with locked(complete / "lock"):
        assert not any(name.startswith(c) for name in listed())
    assert all(not item["kept"] for item in listed("--yes").values())
    gone = before - files(tmp_path)
    assert gone >= {*items}
    assert not [name for name in gone if not name.startswith((*items,))]
    assert [run_state(run).state for run in (complete, cut)] == ["complete", "interrupted"]
    assert listed() == {}


def test_gc__takes_features_that_no_run_needs_and_a_named_run(listed: Items, tmp_path: Path, capsys) -> None:
    run = fake_run(tmp_path, "toy-bcfw-00000001", features="aaaaaaaa1111", generations=(4,))
    make_features(tmp_path, "toy-aaaaaaaa")
    make_features(tmp_path, "toy-bbbbbbbb")
    make_features(tmp_path, "toy-cccccccc", age=5)
    (tmp_path / "features" / "mine").mkdir()
    assert [*listed()] == ["features/toy-bbbbbbbb"]
    (tmp_path / "sweeps" / "x").mkdir(parents=True)
    with locked(tmp_path / "sweeps" / "x" / "lock"):  # a sweep makes features before its runs begin
        assert listed() == {}
    beginning = fake_run(tmp_path, "toy-bcfw-00000002", done=("init_path",), generations=())
    assert listed() == {}, "a run of this data set may be about to use them"
    with locked(run / "lock"):
        assert carry_out(["gc", run.name, "--root", str(tmp_path), "--yes"]) == 1
        assert f"{run} is in use by process " in capsys.readouterr().err
    listed("--yes", run.name, beginning.name)
    assert {path.name for path in (tmp_path / "features").iterdir() if path.is_dir()} == {"toy-cccccccc", "mine"}
    assert not run.exists()


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
    assert carry_out(["gc", "toy-bcfw-00000009", "--root", str(tmp_path), "--yes"]) == 1
    assert "a symbolic link, which is never followed" in capsys.readouterr().err
    assert listed("--yes", run.name).keys() == {run.name}
    assert files(outside) == before


def test_gc__looks_again_when_it_holds_the_lock(listed: Items, tmp_path: Path, monkeypatch) -> None:
    spare = make_features(tmp_path, "toy-bbbbbbbb")
    real = module.locked

    def meanwhile(path: Path, *more: Any):
        if not (tmp_path / "toy-bcfw-00000002").exists():
            fake_run(tmp_path, "toy-bcfw-00000002", done=("featurize",), features="bbbbbbbb")
        return real(path, *more)

    monkeypatch.setattr(module, "locked", meanwhile)
    items = listed("--yes")
    assert {name: item["kept"] for name, item in items.items()} == {
        "features/toy-bbbbbbbb": "it is needed or gone by now"
    }
    assert spare.is_dir()
