"""Colour and dash of a method in figures over many runs: by the settings of its runs, not by its name."""

from __future__ import annotations

from collections.abc import Mapping

from gapwise.stages.reports.curves import Runs
from gapwise.stages.reports.paint import BLUE, GREEN, GREY, ORANGE, SPARE, Style, StyleOf
from gapwise.storage.backend import Location
from gapwise.storage.files import read_json

STEPS = {
    ("fw", False): BLUE, ("fw", True): "#4fd1c5", ("pairwise", False): "#c53030", ("pairwise", True): "#f6ad55",
    ("away", False): "#805ad5", ("best", False): GREEN,
}  # fmt: skip
"""Colours of BCFW by its step and whether it has a cache."""
SAMPLERS = {"gap": "-", "permutation": ":"}
"""Dashes by how blocks are sampled; others --."""
METHODS = {
    "fw": GREY, "bcfw": BLUE, "bcfw pairwise": ORANGE, "bcfw_nols": BLUE, "mpbcfw": "#00a3c4", "accelerated": "#000000",
    "ssg": GREEN, "cutting_plane": "#c53030", "cutting_plane_nslack": "#c53030", "eg": "#805ad5", "fasole": "#b7791f",
}  # fmt: skip
"""Colours where all methods are compared."""
DASHES = {"cutting_plane_nslack": "--", "bcfw_nols": ":"}


def step_styles(runs: Runs) -> StyleOf:
    """Among BCFW's variants: the colour shows step and cache, the dash how blocks are sampled."""
    solvers = _solvers(runs)

    def style(variant: str, number: int) -> Style:
        solver = solvers.get(variant, {})
        if solver.get("method") == "accelerated":
            return {"color": METHODS["accelerated"], "ls": "-"}
        colour = None
        if solver.get("method") == "bcfw":
            colour = STEPS.get((str(solver.get("step")), _cached(solver)))
        return {"color": colour or _spare(number), "ls": SAMPLERS.get(str(solver.get("sampling", "gap")), "--")}

    return style


def method_styles(runs: Runs) -> StyleOf:
    """Among all methods: the colour shows the method, the dash its variant."""
    solvers = _solvers(runs)

    def style(variant: str, number: int) -> Style:
        solver = solvers.get(variant, {})
        method = str(solver.get("method", ""))
        pairwise = method in ("bcfw", "mpbcfw") and solver.get("step") == "pairwise"
        colour = METHODS.get(f"{method} pairwise" if pairwise else method, _spare(number))
        dash = "--" if solver.get("averaging", "none") != "none" else DASHES.get(method, "-")
        return {"color": colour, "ls": dash, "lw": 2.2 if method == "accelerated" else 1.3}

    return style


def _spare(number: int) -> str:
    return SPARE[number % len(SPARE)]


def _cached(solver: Mapping[str, object]) -> bool:
    cache = solver.get("cache")
    return isinstance(cache, Mapping) and cache.get("kind") != "none"


def _solvers(runs: Runs) -> dict[str, Mapping[str, object]]:
    """The group `solver` of each variant's configuration; a run without a manifest has none."""
    return {variant: _solver(run_dir) for variant, _, _, run_dir in runs}


def _solver(run_dir: Location) -> Mapping[str, object]:
    file = run_dir / "manifest.json"
    manifest = read_json(file) if file.is_file() else None
    science = manifest.get("science", {}) if isinstance(manifest, Mapping) else {}
    solver = science.get("solver", {}) if isinstance(science, Mapping) else {}
    return solver if isinstance(solver, Mapping) else {}
