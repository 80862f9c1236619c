"""Combinations of structure, method and path rule: what is refused, by which message, and that the README says the same."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tiny import TINY, multiclass

from gapwise.stages.solver.combinations import REFUSED, check_choices, check_path, markdown, structure_capabilities
from gapwise.stages.solver.methods import method_options, methods
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.path.capabilities import Capabilities
from gapwise.stages.solver.path.rules import capabilities, path_rule, rules, steppers

ROOT = Path(__file__).resolve().parents[2]
GIVEN = ("grid", "single")


def options_of(method: str):
    return method_options(method=method, **({"max_passes": 5.0} if method == "ssg" else {}))


def path_of(rule: str, **choices) -> PathOptions:
    return PathOptions(rule=rule, lambdas=[1.0, 0.1], **choices)


def test_readme__has_the_table() -> None:
    text = (ROOT / ".github" / "docs" / "solver.md").read_text(encoding="utf-8")
    table = re.search(r"<!-- combinations -->\n(.*?)\n<!-- end of combinations -->", text, re.DOTALL)
    assert table is not None
    assert table[1].splitlines() == markdown(), (
        ".github/docs/solver.md is behind solver/combinations.py: paste markdown()"
    )


@pytest.mark.parametrize("rule", rules())
@pytest.mark.parametrize("method", methods())
def test_combinations__of_every_method_and_rule(method: str, rule: str) -> None:
    """On a structure that can do everything, from the definitions alone."""
    path = path_of(rule)
    refused = rule not in GIVEN and (
        method in ("ssg", "eg") or (method == "accelerated_at_mean" and rule not in ("two_sided", "anytime"))
    )
    if not refused:
        check_path(options_of(method), path)
        return
    with pytest.raises(ValueError, match=r"^(solver\.method|path\.rule): "):
        check_path(options_of(method), path)


@pytest.mark.parametrize("rule", rules())
def test_averages__are_for_given_lambdas(rule: str) -> None:
    averaged = method_options(method="bcfw", averaging="weighted")
    if rule in GIVEN:
        check_path(averaged, path_of(rule))
        return
    with pytest.raises(ValueError, match=rf"solver\.averaging: expected none, for path\.rule={rule} \(path=grid"):
        check_path(averaged, path_of(rule))


@pytest.mark.parametrize("rule", rules())
def test_boxes__that_are_no_cone_are_for_given_lambdas(rule: str) -> None:
    problem = multiclass(lower=np.full(12, -np.inf), upper=np.full(12, 2.5))
    assert not structure_capabilities(problem).cone
    if rule in GIVEN:
        check_choices(problem, method_options(), path_of(rule))
        return
    with pytest.raises(ValueError, match=r"has upper=2\.5"):
        check_choices(problem, method_options(), path_of(rule))


def test_warm_starts__that_keep_w_are_not_for_eg() -> None:
    check_path(options_of("eg"), path_of("grid"))
    check_path(options_of("eg"), path_of("single", warm_start="keep_primal"))  # which single does not read
    with pytest.raises(ValueError, match=r"path\.warm_start: keep_primal mixes .* as eg needs it"):
        check_path(options_of("eg"), path_of("grid", warm_start="keep_primal"))


def test_marginals__are_needed_by_eg() -> None:
    names = [name for name in TINY if not structure_capabilities(TINY[name]()).marginals]
    assert names
    with pytest.raises(ValueError, match=r"solver\.method: eg sums over all labellings of a block, which \w+ cannot"):
        check_choices(TINY[names[0]](), options_of("eg"), path_of("single"))


def test_rows__each_refuse_something_that_no_other_does() -> None:
    """No row is dead: each has a message of its own for some choice."""
    assert len({row.why for row in REFUSED}) == len(REFUSED)


def test_rules__say_all_that_they_can_in_their_record() -> None:
    assert rules() == ("anytime", "grid", "heuristic", "one_sided", "paper", "single", "two_sided")
    for name in rules():
        assert isinstance(capabilities(name), Capabilities)
        assert hasattr(path_rule(name), "use_product") is capabilities(name).takes_product
    assert {name for name in rules() if not capabilities(name).finds_lambdas} == {*GIVEN}
    assert {name for name in rules() if capabilities(name).certifies_path} == {*rules()} - {*GIVEN, "heuristic"}
    assert steppers() == ("one_sided", "paper")
    with pytest.raises(ValueError, match=r"path\.rule: expected one of anytime, grid, .*, got 'given'"):
        capabilities("given")


def test_heuristic__starts_as_the_rule_whose_steps_it_takes() -> None:
    assert path_of("heuristic").can.starts_exactly
    assert not path_of("heuristic", descend="one_sided").can.starts_exactly
    with pytest.raises(ValueError, match=r"path\.descend: expected one of one_sided, paper, got 'grid'"):
        path_of("heuristic", descend="grid").check()
    with pytest.raises(ValueError, match=r"path\.relative: expected path\.rule=two_sided, got True"):
        path_of("heuristic", relative=True).check()
