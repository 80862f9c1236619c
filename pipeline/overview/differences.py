"""What two runs were asked differently, and what came out differently."""

from __future__ import annotations

from collections.abc import Mapping

from gapwise.pipeline.overview.standing import Standing
from gapwise.records import flat

Pairs = dict[str, tuple[object, object]]
COST = ("effective_passes", "oracle_calls", "seconds")
VALUES = ("lambda", "gap", "primal", "dual")
MISSING = None
PICKED_ON = "evaluate.picked_on"
"""Result that names the split on which the best lambda was picked."""


def differences(a: Standing, b: Standing) -> dict[str, Pairs]:
    """The values that differ, in pairs: `configuration` (all that makes a run's key), `made` (versions, machine),
    `results` and `cost`; what one of the runs lacks is None.
    """
    return {
        "configuration": _differ(asked(a), asked(b)),
        "made": _differ(made(a), made(b)),
        "results": _differ(results(a), results(b)) | _between(a, b),
        "cost": _differ(cost(a), cost(b)),
    }


def asked(run: Standing) -> dict[str, object]:
    """The keys of the configuration that make the run's key, and its data."""
    data = {f"data.{name}": value for name, value in flat(run.manifest.get("source", {})).items()}
    return {**flat(run.manifest.get("science", {})), **data}


def made(run: Standing) -> dict[str, object]:
    """Machine and versions, which are not part of the key."""
    facts = {name: run.manifest.get(name) for name in ("solver", "host", "python")}
    return {**facts, **flat(run.manifest.get("versions", {}))}


def results(run: Standing) -> dict[str, object]:
    """Every single number and word of result.json that is no cost, and how many lambdas there are."""
    result = run.result or {}
    single: dict[str, object] = {
        "state": run.state,
        "status": run.solved,
        "lambdas": len(result["path"]) if "path" in result else MISSING,
    }
    for part in ("verify", "evaluate", "refit"):
        values = result.get(part, {})
        single |= {f"{part}.{name}": value for name, value in values.items() if not isinstance(value, Mapping)}
    if "evaluate.best_lambda" in single:
        single.setdefault(PICKED_ON, "test")
    return single


def cost(run: Standing) -> dict[str, object]:
    """Passes, oracle calls and seconds of the whole path, and seconds of the stages."""
    path = (run.result or {}).get("path", [])
    total = {name: sum(record[name] for record in path) for name in COST} if path else {}
    return total | {f"{name} seconds": facts.get("seconds") for name, facts in run.stages.items()}


def _between(a: Standing, b: Standing) -> Pairs:
    """Of two paths over as many lambdas: at how many of them each number differs, and where first."""
    left, right = ((run.result or {}).get("path", []) for run in (a, b))
    pairs: Pairs = {}
    if left and len(left) == len(right):
        for name in VALUES:
            differ = [k for k, (x, y) in enumerate(zip(left, right, strict=True)) if x[name] != y[name]]
            if differ:
                first = differ[0]
                words = f"path {name}: {len(differ)} of {len(left)} differ, first at λ {first + 1}"
                pairs[words] = (left[first][name], right[first][name])
    return pairs


def _differ(left: Mapping[str, object], right: Mapping[str, object]) -> Pairs:
    names = [*left, *(name for name in right if name not in left)]
    return {name: (left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)}
