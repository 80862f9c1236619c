"""The model that a path gives out at each lambda is the one that its certificates are about, under every rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from verified import run_of

from gapwise.storage.mixture import PathInMemory, model_at, read_mixture, weights_at
from gapwise.storage.results import read_path

KINDS = ("two_sided", "two_sided_whole", "anytime", "paper", "heuristic", "grid")


def lambdas(arrays: Mapping[str, np.ndarray]) -> Iterator[float]:
    """Lambdas at which another model might begin, some between, and where none is: below the end."""
    solved = arrays["lambda"]
    end = float(arrays["cell_low"][-1] if "cell_low" in arrays else solved[-1])
    yield from (0.0, 0.999 * end if end else -1.0)
    yield from (*solved.tolist(), *np.sqrt(solved[:-1] * solved[1:]).tolist(), 2.0 * float(solved[0]))
    for low, high in zip(arrays.get("cell_low", ()), arrays.get("cell_high", ()), strict=True):
        inside = 2.0 * low if high == math.inf else 0.3 * high if low == 0.0 else math.sqrt(low * high)
        yield from (lam for lam in (low, high, inside) if 0.0 < lam < math.inf)


def expected(arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: float) -> np.ndarray | None:
    """min(1, scale / lambda) (t_a w_a + t_b w_b) of the upper cell of lambda; None where nothing is certified.

    A lambda that was solved to its tolerance has its own weights.
    """
    allowed = attrs["eps"] * (arrays["dual"] if attrs["relative"] else 1.0)
    own = np.flatnonzero((arrays["lambda"] == lam) & ("cell_low" not in arrays or arrays["gap"] <= allowed))
    if own.size:
        return arrays["weights"][own[0]]
    zero = np.zeros(arrays["weights"].shape[1])
    w = [zero, *arrays["weights"], zero]
    for c, (low, high) in enumerate(zip(arrays.get("cell_low", ()), arrays.get("cell_high", ()), strict=True)):
        if low <= lam <= high:
            k, (a, b) = int(arrays["cell_interval"][c]), arrays["cell_primal"][c]
            return min(1.0, arrays["cell_scale"][c] / lam) * (a * w[max(k, 0)] + b * w[k + 1])
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_weights_at__is_the_mixture_of_the_cell_at_every_lambda(kind: str) -> None:
    path = run_of("multiclass", kind) / "path.zarr"
    arrays, attrs = read_path(path)
    given, here, between = weights_at(path), PathInMemory(dict(arrays), dict(attrs)), 0
    for lam in lambdas(arrays):
        wanted = expected(arrays, attrs, lam) if lam > 0.0 else None
        if wanted is None:
            for served in (given, here.weights_at, read_mixture(path)):
                with pytest.raises(ValueError, match="weights_at: "):
                    served(lam)
            continue
        between += lam not in arrays["lambda"]
        for w in (given(lam), here.weights_at(lam), model_at(path, lam).weights):
            np.testing.assert_allclose(w, wanted, rtol=1e-12, atol=1e-12)
    assert between > 5 or kind == "grid"
