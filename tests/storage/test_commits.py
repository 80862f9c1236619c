"""Committed generations: what was committed is never lost, wherever a commit ends."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from pathlib import Path

import pytest
from committed import IDENTITY, assert_is, commit, opened
from solved import Killed

from gapwise.storage import layout
from gapwise.storage.commits import CommitStore, StateError
from gapwise.storage.files import read_json, write_json
from gapwise.storage.integrity import sealed

# -- killed in the middle of a commit ---------------------------------------------------------------------------------
CALLS = ((layout, "create_array"), (os, "fsync"), (os, "rename"), (os, "replace"), (shutil, "rmtree"))


def count_calls(monkeypatch, act, kill_at: tuple[str, int] | None = None, after: bool = False) -> dict[str, int]:
    """Run `act`, counting the durable operations; raise Killed in place of (or just after) one of them."""
    made = {name: 0 for _, name in CALLS}

    def watched(name, real):
        real = real if name != "fsync" else (lambda fd: None)  # slow, and nothing here loses power

        def call(*args, **kwargs):
            if threading.current_thread() is not threading.main_thread():
                return real(*args, **kwargs)  # zarr's own, which would live on after a kill that is only an exception
            made[name] += 1
            if kill_at != (name, made[name]):
                return real(*args, **kwargs)
            if after:
                real(*args, **kwargs)
            raise Killed

        return call

    with monkeypatch.context() as patch:
        for owner, name in CALLS:
            patch.setattr(owner, name, watched(name, getattr(owner, name)))
        if kill_at is None:
            act()
        else:
            with pytest.raises(Killed):
                act()
    return made


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_commit__killed_at_any_durable_operation_loses_nothing(tmp_path: Path, monkeypatch, after: bool) -> None:
    """A third commit dies before or after every array file, fsync, rename, replace and removal of it."""
    whole = tmp_path / "whole"
    store = opened(whole)
    commit(store, 1)
    commit(store, 2)
    template = tmp_path / "template"
    shutil.copytree(whole, template)
    counts = count_calls(monkeypatch, lambda: commit(store, 3))
    assert min(counts.values()) > 0
    # one array is as good as another: of many operations every 30th, and the last few
    points = [(name, k) for name, total in counts.items() for k in range(1, total + 1) if k % 30 == 1 or k > total - 3]
    generations = []
    for number, point in enumerate(points):
        folder = tmp_path / f"killed{number}"
        shutil.copytree(template, folder)
        store = opened(folder)
        store.load()
        count_calls(monkeypatch, lambda store=store: commit(store, 3), point, after)
        again = opened(folder)
        loaded = again.load()
        generations.append(again.generation)
        assert again.generation in (2, 3)
        assert_is(loaded, again.generation)
        left = {path.name[0] for path in folder.iterdir()}
        assert left <= {"g", "s", "H"}, sorted(folder.iterdir())
        assert max(int(path.name[1:7]) for path in folder.glob("g*")) == again.generation
        shutil.rmtree(folder)
    assert set(generations) == {2, 3}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_commit__killed_in_the_first_one_starts_from_nothing_or_from_it(tmp_path: Path, monkeypatch, after) -> None:
    counts = count_calls(monkeypatch, lambda: commit(opened(tmp_path / "whole"), 1))
    for point in [("rename", k + 1) for k in range(counts["rename"])] + [("replace", 1), ("replace", 2)]:
        folder = tmp_path / "-".join(map(str, point))
        count_calls(monkeypatch, lambda folder=folder: commit(opened(folder), 1), point, after)
        store = opened(folder)
        loaded = store.load()
        if loaded is None:
            assert list(folder.iterdir()) == []
            commit(store, 1)
        assert_is(opened(folder).load(), 1)


def test_commit__failing_in_an_array_file_keeps_the_committed_state(folder: Path, monkeypatch) -> None:
    """A full disk is an error, and the store object itself goes on from the generation before."""
    store = opened(folder)
    store.load()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("gapwise.storage.commits.write_group", full)
        with pytest.raises(OSError, match="No space left"):
            commit(store, 3)
    assert_is(opened(folder).load(), 2)
    commit(store, 3)
    assert_is(opened(folder).load(), 3)


# -- not ours ---------------------------------------------------------------------------------------------------------
def test_load__other_format_version_is_an_error(folder: Path) -> None:
    for file in folder.glob("*.json"):
        write_json(file, sealed({**read_json(file), "format_version": 99}))
    with pytest.raises(StateError, match=r"format version 99, this program writes 4"):
        opened(folder).load()


def test_load__other_configuration_is_an_error_that_lists_what_differs(folder: Path) -> None:
    with pytest.raises(StateError) as error:
        CommitStore(folder, {**IDENTITY, "seed": 7, "new": True}).load()
    assert "new: None there, True here" in str(error.value)
    assert "seed: 0 there, 7 here" in str(error.value)
    assert "solver.step" not in str(error.value)
    assert_is(opened(folder).load(), 2)


def test_load__removes_leftovers(folder: Path) -> None:
    (folder / ".tmp-g000003.zarr").mkdir()
    (folder / ".tmp-g000003.zarr" / "half").write_text("x")
    (folder / ".tmp-HEAD.json").write_text("{")
    os.rename(folder / "s000002.zarr", folder / ".old-s000002.zarr")  # killed while it was being replaced
    assert_is(opened(folder).load(), 2)
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("change", [('"generation": 2', '"generation": 1'), ('"seed": 0', '"seed": 8'), ("g", "h")])
def test_load__a_head_that_still_parses_is_recognised_as_damaged(folder: Path, caplog, change: tuple[str, str]) -> None:
    """The sidecar beside the generation is whole: nothing is lost, no other configuration is seen."""
    head = folder / "HEAD.json"
    head.write_text(head.read_text().replace(*change))
    with caplog.at_level(logging.WARNING, "gapwise.storage"):
        assert_is(opened(folder).load(), 2)
    assert "does not match its own checksum" in caplog.text


# -- power loss -------------------------------------------------------------------------------------------------------
def test_commit__is_durable_before_head_names_it(tmp_path: Path, monkeypatch) -> None:
    """What has been fsynced outlives a power loss: files before their rename, directories after it, and only then HEAD."""
    events: list[tuple[str, Path]] = []
    contents: dict[int, int] = {}  # inode -> time of its last change when it was fsynced

    def fsync(fd: int) -> None:
        events.append(("fsync", Path(os.readlink(f"/proc/self/fd/{fd}"))))
        contents[os.fstat(fd).st_ino] = os.fstat(fd).st_mtime_ns

    def named(real):
        def call(source, target) -> None:
            if Path(source).suffix == ".partial":  # zarr's own, inside what is written aside
                return real(source, target)
            for path in (Path(source), *Path(source).rglob("*")):
                assert contents.get(path.stat().st_ino) == path.stat().st_mtime_ns, f"{path} was not fsynced"
            events.append(("name", Path(target)))
            return real(source, target)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        patch.setattr(os, "rename", named(os.rename))
        patch.setattr(os, "replace", named(os.replace))
        folder = tmp_path / "new" / "run" / "state"
        store = opened(folder)
        commit(store, 1)
        commit(store, 2)
    for parent in (tmp_path, tmp_path / "new", tmp_path / "new" / "run"):
        assert ("fsync", parent) in events, f"the name of a directory in {parent} was not made durable"
    heads = [position for position, event in enumerate(events) if event == ("name", folder / "HEAD.json")]
    assert len(heads) == 2
    for position in heads:
        last = max(k for k, (kind, path) in enumerate(events[:position]) if kind == "name")
        assert ("fsync", folder) in events[last + 1 : position]
        assert ("fsync", folder) in events[position:]
