"""Methods that a structure takes from another."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gapwise.stages.problems.shared import takes


class Source(NamedTuple):
    n: int

    @property
    def twice(self) -> int:
        return 2 * self.n

    def add(self, x: int) -> int:
        return self.n + x


def test_takes__gives_methods_and_properties_that_read_the_own_fields() -> None:
    @takes(Source, "twice", "add")
    class Other(NamedTuple):
        name: str
        n: int

    other = Other("a", 3)
    assert (other.twice, other.add(4)) == (6, 7)


def test_takes__refuses_a_name_that_the_class_has_or_the_source_lacks() -> None:
    class Own(NamedTuple):
        n: int

        def add(self, x: int) -> int:
            return x

    with pytest.raises(TypeError, match="Own: add is its own, and is taken from Source"):
        takes(Source, "add")(Own)
    with pytest.raises(TypeError, match="Own: n is its own"):
        takes(Source, "n")(Own)
    with pytest.raises(AttributeError, match="missing"):
        takes(Source, "missing")(Own)
    assert Own(1).add(5) == 5
