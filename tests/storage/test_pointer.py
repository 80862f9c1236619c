"""Replacing an object only if it is what was seen: of two writers one succeeds, and the other is told."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from storage import pointer
from storage.files import read_json
from storage.places import ObjectPlace
from storage.pointer import ChangedError, Pointer, look, swap


def test_swap__only_replaces_what_was_seen(objects: ObjectPlace) -> None:
    at = objects / "x"
    assert look(at) == (None, None)
    with pytest.raises(ChangedError):
        swap(at, b"0", '"never"')
    first = swap(at, b"1", None)
    assert look(at) == (b"1", first)
    with pytest.raises(ChangedError, match="another process"):
        swap(at, b"2", None)
    second = swap(at, b"3", first)
    assert second != first
    with pytest.raises(ChangedError):
        swap(at, b"4", first)
    assert look(at) == (b"3", second)


def test_swap__that_was_done_already_is_no_error(objects: ObjectPlace) -> None:
    """A client repeats a PUT whose answer was lost."""
    at = objects / "x"
    first = swap(at, b"1", None)
    assert swap(at, b"1", None) == first
    second = swap(at, b"2", first)
    assert swap(at, b"2", first) == second


def test_swap__on_s3_the_server_decides(s3: str, monkeypatch) -> None:
    """A writer that comes between the comparison and the PUT."""
    at = ObjectPlace(f"{s3}/between/x")
    version = swap(at, b"1", None)
    real = pointer.look
    for seen, place in ((version, at), (None, at.with_name("y"))):
        done = []

        def late(place, done=done):
            found = real(place)
            if not done:
                done.append(True)
                place.write_bytes(b"the other's")
            return found

        with monkeypatch.context() as patch:
            patch.setattr(pointer, "look", late)
            with pytest.raises(ChangedError):
                swap(place, b"mine", seen)
        assert place.read_bytes() == b"the other's"


def test_swap__loses_no_update_of_many_threads(objects: ObjectPlace) -> None:
    at = objects / "counter"
    swap(at, b"0 nobody", None)

    def count(me: int) -> None:
        for _ in range(5):
            while True:
                data, version = look(at)
                assert data is not None
                try:
                    swap(at, f"{int(data.split()[0]) + 1} {me}".encode(), version)
                    break
                except ChangedError:
                    continue

    threads = [threading.Thread(target=count, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert at.read_bytes().split()[0] == b"20"


def test_pointer__moves_from_what_it_saw_last(objects: ObjectPlace) -> None:
    mine, other = Pointer(objects / "HEAD.json"), Pointer(objects / "HEAD.json")
    with pytest.raises(FileNotFoundError):
        mine.read()
    mine.write({"generation": 1})
    mine.write({"generation": 2})
    assert other.read() == {"generation": 2}
    other.write({"generation": 3})
    with pytest.raises(ChangedError):
        mine.write({"generation": 3, "mine": True})
    assert mine.read() == {"generation": 3}
    mine.write({"generation": 4})
    assert other.read() == {"generation": 4}


def test_pointer__that_is_damaged_is_an_error_and_can_be_replaced(objects: ObjectPlace) -> None:
    (objects / "HEAD.json").write_bytes(b"{")
    head = Pointer(objects / "HEAD.json")
    with pytest.raises(ValueError, match="damaged"):
        head.read()
    head.write({"generation": 1})
    assert head.read() == {"generation": 1}


def test_pointer__on_a_disk_is_a_file(tmp_path: Path) -> None:
    Pointer(tmp_path / "HEAD.json").write({"generation": 1})
    Pointer(tmp_path / "HEAD.json").write({"generation": 2})
    assert read_json(tmp_path / "HEAD.json") == Pointer(tmp_path / "HEAD.json").read() == {"generation": 2}
