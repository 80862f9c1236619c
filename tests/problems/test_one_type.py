"""Read-only weights are compiled for as written ones are: once."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config, njit

from gapwise.stages.problems.protocol import frozen
from gapwise.stages.problems.simd import one_type


@pytest.mark.skipif(bool(vars(config)["DISABLE_JIT"]), reason="nothing is compiled")
def test_one_type__serves_read_only_and_written_arrays_with_one_function() -> None:
    @njit
    def total(x):
        result = 0.0
        for j in range(x.size):
            result += x[j]
        return result

    @njit
    def twice(x):
        x = one_type(x)
        return 2.0 * total(x)

    x = np.arange(4.0)
    assert (twice(frozen(x)), twice(x)) == (12.0, 12.0)
    assert len(twice.signatures) == 2, "an array of each type came"
    assert len(total.signatures) == 1


def test_one_type__is_the_same_array_and_keeps_it_alive() -> None:
    @njit
    def part(n):
        return one_type(np.arange(n))[2:]

    parts = [part(1000) for _ in range(50)]
    np.testing.assert_array_equal(np.stack(parts), np.broadcast_to(np.arange(2, 1000), (50, 998)))
