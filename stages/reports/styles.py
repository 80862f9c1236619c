"""Colour and dash of a method in figures over many runs: by the settings of its runs, not by its name."""

from __future__ import annotations

from collections.abc import Mapping

from gapwise.stages.reports.curves import Runs
from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE, PALE, SKY, SPARE, Style, StyleOf
from gapwise.storage.backend import Location
from gapwise.storage.files import read_json

STEPS = {
    ("fw", "uniform", False): SKY, ("fw", "gap", False): BLUE, ("pairwise", "gap", False): ORANGE,
    ("pairwise", "gap", True): GREEN,
}  # fmt: skip
"""The four coloured among BCFW's variants, by step, sampling and whether they have a cache; the others are grey."""
SAMPLERS = {"gap": "-", "permutation": ":"}
"""Dashes by how blocks are sampled; others --."""
METHODS = {"accelerated": "#000000", "bcfw": BLUE, "bcfw pairwise": ORANGE, "ssg": GREEN}
"""The four coloured where all methods are compared; the others are grey."""
DASHES: dict[str, str | tuple[int, tuple[int, ...]]] = {
    "cutting_plane": "-.",
    "bcfw_nols": ":",
    "eg": ":",
    "mpbcfw": (0, (3, 1, 1, 1)),
}


def step_styles(runs: Runs) -> StyleOf:
    """Among BCFW's variants: four have a colour, the others are grey; the dash shows how blocks are sampled."""
    solvers = _solvers(runs)

    def style(variant: str, number: int) -> Style:
        solver = solvers.get(variant, {})
        if solver.get("method") == "accelerated":
            return {"color": METHODS["accelerated"], "ls": "-", "lw": 2.2}
        sampling = str(solver.get("sampling", "gap"))
        colour = _spare(number)
        if solver.get("method") == "bcfw":
            colour = STEPS.get((str(solver.get("step")), sampling, _cached(solver)), PALE)
        return {"color": colour, "ls": SAMPLERS.get(sampling, "--"), "lw": 1.0 if colour == PALE else 1.8}

    return style


def method_styles(runs: Runs) -> StyleOf:
    """Among all methods: four have a colour, the others are grey; the dash shows the variant."""
    solvers = _solvers(runs)

    def style(variant: str, number: int) -> Style:
        solver = solvers.get(variant, {})
        method = str(solver.get("method", ""))
        pairwise = method in ("bcfw", "mpbcfw") and solver.get("step") == "pairwise"
        colour = METHODS.get(f"{method} pairwise" if pairwise else method, PALE if method else _spare(number))
        dash = "--" if solver.get("averaging", "none") != "none" else DASHES.get(method, "-")
        return {"color": colour, "ls": dash, "lw": 1.0 if colour == PALE else 1.8}

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
