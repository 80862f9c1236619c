"""A path that ends where the loss on held-out blocks has clearly risen: when, at which bits, and what it certifies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same_path
from solved import DieAfter, Killed, StopAfter, options_of, path_of, solved
from tiny import multiclass

from gapwise.stages.certify.verdict import claimed
from gapwise.stages.choice.rising_loss import RisingLoss, has_risen
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.path.rules import path_rule
from gapwise.stages.verify import asked_for, verify
from gapwise.storage.results import read_path

LAMS = np.array([100.0, 50.0, 20.0, 8.0, 3.0, 1.0])
NOISE = np.random.default_rng(0).normal(size=40)
"""Of blocks; all models share it, so it is in no difference."""


def losses_of(means: list[float], spread: float = 0.1) -> np.ndarray:
    """(lambdas, blocks) with these means and differences of this standard deviation between models."""
    own = np.random.default_rng(1).normal(size=(len(means), NOISE.size))
    own -= own.mean(axis=1, keepdims=True)
    return NOISE - NOISE.mean() + np.array(means)[:, None] + spread / np.sqrt(2.0) * own


@pytest.mark.parametrize(
    ("means", "risen"),
    [
        ([1.0, 0.5, 0.6, 0.6, 0.6, 0.6], True),  # from 20 to 1
        ([1.0, 0.5, 0.505, 0.6, 0.6, 0.6], False),  # from 8 to 1 only: the loss at 20 is as good
        ([1.0, 0.5, 0.6, 0.6, 0.6, 0.505], False),
        ([1.0, 0.5, 0.6, 0.505, 0.6, 0.6], False),
        ([1.0, 0.9, 0.8, 0.7, 0.6, 0.5], False),
        ([0.5, 0.6, 0.6, 0.6, 0.6, 0.6], False),  # nothing was learned yet
        ([0.505, 0.5, 0.6, 0.6, 0.6, 0.6], False),
    ],
)
def test_loss__has_risen_if_all_of_a_decade_is_clearly_worse(means: list[float], risen: bool) -> None:
    assert has_risen(LAMS, losses_of(means)) is risen


@pytest.mark.parametrize("row", range(LAMS.size))
def test_loss__that_is_nan_has_not_risen(row: int) -> None:
    losses = losses_of([1.0, 0.5, 0.6, 0.6, 0.6, 0.6])
    losses[row, 3] = np.nan
    assert not has_risen(LAMS, losses)
    longer = np.append(200.0, LAMS)
    assert not has_risen(longer, losses_of([np.nan, 1.0, 0.5, 0.6, 0.6, 0.6, 0.6]))
    assert has_risen(longer, losses_of([1.0, np.nan, 0.5, 0.6, 0.6, 0.6, 0.6]))  # a NaN is not the least, either


def test_loss__has_not_risen_within_a_standard_error_of_the_difference() -> None:
    means = [1.0, 0.5, 0.6, 0.6, 0.6, 0.6]
    assert has_risen(LAMS, losses_of(means, 0.3))  # 0.1 is two standard errors
    assert not has_risen(LAMS, losses_of(means, 1.5))  # and less than half of one


def test_loss__of_two_lambdas_far_apart_has_not_risen() -> None:
    assert not has_risen(np.array([100.0, 50.0, 20.0, 1.0]), losses_of([1.0, 0.5, 0.6, 0.6]))


def rising(turn: float) -> Callable[[np.ndarray], np.ndarray]:
    """Losses of 40 blocks that fall until ||w||^2 is `turn`, and then rise."""
    return lambda w: NOISE + np.abs(np.log10(np.sum(w * w) + 1e-9) - np.log10(turn))


OPTIONS, WHOLE = options_of(rebase_steps=20), path_of(rule="two_sided", kappa=0.7, eps=0.01, lambda_min=0.0)
PATH = dataclasses.replace(WHOLE, end="loss_rises")


def test_path__ends_where_losses_rise_and_certifies_what_is_above(tmp_path: Path) -> None:
    problem = multiclass(n=9)
    assert solved(problem, tmp_path / "whole", OPTIONS, WHOLE) is Status.CONVERGED
    whole = read_path(tmp_path / "whole" / "path.zarr")[0]
    measure = rising(float(whole["norm2"][2]))
    ending = RisingLoss(measure)
    assert solved(problem, tmp_path / "run", OPTIONS, PATH, ending=ending) is Status.LOSS_RISES
    arrays, attrs = read_path(tmp_path / "run" / "path.zarr")
    lams = arrays["lambda"]
    assert lams.size < whole["lambda"].size
    np.testing.assert_array_equal(lams, whole["lambda"][: lams.size])
    np.testing.assert_array_equal(arrays["weights"], whole["weights"][: lams.size])
    assert arrays["cell_low"][-1] == lams[-1]
    assert list(ending.known) == lams.tolist()
    np.testing.assert_array_equal([*ending.known.values()], [measure(w) for w in arrays["weights"]])
    assert has_risen(lams, np.array(list(ending.known.values())))
    assert not has_risen(lams[:-1], np.array(list(ending.known.values())[:-1]))
    asked = asked_for(PATH, OPTIONS.method, seed=3, key="k", status="LOSS_RISES")
    verdict = verify(problem, tmp_path / "run", asked=asked)["verdict"]
    assert (verdict["certified"], verdict["verified"], verdict["lam_low"]) == (True, True, lams[-1])
    words = f"every certificate holds, for λ ≥ {lams[-1]:.3g}; below, the loss on held-out blocks had clearly risen"
    assert claimed(arrays, attrs).words.startswith(words)
    assert solved(problem, tmp_path / "run", OPTIONS, PATH, ending=ending) is Status.LOSS_RISES
    assert len(ending.known) == lams.size, "what has ended is not solved again"


def test_path__that_was_stopped_and_killed_ends_there_with_the_same_bits(tmp_path: Path) -> None:
    problem = multiclass(n=9)
    assert solved(problem, tmp_path / "all", OPTIONS, WHOLE) is Status.CONVERGED
    measure = rising(float(read_path(tmp_path / "all" / "path.zarr")[0]["norm2"][2]))
    assert solved(problem, tmp_path / "whole", OPTIONS, PATH, ending=RisingLoss(measure)) is Status.LOSS_RISES
    for left in (3, 5):
        ways = {"stop": StopAfter(left), "ending": RisingLoss(measure)}
        assert solved(problem, tmp_path / "run", OPTIONS, PATH, **ways) is Status.INTERRUPTED
        with pytest.raises(Killed):
            solved(
                problem,
                tmp_path / "run",
                OPTIONS,
                PATH,
                stop=DieAfter(3),
                ending=RisingLoss(measure),
                every_seconds=0.0,
            )
    assert solved(problem, tmp_path / "run", OPTIONS, PATH, ending=RisingLoss(measure)) is Status.LOSS_RISES
    assert_same_path(tmp_path / "run", tmp_path / "whole")


def test_path__goes_on_while_an_interval_above_is_not_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the loss had risen from the third lambda on: only where the next lambda is below all others may it end."""
    monkeypatch.setattr("gapwise.stages.choice.rising_loss.has_risen", lambda lams, losses: lams.size > 2)
    monkeypatch.setattr(path_rule("two_sided"), "below_last", lambda self: self.members[-1].point.lam / 40.0)
    ending = RisingLoss(lambda w: NOISE)
    assert solved(multiclass(n=9), tmp_path, OPTIONS, PATH, ending=ending) is Status.LOSS_RISES
    arrays = read_path(tmp_path / "path.zarr")[0]
    assert list(ending.known) != arrays["lambda"].tolist(), "none was solved between two others"
    assert arrays["cell_low"][-1] == arrays["lambda"][-1]
