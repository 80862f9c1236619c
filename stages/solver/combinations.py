"""Which structures, methods and path rules go together: one table, which checks choices and is the documentation.

Each row says which choices it is about, by their capabilities, and refuses them with a message that names the key.
`markdown` makes the table of .github/docs/solver.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gapwise.stages.solver.capabilities import MethodCapabilities, StructureCapabilities
from gapwise.stages.solver.methods import method_options, methods
from gapwise.stages.solver.options import MethodOptions, PathOptions
from gapwise.stages.solver.path.capabilities import Capabilities
from gapwise.stages.solver.path.rules import capabilities, rules

if TYPE_CHECKING:
    from gapwise.stages.problems.protocol import Problem


@dataclass(frozen=True)
class Choice:
    """What was chosen."""

    options: MethodOptions
    path: PathOptions
    problem: Problem | None = None
    """None where only the configuration is known."""


@dataclass(frozen=True)
class Refused:
    """One combination that is refused: all three predicates hold, and `also`."""

    method: Callable[[MethodCapabilities], bool]
    rule: Callable[[Capabilities], bool]
    structure: Callable[[StructureCapabilities], bool] | None
    """None: whatever the structure is; the row can be checked without a problem."""
    says: Callable[[Choice], str]
    """The error message; it names the key."""
    why: str
    """The reason, for the documentation."""
    methods: str = ""
    """Which methods, in words; "" lists those with the capability."""
    structures: str = "any"
    """Which structures, in words."""
    also: Callable[[Choice], bool] = lambda choice: True


def _expected(key: str, expected: str, got: object) -> str:
    return f"{key}: expected {expected}, got {got!r}"


def _where(choice: Choice) -> str:
    return f"for path.rule={choice.path.rule} (path=grid|single"


def _type(choice: Choice) -> str:
    return type(choice.problem).__name__


def _bounds(choice: Choice) -> str:
    from gapwise.stages.solver.objective import require_cone

    assert choice.problem is not None
    try:
        require_cone(choice.problem)
    except ValueError as error:
        return str(error)
    raise AssertionError("the bounds form a cone")


REFUSED = (
    Refused(
        method=lambda m: not m.certifies,
        rule=lambda r: r.finds_lambdas,
        structure=None,
        says=lambda c: _expected("solver.method", f"one with a dual point, {_where(c)} need none)", c.options.method),
        why="a path needs a dual point to certify its λ's",
    ),
    Refused(
        method=lambda m: m.averaging != "none",
        rule=lambda r: r.finds_lambdas,
        structure=None,
        says=lambda c: _expected("solver.averaging", f"none, {_where(c)} average)", c.options.capabilities.averaging),
        why="an average is not w(α), from which the λ's around it are certified",
        methods="any, with `solver.averaging`",
    ),
    Refused(
        method=lambda m: not m.one_point,
        rule=lambda r: r.finds_lambdas and not r.two_points,
        structure=None,
        says=lambda c: _expected(
            "path.rule",
            f"two_sided, for solver.method={c.options.method}: its w is not that of its dual point",
            c.path.rule,
        ),
        why="w is not w(α), and the rule's certificates need that it is",
    ),
    Refused(
        method=lambda m: not m.any_metric,
        rule=lambda r: True,
        structure=lambda s: s.own_metric,
        says=lambda c: (
            f"solver.method: {c.options.method} computes with the weights themselves, which a kernel has none of; use bcfw, "
            "accelerated or a multi-plane method"
        ),
        why="the method computes with the weights themselves",
        structures="with a kernel",
    ),
    Refused(
        method=lambda m: True,
        rule=lambda r: r.finds_lambdas and r.between and not r.takes_product,
        structure=lambda s: s.own_metric,
        says=lambda c: (
            f"path.rule: {c.path.rule} mixes solved points and has no `product` for the inner products of their weights, "
            "which the numbers themselves do not give with a kernel; use path.rule=two_sided or one_sided, path=grid or "
            "path=single"
        ),
        why="the rule mixes solved points by the numbers of their weights",
        structures="with a kernel",
    ),
    Refused(
        method=lambda m: True,
        rule=lambda r: r.finds_lambdas,
        structure=lambda s: not s.cone,
        says=_bounds,
        why="certificates of other λ's scale w, so the box has to be a cone",
        structures="with a bound that is neither 0 nor infinite",
    ),
)
"""Every combination that is refused; the first that applies is reported."""


def check_path(options: MethodOptions, path: PathOptions) -> None:
    """Raise ValueError if the method cannot solve along this path or grid, whatever the problem."""
    _check(Choice(options, path), None)


def check_choices(problem: Problem, options: MethodOptions, path: PathOptions) -> None:
    """Raise ValueError for combinations that cannot be solved or certified."""
    from gapwise.stages.problems.capabilities import traits_of

    if traits_of(problem).decodes_only:
        raise ValueError(
            "problem: its blocks are not for training (a test or validation split); they can only be decoded"
        )
    _check(Choice(options, path, problem), structure_capabilities(problem))
    options.check_problem(problem)


def structure_capabilities(problem: Problem) -> StructureCapabilities:
    """What the structure of a problem offers."""
    from gapwise.stages.problems.metric import own_metric
    from gapwise.stages.solver.objective import require_cone

    try:
        require_cone(problem)
        cone = True
    except ValueError:
        cone = False
    return StructureCapabilities(own_metric(problem), cone)


def _check(choice: Choice, structure: StructureCapabilities | None) -> None:
    method, rule = choice.options.capabilities, choice.path.can
    for row in REFUSED:
        if row.structure is not None and (structure is None or not row.structure(structure)):
            continue
        if row.method(method) and row.rule(rule) and row.also(choice):
            raise ValueError(row.says(choice))


def markdown() -> list[str]:
    """The table in Markdown: which methods, with which rules, on which structures, and why not."""
    lines = ["| `solver.method` | `path.rule` | structure | refused, because |", "|---|---|---|---|"]
    known = {name: method_options(method=name).capabilities for name in methods()}
    able = {name: capabilities(name) for name in rules()}
    for row in REFUSED:
        who = row.methods or _names([name for name, can in known.items() if row.method(can)], len(known))
        where = _names([name for name, can in able.items() if row.rule(can)], len(able))
        lines.append(f"| {who} | {where} | {row.structures} | {row.why} |")
    return lines


def _names(names: list[str], of: int) -> str:
    """Names as code; "any" for all of them, and what a rule of one's own may come to for none."""
    if len(names) == of:
        return "any"
    return ", ".join(f"`{name}`" for name in names) or "none of these; one of your own"
