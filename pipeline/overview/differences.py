"""What two runs were asked differently, and what came out differently."""

from __future__ import annotations

from collections.abc import Mapping

from gapwise.pipeline.overview.standing import Standing

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


def asked(at: Standing) -> dict[str, object]:
    """The keys of the configuration that make the run's key, and its data."""
    data = {f"data.{name}": value for name, value in flat(at.manifest.get("source", {})).items()}
    return {**flat(at.manifest.get("science", {})), **data}


def made(at: Standing) -> dict[str, object]:
    """Machine and versions, which are not part of the key."""
    kept = {name: at.manifest.get(name) for name in ("solver", "host", "python")}
    return {**kept, **flat(at.manifest.get("versions", {}))}


def results(at: Standing) -> dict[str, object]:
    """Every single number and word of result.json that is no cost, and how many lambdas there are."""
    found = at.result or {}
    single: dict[str, object] = {
        "state": at.state,
        "status": at.solved,
        "lambdas": len(found["path"]) if "path" in found else MISSING,
    }
    for part in ("verify", "evaluate"):
        single |= {f"{part}.{name}": value for name, value in found.get(part, {}).items()}
    if "evaluate.best_lambda" in single:
        single.setdefault(PICKED_ON, "test")
    return single


def cost(at: Standing) -> dict[str, object]:
    """Passes, oracle calls and seconds of the whole path, and seconds of the stages."""
    path = (at.result or {}).get("path", [])
    total = {name: sum(record[name] for record in path) for name in COST} if path else {}
    return total | {f"{name} seconds": facts.get("seconds") for name, facts in at.stages.items()}


def _between(a: Standing, b: Standing) -> Pairs:
    """Of two paths over as many lambdas: at how many of them each number differs, and where first."""
    one, other = ((at.result or {}).get("path", []) for at in (a, b))
    found: Pairs = {}
    if one and len(one) == len(other):
        for name in VALUES:
            differ = [k for k, (x, y) in enumerate(zip(one, other, strict=True)) if x[name] != y[name]]
            if differ:
                first = differ[0]
                words = f"path {name}: {len(differ)} of {len(one)} differ, first at λ {first + 1}"
                found[words] = (one[first][name], other[first][name])
    return found


def _differ(one: Mapping[str, object], other: Mapping[str, object]) -> Pairs:
    names = [*one, *(name for name in other if name not in one)]
    return {name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)}


def flat(value: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested mappings as one, with dotted keys."""
    out: dict[str, object] = {}
    for name, item in value.items():
        out.update(flat(item, f"{prefix}{name}.") if isinstance(item, Mapping) else {f"{prefix}{name}": item})
    return out
