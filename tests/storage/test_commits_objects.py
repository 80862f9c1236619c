"""Commits on an object store: first the generation, then the pointer; what was committed is never lost here either."""

from __future__ import annotations

import logging
import uuid

import pytest
from committed import assert_is, commit, opened
from locations import files_of

from gapwise.storage.backend import UrlPath, backend, remote
from gapwise.storage.backend.objects import ObjectBackend
from gapwise.storage.commits import StateError
from gapwise.storage.files import read_json, write_json
from gapwise.storage.integrity import sealed, unsealed

pytestmark = pytest.mark.slow


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def folder(cache) -> UrlPath:
    """State with two generations, in memory."""
    return two_generations(UrlPath(f"memory://commits/{uuid.uuid4().hex}"))


def two_generations(folder: UrlPath) -> UrlPath:
    store = opened(folder)
    commit(store, 1)
    commit(store, 2)
    return folder


def names(folder: UrlPath, pattern: str) -> list[str]:
    """Numbers and endings, without the writer's own part."""
    return [f"{path.name[:7]}.{path.name.rsplit('.', 1)[1]}" for path in folder.glob(pattern)]


def copy_tree(source: UrlPath, target: UrlPath) -> None:
    for name, data in backend(source).read_all(source, files_of(source)):
        (target / name).write_bytes(data)


def damage(folder: UrlPath, group: str, what: str) -> None:
    (tree,) = folder.glob(f"{group}.*.zarr")
    (chunk,) = (name for name in files_of(tree) if name.startswith("support_alpha/c/"))
    if what == "gone":
        (tree / chunk).unlink()
    elif what == "truncated":
        (tree / chunk).write_bytes((tree / chunk).read_bytes()[:-1])
    else:
        data = bytearray((tree / chunk).read_bytes())
        data[len(data) // 2] ^= 1
        (tree / chunk).write_bytes(bytes(data))


def test_commit__round_trip_keeps_one_older_generation(objects: UrlPath) -> None:
    folder = two_generations(objects)
    store = opened(folder)
    assert_is(store.load(), 2)
    for number in (3, 4):
        commit(store, number)
    assert names(folder, "g*.zarr") == ["g000003.zarr", "g000004.zarr"]
    assert names(folder, "g*.json") == ["g000003.json", "g000004.json"]
    assert len(list(folder.glob("s*.zarr"))) == 4
    assert_is(opened(folder).load(), 4)


def test_load__on_s3_sees_a_damaged_object(s3: str, cache, caplog: pytest.LogCaptureFixture) -> None:
    folder = two_generations(UrlPath(f"{s3}/damaged"))
    damage(folder, "g000002", "flipped")
    with caplog.at_level(logging.WARNING, logger="gapwise.storage"):
        assert_is(opened(folder).load(), 1)
    assert "does not match its checksum" in caplog.text


def test_commit__nothing_there_is_none(objects: UrlPath) -> None:
    assert opened(objects / "state").load() is None


@pytest.mark.parametrize("what", ["flipped", "truncated", "gone"])
@pytest.mark.parametrize("group", ["g000002", "s000002"])
def test_load__damaged_newest_falls_back_one_and_says_so(
    folder: UrlPath, caplog: pytest.LogCaptureFixture, group: str, what: str
) -> None:
    damage(folder, group, what)
    store = opened(folder)
    with caplog.at_level(logging.WARNING, logger="gapwise.storage"):
        assert_is(store.load(), 1)
    assert "going on from generation 1" in caplog.text
    assert group in caplog.text
    commit(store, 2)
    assert_is(opened(folder).load(), 2)


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_load__without_its_head_takes_the_newest_generation(folder: UrlPath, how: str) -> None:
    if how == "missing":
        (folder / "HEAD.json").unlink()
    else:
        (folder / "HEAD.json").write_bytes(b"")
    store = opened(folder)
    assert_is(store.load(), 2)
    commit(store, 3)
    assert_is(opened(folder).load(), 3)


def test_load__nothing_intact_is_an_error(folder: UrlPath) -> None:
    damage(folder, "s000001", "flipped")
    with pytest.raises(StateError, match=r"no committed generation is intact.*s000001"):
        opened(folder).load()


def test_load__other_configuration_is_an_error_that_lists_what_differs(folder: UrlPath) -> None:
    with pytest.raises(StateError, match="seed: 0 there, 7 here"):
        opened(folder, seed=7).load()
    head = folder / "HEAD.json"
    write_json(head, sealed({**unsealed(read_json(head), head), "format_version": 99}))
    with pytest.raises(StateError, match="format version 99"):
        opened(folder).load()


@pytest.mark.share(0.5)  # in memory; on S3, of two first ones one is refused
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


def test_commit__of_two_first_ones_one_is_refused(objects: UrlPath, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = opened(objects), opened(objects)
    assert first.load() is None
    assert second.load() is None
    commit(first, 1)
    monkeypatch.setattr(remote, "WRITER", "other")
    with pytest.raises(StateError, match="another process"):
        commit(second, 1)
    assert_is(opened(objects).load(), 1)


def test_commit__refused_by_the_store_keeps_the_committed_state(folder: UrlPath, monkeypatch) -> None:
    store = opened(folder)
    store.load()

    def refuse(*args):
        raise PermissionError("access denied")

    for name in ("upload", "write_bytes"):
        with monkeypatch.context() as patch:
            patch.setattr(ObjectBackend, name, refuse)
            with pytest.raises(OSError, match="access denied"):
                commit(store, 3)
    assert_is(opened(folder).load(), 2)
    commit(store, 3)
    assert_is(opened(folder).load(), 3)


@pytest.mark.parametrize(
    ("committed", "after"), [(0, False), (2, False), (2, True)], ids=["first", "third, before", "third, after"]
)
def test_commit__killed_at_any_request_loses_nothing(cache, monkeypatch, committed: int, after: bool) -> None:
    """A commit dies before or after a request that changes something: one array is as good as another, all others."""
    root = UrlPath(f"memory://killed-{after}-{committed}")
    store = opened(root / "template")
    for number in range(1, committed + 1):
        commit(store, number)
    if committed:
        copy_tree(root / "template", root / "whole")
    whole = opened(root / "whole")
    whole.load()
    requests = killed_at(monkeypatch, whole, committed + 1, None, after)
    assert requests.count("upload") > 50
    points = [k for k, name in enumerate(requests) if name != "upload" or k % 25 == 0]
    generations = []
    for point in points:
        folder = root / f"{point}"
        if committed:
            copy_tree(root / "template", folder)
        store = opened(folder)
        store.load()
        killed_at(monkeypatch, store, committed + 1, point, after)
        again = opened(folder)
        loaded = again.load()
        generations.append(again.generation)
        if again.generation:
            assert_is(loaded, again.generation)
        else:
            assert loaded is None
            assert files_of(folder) == []
        assert all(int(path.name[1:7]) <= again.generation for path in folder.glob("[gs]*"))
        if point % 3 == 0:
            commit(again, again.generation + 1)
            assert_is(opened(folder).load(), again.generation)
    assert set(generations) == {committed, committed + 1}


def killed_at(monkeypatch, store, number: int, point: int | None, after: bool) -> list[str]:
    """Commit; raise Killed in place of, or just after, the request of number `point`. The requests made."""
    made: list[str] = []

    def watched(name, real):
        def call(*args, **kwargs):
            made.append(name)
            dead = len(made) - 1 == point
            if dead and not after:
                raise Killed
            answer = real(*args, **kwargs)
            if dead:
                raise Killed
            return answer

        return call

    upload = watched("upload", ObjectBackend.upload)

    def one_by_one(self, where, folder, names):
        for name in names:
            upload(self, where, folder, [name])

    with monkeypatch.context() as patch:
        patch.setattr(ObjectBackend, "upload", one_by_one)
        for name in ("write_bytes", "remove_all", "unlink"):
            patch.setattr(ObjectBackend, name, watched(name, getattr(ObjectBackend, name)))
        if point is None:
            commit(store, number)
        else:
            with pytest.raises(Killed):
                commit(store, number)
    return made
