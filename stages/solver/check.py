"""Which structures, methods and path rules go together; the table of .github/docs/solver.md says the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapwise.stages.solver.options import MethodOptions, PathOptions, check

if TYPE_CHECKING:  # they import numba
    from gapwise.stages.problems.protocol import Problem


def check_path(options: MethodOptions, path: PathOptions) -> None:
    """Raise ValueError if the method cannot solve along this path or grid, whatever the problem."""
    rule, method = path.can, options.method
    where = f"for path.rule={path.rule} (path=grid|single"
    if rule.finds_lambdas:
        expected = f"one with a dual point, {where} need none)"
        check("solver.method", method, options.certifies, expected)
        check("solver.averaging", options.averaging, options.averaging == "none", f"none, {where} average)")
        if not rule.two_points:
            expected = f"two_sided or anytime, for solver.method={method}: its w is not that of its dual point"
            check("path.rule", path.rule, not options.two_points, expected)


def check_choices(problem: Problem, options: MethodOptions, path: PathOptions) -> None:
    """Raise ValueError for combinations that cannot be solved or certified."""
    from gapwise.stages.problems.capabilities import optional_of
    from gapwise.stages.problems.moves import own_metric
    from gapwise.stages.solver.objective import require_cone

    if optional_of(problem, "decodes_only"):
        raise ValueError(
            "problem: blocks have labels that training lacks, as those of a test split may; they can only be decoded"
        )
    check_path(options, path)
    if own_metric(problem) and not options.any_metric:
        raise ValueError(
            f"solver.method: {options.method} computes with the weights themselves, which a kernel has none of; use bcfw, "
            "accelerated or a multi-plane method"
        )
    if path.can.finds_lambdas:
        require_cone(problem)
    options.check_problem(problem)
