"""Which code of one's own may run: what the user names, and never what only a file names.

A model or a run says which class or program it was made with. Whoever opens it may not have made it, so commands and
`gapwise.load_model` refuse such a name unless the user trusts the files or gives the name himself. Outside of `only`,
as in a run that the user's own command configures, everything is allowed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from contextvars import ContextVar

_allowed: ContextVar[frozenset[str] | None] = ContextVar("allowed", default=None)


class UntrustedError(PermissionError):
    """Files name code that the user did not allow; nothing of it was run."""


@contextlib.contextmanager
def only(names: Collection[str] | None = ()) -> Iterator[None]:
    """Inside the block, refuse all code of one's own but `names` (``module:Class`` or a command); None: refuse nothing."""
    before = _allowed.set(None if names is None else frozenset(names))
    try:
        yield
    finally:
        _allowed.reset(before)


def permit(name: str, what: str) -> None:
    """Raise UntrustedError, which says `what` would have been done, unless code of this name is allowed."""
    allowed = _allowed.get()
    if allowed is not None and name not in allowed:
        raise UntrustedError(
            f"{name!r} is named by these files alone, and using them would {what}; nothing was run. If you trust whoever "
            "made them, give predict --trust; in Python trust=True, or the name itself as oracle=…"
        )
