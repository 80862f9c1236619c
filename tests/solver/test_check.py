"""Combinations of structure, method and path rule: what is refused, and by which message."""

from __future__ import annotations

import numpy as np
import pytest
from solved import AT_MEAN, method_named
from tiny import TINY, multiclass

from gapwise.stages.problems.capabilities import optional_of
from gapwise.stages.solver.check import check_choices, check_path
from gapwise.stages.solver.methods import method_options, methods
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.path.rules import rules

GIVEN = ("grid", "single")


def options_of(method: str):
    return method_options(
        **method_named({"method": method, **({"max_passes": 5.0} if method in ("ssg", "eg") else {})})
    )


def path_of(rule: str, **choices) -> PathOptions:
    return PathOptions(rule=rule, lambdas=[1.0, 0.1], **choices)


@pytest.mark.parametrize("rule", rules())
@pytest.mark.parametrize("method", [*methods(), AT_MEAN])
def test_combinations__of_every_method_and_rule(method: str, rule: str) -> None:
    """On a structure that can do everything, from the definitions alone."""
    path = path_of(rule)
    refused = rule not in GIVEN and (
        method in ("ssg", "eg") or (method in (AT_MEAN, "accelerated") and rule not in ("two_sided", "anytime"))
    )
    if not refused:
        check_path(options_of(method), path)
        return
    with pytest.raises(ValueError, match=r"^(solver\.method|path\.rule): "):
        check_path(options_of(method), path)


@pytest.mark.parametrize("rule", rules())
def test_averages__are_for_given_lambdas(rule: str) -> None:
    averaged = method_options(method="mpbcfw", averaging="weighted")
    if rule in GIVEN:
        check_path(averaged, path_of(rule))
        return
    with pytest.raises(ValueError, match=rf"solver\.averaging: expected none, for path\.rule={rule} \(path=grid"):
        check_path(averaged, path_of(rule))


@pytest.mark.parametrize("rule", rules())
def test_boxes__that_are_no_cone_are_for_given_lambdas(rule: str) -> None:
    problem = multiclass(lower=np.full(12, -np.inf), upper=np.full(12, 2.5))
    if rule in GIVEN:
        check_choices(problem, method_options(), path_of(rule))
        return
    with pytest.raises(ValueError, match=r"has upper=2\.5"):
        check_choices(problem, method_options(), path_of(rule))


def test_marginals__are_needed_by_eg() -> None:
    names = [name for name in TINY if optional_of(TINY[name](), "marginals") is None]
    assert names
    with pytest.raises(ValueError, match=r"solver\.method: eg sums over all labellings of a block, which \w+ cannot"):
        check_choices(TINY[names[0]](), options_of("eg"), path_of("single"))
