"""Colours and dashes of methods in figures over many runs follow the manifests of the runs, whatever variants are called."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from gapwise.stages.reports.comparison import conclusion
from gapwise.stages.reports.paint import BLUE, GREEN, ORANGE, PALE, SPARE
from gapwise.stages.reports.styles import METHODS, STEPS, method_styles, step_styles
from gapwise.stages.reports.sweep_figures import compare
from gapwise.storage.format import FORMAT_VERSION

PLAIN = {"method": "bcfw", "step": "fw", "sampling": "uniform", "cache": {"kind": "none"}, "averaging": "none"}


def run_of(folder: Path, name: str, **solver: object) -> tuple[str, str, int, Path]:
    (folder / name).mkdir()
    (folder / name / "manifest.json").write_text(json.dumps({"science": {"solver": {**PLAIN, **solver}}}))
    return (name, "0.1", 0, folder / name)


def test_step_styles__show_step_cache_and_sampling(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path, "a"),
        run_of(tmp_path, "b", step="pairwise", sampling="gap", cache={"kind": "gap"}),
        run_of(tmp_path, "c", step="away", sampling="permutation"),
        run_of(tmp_path, "bcfw", method="accelerated"),
        ("without a manifest", "0.1", 0, tmp_path),
    ]
    style = step_styles(runs)
    assert style("a", 5) == {"color": STEPS["fw", "uniform", False], "ls": "--", "lw": 1.8}
    assert style("b", 5) == {"color": STEPS["pairwise", "gap", True], "ls": "-", "lw": 1.8}
    assert style("c", 5) == {"color": PALE, "ls": ":", "lw": 1.0}
    assert style("bcfw", 5) == {"color": METHODS["accelerated"], "ls": "-", "lw": 2.2}, "whatever it is called"
    assert style("without a manifest", 5) == {"color": SPARE[5], "ls": "-", "lw": 1.8}


def test_families__have_four_coloured_lines_and_grey_ones(tmp_path: Path) -> None:
    kinds = itertools.product(("fw", "pairwise", "away", "best"), ("uniform", "gap", "permutation"), ("none", "gap"))
    runs = [
        run_of(tmp_path, f"{step}-{sampling}-{kind}", step=step, sampling=sampling, cache={"kind": kind})
        for step, sampling, kind in kinds
    ]
    colours = [step_styles(runs)(name, number)["color"] for number, (name, *_) in enumerate(runs)]
    assert len({*colours} - {PALE}) == len([colour for colour in colours if colour != PALE]) == 4
    assert len({*METHODS.values()}) == 4


def lightness(colour: str, kind: str) -> np.ndarray:
    """A colour as people see it who lack the cones for red (protan) or green (deutan): Viénot, Brettel, Mollon 1999."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    to_lms = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
    lacks = {
        "protan": [[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]],
        "deutan": [[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]],
    }
    return np.linalg.inv(to_lms) @ np.array(lacks[kind]) @ to_lms @ rgb**2.2


@pytest.mark.parametrize("kind", ["protan", "deutan"])
@pytest.mark.parametrize(
    "colours", [[*METHODS.values()], [*STEPS.values()], [BLUE, ORANGE, GREEN]], ids=["m", "s", "p"]
)
def test_colours__differ_for_the_colour_blind(colours: list[str], kind: str) -> None:
    for one, other in itertools.combinations(colours, 2):
        assert np.abs(lightness(one, kind) - lightness(other, kind)).max() > 0.05, (one, other)


def test_conclusion__names_who_needs_least_to_the_smallest_level_that_is_reached() -> None:
    table = [
        {"variant": "a_gap", "lambda": "1", "n_to_0.1": 3.0, "n_to_0.01": 9.0},
        {"variant": "b", "lambda": "1", "n_to_0.1": 2.0, "n_to_0.01": 10.0},
        {"variant": "a_gap", "lambda": "2", "n_to_0.1": 3.0, "n_to_0.01": 4.0},
        {"variant": "b", "lambda": "2", "n_to_0.1": 1.0, "n_to_0.01": np.inf},
    ]
    assert conclusion(table, {"calls": "n_to_{}"}, (0.1, 0.01)) == (
        "To an accuracy of 0.01: fewest calls with a gap at 2 of 2 λ's"
    )
    table[2]["n_to_0.01"] = np.inf
    assert conclusion(table, {"calls": "n_to_{}"}, (0.1, 0.01)) == (
        "To an accuracy of 0.1: fewest calls with b at 2 of 2 λ's"
    )


def test_method_styles__show_method_and_variant(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path, "a", step="pairwise"),
        run_of(tmp_path, "b", method="ssg", averaging="weighted"),
        run_of(tmp_path, "c", method="cutting_plane_nslack"),
        run_of(tmp_path, "d", method="accelerated_at_mean"),
    ]
    style = method_styles(runs)
    assert style("a", 0) == {"color": METHODS["bcfw pairwise"], "ls": "-", "lw": 1.8}
    assert style("b", 0) == {"color": METHODS["ssg"], "ls": "--", "lw": 1.8}
    assert style("c", 0) == {"color": PALE, "ls": "--", "lw": 1.0}
    assert style("d", 2)["color"] == PALE


def test_work__is_drawn_and_counted_for_every_path(tmp_path: Path) -> None:
    import zarr

    runs = []
    for name, passes in (("two", [3.0, 2.0]), ("one", [4.0])):
        group = zarr.open_group(tmp_path / name / "path.zarr", mode="w")
        columns = {"lambda": [0.5, 0.1][: len(passes)], "effective_passes": passes, "seconds": [0.1] * len(passes)}
        for column, values in columns.items():
            group.create_array(column, data=np.array(values))
        group.attrs.update({"format_version": FORMAT_VERSION, "rule": "grid"})
        runs.append((name, "", 0, tmp_path / name))
    comparison = compare("work", runs, tmp_path, ("png", "svg"))
    assert comparison["figures"] == ["work.png"]
    assert [row["passes"] for row in comparison["table"]] == [5.0, 4.0]
    assert (tmp_path / "figures" / "work.png").read_bytes()[:4] == b"\x89PNG"
    drawn = (tmp_path / "figures" / "work.svg").read_text()
    assert all(f">{name}</text>" in drawn for name in ("two", "one"))
