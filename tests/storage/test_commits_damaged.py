"""Damaged committed generations: fall back to the previous one, or fail with an error that says what to do."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from committed import assert_is, commit, opened
from harms import cut, flip

from gapwise.storage.commits import StateError
from gapwise.storage.files import DamagedError, read_json, write_json
from gapwise.storage.integrity import sealed
from gapwise.storage.summary import committed


def some_chunk(group: Path) -> Path:
    return next(path for path in sorted((group / "support_alpha").rglob("*")) if path.is_file() and "c" in path.parts)


DAMAGE = {
    "flipped bit": lambda folder: flip(some_chunk(folder / "g000002.zarr")),
    "truncated": lambda folder: cut(some_chunk(folder / "g000002.zarr")),
    "chunk gone": lambda folder: some_chunk(folder / "g000002.zarr").unlink(),
    "generation gone": lambda folder: shutil.rmtree(folder / "g000002.zarr"),
    "new segment": lambda folder: flip(some_chunk(folder / "s000002.zarr")),
    "generation and sidecar gone": lambda folder: (
        shutil.rmtree(folder / "g000002.zarr"),
        (folder / "g000002.json").unlink(),
    ),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_load__damaged_newest_falls_back_one_and_says_so(folder: Path, caplog, damage) -> None:
    damage(folder)
    store = opened(folder)
    with caplog.at_level(logging.WARNING, logger="gapwise.storage"):
        assert_is(store.load(), 1)
    assert "going on from generation 1" in caplog.text
    assert "000002.zarr" in caplog.text
    commit(store, 2)
    assert_is(opened(folder).load(), 2)


@pytest.mark.parametrize("how", ["missing", "empty", "no number"])
def test_load__without_its_head_takes_the_newest_generation(folder: Path, caplog, how: str) -> None:
    head = folder / "HEAD.json"
    if how == "missing":
        head.unlink()
    else:
        head.write_text({"empty": "", "no number": '{"format_version": 1}'}[how])
    with caplog.at_level(logging.WARNING, logger="gapwise.storage"):
        assert_is(opened(folder).load(), 2)
    assert "HEAD.json" in caplog.text


def test_load__nothing_intact_is_an_error_that_says_what_to_do(folder: Path) -> None:
    flip(some_chunk(folder / "s000001.zarr"))  # both generations need it
    with pytest.raises(StateError, match=r"no committed generation is intact.*s000001\.zarr.*Restore.*or delete"):
        opened(folder).load()
    assert (folder / "g000002.zarr").is_dir()


def test_load__reads_no_generation_past_head(folder: Path) -> None:
    """Killed between the two sidecars: the third generation was written whole and never committed."""
    store = opened(folder)
    store.load()
    before = (folder / "HEAD.json").read_bytes()
    commit(store, 3)
    (folder / "HEAD.json").write_bytes(before)
    assert_is(opened(folder).load(), 2)
    assert not list(folder.glob("?000003.*"))


@pytest.mark.parametrize("part", ["generation", "segment"])
@pytest.mark.parametrize("where", ["../elsewhere/", "/"])
def test_load__opens_nothing_outside_its_folder(folder: Path, part: str, where: str) -> None:
    head = read_json(folder / "HEAD.json")
    if part == "generation":
        head["name"] = where + head["name"]
    else:
        head["segments"][0]["name"] = where + head["segments"][0]["name"]
    write_json(folder / "HEAD.json", sealed(head))
    with pytest.raises(DamagedError, match="which is outside it"):
        opened(folder).load()
    if part == "generation":
        with pytest.raises(DamagedError, match="which is outside it"):
            committed(folder)
