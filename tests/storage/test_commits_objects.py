"""Commits on a disk and on object stores: first the generation, then the pointer; nothing committed is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from committed import assert_is, commit, opened
from locations import KINDS, fresh

from gapwise.storage.backend import Location, UrlPath, remote
from gapwise.storage.commits import StateError
from gapwise.storage.files import listed


def two_generations(folder: Location) -> Location:
    store = opened(folder)
    commit(store, 1)
    commit(store, 2)
    return folder


def names(folder: Location, pattern: str) -> list[str]:
    """Numbers and endings, without the writer's own part."""
    return [f"{path.name[:7]}.{path.name.rsplit('.', 1)[1]}" for path in listed(folder, pattern)]


@pytest.mark.parametrize("kind", [*KINDS, pytest.param("s3", marks=pytest.mark.slow)])
def test_commit__round_trip_keeps_one_older_generation(kind: str, cache: Path, request: pytest.FixtureRequest) -> None:
    folder = two_generations(fresh(kind, request))
    store = opened(folder)
    assert_is(store.load(), 2)
    for number in (3, 4):
        commit(store, number)
    assert names(folder, "g*.zarr") == ["g000003.zarr", "g000004.zarr"]
    assert names(folder, "g*.json") == ["g000003.json", "g000004.json"]
    assert len(list(folder.glob("s*.zarr"))) == 4
    assert_is(opened(folder).load(), 4)


def test_commit__of_one_who_was_thought_dead_is_refused_and_spoils_nothing(
    objects: UrlPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes from the same generation: the first to move HEAD wins, whatever the other had written before."""
    folder = two_generations(objects)
    slow, quick = opened(folder), opened(folder)
    slow.load()
    quick.load()
    monkeypatch.setattr(remote, "WRITER", "other")
    commit(quick, 3)
    monkeypatch.setattr(remote, "WRITER", "mine")
    for _ in range(2):
        with pytest.raises(StateError, match="another process has taken this run over"):
            commit(slow, 3)
    assert_is(opened(folder).load(), 3)
    commit(quick, 4)
    assert_is(opened(folder).load(), 4)
    with pytest.raises(StateError, match="another process"):
        commit(slow, 3)
    assert_is(opened(folder).load(), 4)
