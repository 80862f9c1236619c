"""Commits that a thread writes: one at a time, in order, with their errors, and nothing in flight at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from committed import STATE, assert_is, attributes, opened, state
from records import breakpoint_record
from waiting import wait_for

from gapwise.storage import async_commits
from gapwise.storage.async_commits import AsyncCommits
from gapwise.storage.backend import Location
from gapwise.storage.commits import CommitStore, Segment
from gapwise.storage.results import stack

LARGE, SMALL = async_commits.LARGE_BYTES, async_commits.LARGE_BYTES - 1


class Gated(AsyncCommits):
    """Commits that wait for `gate` where another thread writes them."""

    def __init__(self, store: CommitStore) -> None:
        super().__init__(store)
        self.gate, self.writers, self.told = threading.Event(), [], []
        self.error: BaseException | None = None
        real = store.commit

        def write(*args) -> None:
            self.writers.append(threading.current_thread())
            if threading.current_thread() is not threading.main_thread():
                assert self.gate.wait(60)
            if self.error is not None:
                raise self.error
            real(*args)

        store.commit = write

    def put(self, number: int, nbytes: int = LARGE, wait: bool = False) -> None:
        def segment() -> dict:
            return Segment(stack([breakpoint_record(number)]), {})

        self.commit(
            STATE, state(number), attributes(number), segment,
            nbytes=nbytes, then=lambda: self.told.append((number, threading.current_thread())), wait=wait,
        )  # fmt: skip


@pytest.fixture
def commits(tmp_path: Path) -> Gated:
    return Gated(opened(tmp_path / "state"))


def newest(folder: Location) -> int:
    """The generation that a resume finds."""
    store = opened(folder)
    store.load()
    return store.generation


def test_commit__of_a_small_state_is_written_at_once_without_a_thread(commits: Gated) -> None:
    commits.put(1, SMALL)
    assert commits.writers == [threading.main_thread()]
    assert commits.told == [(1, threading.main_thread())]
    assert commits.free
    assert_is(opened(commits.store.folder).load(), 1)


def test_commit__of_a_large_state_returns_before_it_is_written(commits: Gated) -> None:
    commits.put(1)
    assert not commits.free
    assert (newest(commits.store.folder), commits.told) == (0, [])
    commits.gate.set()
    wait_for(lambda: commits.free)
    assert commits.writers[0] is not threading.main_thread()
    assert commits.told == [(1, threading.main_thread())]
    assert_is(opened(commits.store.folder).load(), 1)


def test_commit__waits_for_the_one_in_flight_and_keeps_the_order(commits: Gated) -> None:
    commits.put(1)
    threading.Timer(0.2, commits.gate.set).start()
    commits.put(2)
    assert [number for number, _ in commits.told] == [1]
    commits.put(3, SMALL)
    commits.put(4, wait=True)
    assert [number for number, _ in commits.told] == [1, 2, 3, 4]
    assert_is(opened(commits.store.folder).load(), 4)  # with the segments of all, each of them once


ASK: dict[str, Callable[[Gated], object]] = {
    "free": lambda commits: wait_for(lambda: commits.free),
    "settle": lambda commits: commits.settle(),
    "exit": lambda commits: commits.__exit__(None, None, None),
    "another": lambda commits: commits.put(3),
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_error__of_the_thread_is_raised_where_the_main_thread_asks_next(commits: Gated, ask) -> None:
    commits.put(1, wait=True)
    commits.error = OSError(28, "No space left on device")
    commits.gate.set()
    commits.put(2)
    with pytest.raises(OSError, match="No space left"):
        ask(commits)
    assert [number for number, _ in commits.told] == [1]
    assert_is(opened(commits.store.folder).load(), 1)


def test_error__of_the_thread_keeps_later_commits_from_skipping_its_breakpoints(commits: Gated) -> None:
    commits.error = OSError(28, "No space left on device")
    commits.gate.set()
    commits.put(1)
    with pytest.raises(OSError, match="No space left"):
        commits.settle()
    commits.error = None
    for wait in (False, True):
        with pytest.raises(OSError, match="No space left"):
            commits.put(2, wait=wait)
    assert newest(commits.store.folder) == 0


def test_interrupt__ends_the_commit_in_flight_before_it_moves_head(commits: Gated, monkeypatch) -> None:
    """A second Ctrl-C: nobody writes any more when the lock is given back."""
    commits.put(1, wait=True)
    before = {*threading.enumerate()}
    written, really = threading.Event(), threading.Event()
    real = CommitStore.commit

    def slow(*args) -> None:
        arrays = args[1]

        class Slow(dict):
            def __getitem__(self, name: str):
                written.set()
                assert really.wait(60)
                return super().__getitem__(name)

        real(commits.store, args[0], Slow(arrays), *args[2:])

    commits.store.commit = slow

    def solve() -> None:
        with commits:
            commits.put(2)
            assert written.wait(60)
            threading.Timer(0.2, really.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve()
    assert set(threading.enumerate()) <= before
    assert [number for number, _ in commits.told] == [1]
    assert_is(opened(commits.store.folder).load(), 1)
