"""Colours and dashes of methods in figures over many runs follow the manifests of the runs, whatever variants are called."""

from __future__ import annotations

import json
from pathlib import Path

from gapwise.stages.reports.paint import SPARE
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
    assert style("a", 5) == {"color": STEPS["fw", False], "ls": "--"}
    assert style("b", 5) == {"color": STEPS["pairwise", True], "ls": "-"}
    assert style("c", 5) == {"color": STEPS["away", False], "ls": ":"}
    assert style("bcfw", 5) == {"color": METHODS["accelerated"], "ls": "-"}, "whatever it is called"
    assert style("without a manifest", 5) == {"color": SPARE[5], "ls": "-"}


def test_method_styles__show_method_and_variant(tmp_path: Path) -> None:
    runs = [
        run_of(tmp_path, "a", step="pairwise"),
        run_of(tmp_path, "b", method="ssg", averaging="weighted"),
        run_of(tmp_path, "c", method="cutting_plane_nslack"),
        run_of(tmp_path, "d", method="accelerated_at_mean"),
    ]
    style = method_styles(runs)
    assert style("a", 0) == {"color": METHODS["bcfw pairwise"], "ls": "-", "lw": 1.3}
    assert style("b", 0) == {"color": METHODS["ssg"], "ls": "--", "lw": 1.3}
    assert style("c", 0) == {"color": METHODS["cutting_plane"], "ls": "--", "lw": 1.3}
    assert style("d", 2)["color"] == SPARE[2]


def test_work__is_drawn_and_counted_for_every_path(tmp_path: Path) -> None:
    import numpy as np
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
