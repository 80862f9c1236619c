"""Calls that would hang if they failed."""

from __future__ import annotations

import threading
from collections.abc import Callable


def within(seconds: float, act: Callable[[], object]) -> None:
    """Call `act` in a thread of its own; fail if it has not returned after `seconds`."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"still waiting after {seconds:g} s"
    if errors:
        raise errors[0]
