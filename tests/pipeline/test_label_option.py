"""`dataset.label`: names runs and MLflow's experiment, and enters no key."""

from __future__ import annotations

from pathlib import Path

import pytest
from configs import composed

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import read
from gapwise.pipeline.overview.run_state import run_state
from gapwise.pipeline.run import locations
from gapwise.pipeline.rundir import read_json
from gapwise.pipeline.tracking.names import experiment_of


def test_label__names_the_run_everywhere_and_changes_no_key(tmp_path: Path) -> None:
    words = ("dataset=ocr", "dataset.root=x", f"run.root={tmp_path}")
    plain, named = (read(composed(*words, *more)) for more in ((), ("dataset.label=receipts",)))
    assert (named.science, named.dataset) == (plain.science, plain.dataset)
    (ours, features, key), (theirs, same, other) = (locations(settings, {}) for settings in (named, plain))
    assert ours.path.name == f"receipts-bcpfw_gap_cache-{theirs.key[:8]}"
    assert (features, key) == (same, other)  # features are shared
    ours.prepare(named, {})
    manifest = read_json(ours.path / "manifest.json", seal=True)
    assert run_state(ours.path).facts()["dataset"] == "receipts"
    assert experiment_of(manifest["science"], manifest["label"]) == "receipts-path"
    with pytest.raises(ConfigError, match=r"^dataset\.label: expected a name for directories"):
        read(composed(*words, "dataset.label=a/b"))
