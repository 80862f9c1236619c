"""Commits that a thread writes, one at a time, while the next steps are made.

A commit of a large state is begun at a rebase point and complete some seconds later. Until then the generation before it is
the committed one, and whatever happens to the process, a resume finds one of the two. The thread writes through
`CommitStore.commit`, so files and their order are those of any commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from types import TracebackType

import numpy as np

from gapwise.records import Facts
from gapwise.storage.commits import CommitStore, Segment
from gapwise.storage.layout import ArraySpec

LARGE_BYTES = 8 << 20
"""States of fewer bytes are written at once, by the caller: they take less time than anyone notices."""


class GivenUp(Exception):
    """Ends a commit that nobody waits for."""


class AsyncCommits:
    """The commits of one solve; a context manager, after which nothing is being written.

    Parameters
    ----------
    store : CommitStore
        Loaded, or of a new run. While a commit is being written nothing else may use it.
    """

    def __init__(self, store: CommitStore) -> None:
        self.store = store
        self._pool = ThreadPoolExecutor(1, "commit")
        self._writing: Future[None] | None = None
        self._then: Callable[[], None] = lambda: None
        self._given_up = Event()

    def __enter__(self) -> AsyncCommits:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Wait for the commit being written; after a KeyboardInterrupt end it as soon as can be, before it moves HEAD."""
        try:
            if kind is not None and not issubclass(kind, Exception):
                self._given_up.set()
            elif self._writing is not None and not (self._writing.done() and self._writing.exception() is error):
                self.settle()
        finally:
            self._pool.shutdown()

    @property
    def free(self) -> bool:
        """Whether no commit is being written; one that has been written since is completed as by `settle`."""
        if self._writing is not None and self._writing.done():
            self.settle()
        return self._writing is None

    def settle(self) -> None:
        """Wait for the commit being written, if there is one, and call its `then`.

        Raises
        ------
        StateError, OSError, ...
            What `CommitStore.commit` raised in the thread; then the generation before is still the committed one. Raised
            again at each further call, since a later commit would lack the segment of this one.
        """
        if self._writing is not None:
            self._writing.result()
            self._writing = None
            self._then()

    def commit(
        self,
        specs: Sequence[ArraySpec],
        arrays: Mapping[str, np.ndarray],
        attrs: Facts,
        segment: Callable[[], Segment] | None,
        *,
        nbytes: int,
        then: Callable[[], None],
        wait: bool = False,
    ) -> None:
        """Commit a state and the breakpoints finished since the last one, after the commit being written is settled.

        Parameters
        ----------
        specs, arrays, attrs
            As of `CommitStore.commit`. Nobody else may write to the arrays, or to what is in `attrs`.
        segment : callable, optional
            Makes the argument of `CommitStore.commit` of that name; called by whoever writes.
        nbytes : int
            Bytes of all arrays, those of the segment included.
        then : callable
            Called by the main thread when the commit is complete: before `commit` returns, in `free` or in `settle`.
        wait : bool
            Return when the commit is complete, whatever its size.

        Raises
        ------
        StateError, OSError, ...
            As `settle`; and, of a commit that is complete on return, as `CommitStore.commit`.
        """
        self.settle()

        def write() -> None:
            self.store.commit(specs, arrays, attrs, None if segment is None else segment(), self._go_on)

        if wait or nbytes < LARGE_BYTES:
            write()
            then()
        else:
            self._writing, self._then = self._pool.submit(write), then

    def _go_on(self) -> None:
        """Called before each array and file."""
        if self._given_up.is_set():
            raise GivenUp
