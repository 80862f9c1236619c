"""What DVC composes from conf/for_dvc.yaml, and metrics that name the split on which lambda was picked."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from gapwise.pipeline.config.settings import CONF
from gapwise.pipeline.overview.differences import flat
from gapwise.pipeline.stage_graph.evaluate import by_split

ROOT = Path(__file__).resolve().parents[2]
PICKED = {"best_lambda": 0.1, "best_breakpoint": 2, "train_loss": 0.2, "test_loss": 0.3, "all_zero_test_loss": 0.9}
VALIDATED = {
    **PICKED, "validation_loss": 0.25, "picked_on": "validation", "validation_blocks": 12, "one_se_lambda": 0.5,
    "hindsight_lambda": 0.05, "hindsight_test_loss": 0.28,
}  # fmt: skip


def dvc_composes(*words: str) -> dict[str, object]:
    """Values by dotted key, as `dvc exp run -S WORD …` writes them to params.yaml."""
    asked = configparser.ConfigParser()
    asked.read_string("\n".join(line.strip() for line in (ROOT / ".dvc" / "config").read_text().splitlines()))
    assert ROOT / asked["hydra"]["config_dir"] == CONF
    with initialize_config_dir(str(CONF), version_base=None):
        cfg = compose(asked["hydra"]["config_name"], list(words))
    composed: Any = OmegaConf.to_container(cfg, resolve=True)
    return flat(composed)


@pytest.fixture(autouse=True)
def no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAPWISE_RUNS", raising=False)


def committed() -> dict[str, object]:
    params: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "params.yaml"))
    return flat(params)


@pytest.mark.parametrize("word", ["path.eps=0.2", "seed=7", "dataset.n_train=8"])
def test_set_param__changes_one_value(word: str) -> None:
    before, after = committed(), dvc_composes(word)
    assert dvc_composes() == before
    assert after.keys() == before.keys()
    assert [key for key in before if before[key] != after[key]] == [word.split("=")[0]]


def test_set_param__chooses_another_experiment_or_none() -> None:
    ocr, none = dvc_composes("experiment=regpath_ocr"), dvc_composes("~experiment")
    assert (ocr["dataset.name"], ocr["dataset.validation"]) == ("ocr", None)
    assert (none["dataset.name"], none["dataset.validation"]) == ("horses_sample", None)


def test_conf__has_no_file_that_dvc_takes_for_a_pipeline() -> None:
    assert not list(CONF.rglob("dvc.yaml"))


def test_by_split__gives_numbers_of_two_protocols_different_names() -> None:
    test, validated = (flat(by_split(metrics)) for metrics in (PICKED, VALIDATED))
    assert test["picked_on_test.test_loss"] == 0.3
    assert validated["picked_on_validation.test_loss"] == 0.3
    assert validated["picked_on_test.test_loss"] == 0.28  # of the lambda that the other protocol picks
    assert validated["picked_on_test.best_lambda"] == 0.05
    shared = test.keys() & validated.keys()
    assert shared == {"picked_on_test.best_lambda", "picked_on_test.test_loss", "all_zero_test_loss"}
    assert sorted(map(str, flat(by_split(VALIDATED)).values())) == sorted(
        str(value) for name, value in VALIDATED.items() if name != "picked_on"
    )
