"""`dataset.label`: names runs and MLflow's experiment, and enters no key."""

from __future__ import annotations

from pathlib import Path

import pytest
from configs import composed

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import read
from gapwise.pipeline.overview.standing import standing
from gapwise.pipeline.run import locations
from gapwise.pipeline.rundir import read_json
from gapwise.pipeline.tracking.names import dataset_of, experiment_of

WORDS = ("dataset=ocr", "dataset.root=x", "run.root=runs")


def test_label__names_the_run_and_changes_no_key() -> None:
    plain, named = (read(composed(*WORDS, *more)) for more in ((), ("dataset.label=receipts",)))
    assert named.science == plain.science
    assert named.dataset == plain.dataset
    (ours, features, key), (theirs, same, other) = (locations(settings, {}) for settings in (named, plain))
    assert ours.path.name == f"receipts-bcpfw_gap_cache-{theirs.key[:8]}"
    assert (features, key) == (same, other)  # features are shared


def test_label__stands_in_ls_and_in_the_experiment(tmp_path: Path) -> None:
    settings = read(composed(*WORDS[:2], f"run.root={tmp_path}", "dataset.label=receipts"))
    directory, _, _ = locations(settings, {})
    directory.prepare(settings, {})
    manifest = read_json(directory.path / "manifest.json", seal=True)
    assert manifest is not None
    assert standing(directory.path).facts()["dataset"] == "receipts"
    assert experiment_of(manifest["science"], manifest["label"]) == "receipts-path"
    assert experiment_of(manifest["science"]) == "ocr-small-path"
    assert dataset_of(manifest, 1, 1)["name"] == "receipts"


@pytest.mark.parametrize("label", ["a/b", "'two words'", "''", "3"])
def test_label__must_be_a_name_for_a_directory(label: str) -> None:
    with pytest.raises(ConfigError, match=r"^dataset\.label: expected a name for directories"):
        read(composed(*WORDS, f"dataset.label={label}"))
