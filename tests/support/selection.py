"""Which tests the default suite leaves to --faults=full or to runs without the compiler, to fit into ten minutes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, are spread evenly, and in step with no period of a table of cases."""


def left_out(items: Iterable[pytest.Item], compiled: bool) -> set[pytest.Item]:
    """Tests marked `long`, of those marked `share(s)` all but that share of each test's cases, and `interpreted` ones if
    functions are `compiled`.

    Which cases stay depends on their number alone; those of a table are spread over its rows and columns.
    """
    items_left_out, seen = set(), Counter[str]()
    for item in items:
        share = item.get_closest_marker("share")
        function = item.nodeid.split("[")[0]
        left = item.get_closest_marker("long") or (compiled and item.get_closest_marker("interpreted"))
        if left or (share and seen[function] * GOLDEN % 1.0 >= share.args[0]):
            items_left_out.add(item)
        seen[function] += 1
    return items_left_out
