"""The work of every path, drawn and counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gapwise.stages.reports.sweep_figures import compare
from gapwise.storage.format import FORMAT_VERSION

ATTRIBUTES = {
    "certainty": "exact", "eps": 0.1, "relative": True, "status": "CONVERGED", "certified": True, "dual_point": True,
    "status_meanings": ["CONVERGED"],
}  # fmt: skip


def test_work__is_drawn_and_counted_for_every_path(tmp_path: Path) -> None:
    import zarr

    runs = []
    for name, passes in (("two", [3.0, 2.0]), ("one", [4.0])):
        group = zarr.open_group(tmp_path / name / "path.zarr", mode="w")
        columns = {"lambda": [0.5, 0.1][: len(passes)], "effective_passes": passes, "seconds": [0.1] * len(passes)}
        columns |= {
            "gap": [0.1] * len(passes),
            "oracle_calls": [int(10 * each) for each in passes],
            "status": [0] * len(passes),
        }
        for column, values in columns.items():
            group.create_array(column, data=np.array(values))
        group.attrs.update({"format_version": FORMAT_VERSION, "rule": "grid", **ATTRIBUTES})
        runs.append((name, "", 0, tmp_path / name))
    comparison = compare("work", runs, tmp_path, ("png", "svg"))
    assert comparison["figures"] == ["work.png"]
    assert [row["passes"] for row in comparison["table"]] == [5.0, 4.0]
    assert (tmp_path / "figures" / "work.png").read_bytes()[:4] == b"\x89PNG"
    drawn = (tmp_path / "figures" / "work.svg").read_text()
    assert "two" in drawn
