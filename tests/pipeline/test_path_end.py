"""`path.end=loss_rises`: a run ends its path where the loss on validation blocks has clearly risen, and says so."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from in_process import Here, issued

from gapwise.pipeline.config.run_options import ConfigError
from gapwise.pipeline.config.settings import read
from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.rundir import read_json
from gapwise.stages.certify.audit import CertificateError
from gapwise.stages.featurize import open_problem
from gapwise.stages.verify import verify
from gapwise.storage.results import read_path

WORDS = ("dataset=multiclass_arrays", "compute=serial", "tracking=none", "path.eps=0.02", "dataset.validation=0.5")
RISES = "path.end=loss_rises"
OWN = ("dataset=multiclass_arrays", "dataset.file=x", "dataset.validation=0.2")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two classes that one number tells apart, but for wrong labels, which small lambdas learn by 38 others."""
    rng, file = np.random.default_rng(3), tmp_path_factory.mktemp("data") / "own.npz"
    y = {"y_train": rng.integers(2, size=200), "y_test": rng.integers(2, size=20)}
    size = np.r_[np.ones(2), np.full(38, 0.5)]
    x = {f"x{name[1:]}": size * (rng.normal(size=(k.size, 40)) + 2.0 * np.eye(2, 40)[k]) for name, k in y.items()}
    y["y_train"] = np.where(rng.random(200) < 0.1, 1 - y["y_train"], y["y_train"])
    np.savez(file, **x, **y)
    return f"dataset.file={file}"


@pytest.fixture(scope="module")
def ended(data: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return issued(tmp_path_factory.mktemp("rises"), *WORDS, data, RISES)


def test_run__ends_where_the_validation_loss_has_risen(ended: tuple[Path, str], data: str, tmp_path: Path) -> None:
    (run, said), (whole, _) = ended, issued(tmp_path, *WORDS, data)
    arrays, attrs = read_path(run / "path.zarr")
    every, of_whole = read_path(whole / "path.zarr")
    solved = arrays["lambda"].size
    assert solved < every["lambda"].size
    assert (attrs["status"], attrs["end"]) == ("LOSS_RISES", "loss_rises")
    assert (of_whole["status"], "end" in of_whole) == ("CONVERGED", False)
    assert arrays["weights"].tobytes() == every["weights"][:solved].tobytes()
    assert arrays["cell_low"][-1] == arrays["lambda"][-1]
    words = "below, the loss on held-out blocks had clearly risen"
    assert words in said
    assert " had clearly risen" in (run / "report.html").read_text(), "there, terms in between are explained"
    assert words in read_json(run / "verify.json")["verdict"]["words"]
    result = read_json(run / "result.json", seal=True)
    assert (result["verdict"]["certified"], result["verdict"]["lam_low"]) == (True, arrays["lambda"][-1])
    assert result["evaluate"]["best_lambda"] == read_json(whole / "metrics.json")["best_lambda"]
    assert result["refit"]["verdict"]["certified"]


def test_killed_run__ends_at_the_same_lambda_with_the_same_bits(
    ended: tuple[Path, str], data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    often = (RISES, "solver.rebase_steps=200")
    with monkeypatch.context() as patch:
        asked = itertools.count()
        patch.setattr(Stop, "__call__", lambda self: next(asked) > 40)
        patch.setattr(Stop, "signal", 2, raising=False)
        assert Here(tmp_path / "killed", (*WORDS, data)).issue(*often).code == 130
    (run, _), (other, _) = (issued(tmp_path / name, *WORDS, data, *often) for name in ("killed", "whole"))
    ours, theirs = (read_path(some / "path.zarr") for some in (run, other))
    assert ours[1]["status"] == theirs[1]["status"] == "LOSS_RISES"
    assert {name: values.tobytes() for name, values in ours[0].items() if name != "seconds"} == {
        name: values.tobytes() for name, values in theirs[0].items() if name != "seconds"
    }


def test_verify__refuses_this_end_where_it_was_not_asked_for(ended: tuple[Path, str], tmp_path: Path) -> None:
    run, _ = ended
    shutil.copytree(run / "path.zarr", tmp_path / "path.zarr")
    problem = open_problem(Path(read_json(run / "manifest.json")["stages"]["featurize"]["path"]), "train")
    assert verify(problem, tmp_path)["verdict"]["certified"]
    file = tmp_path / "path.zarr" / "zarr.json"
    meta = json.loads(file.read_text())
    del meta["attributes"]["end"]
    file.write_text(json.dumps(meta))
    with pytest.raises(CertificateError, match=r"which path\.end does not ask for"):
        verify(problem, tmp_path)


def test_end__is_in_the_key_unless_it_is_the_whole_path() -> None:
    key = read(composed(*OWN)).run_key({})
    assert read(composed(*OWN, "path.end=whole")).run_key({}) == key
    assert read(composed(*OWN, RISES)).run_key({}) != key


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (OWN[:2], "give dataset.validation=0.2, and no folds"),
        ((*OWN, "run.criterion=error_rate"), "looks at the loss, and run.criterion=error_rate may still gain below"),
        ((*OWN, "path.rule=anytime"), "expected whole, as path.rule=anytime may be stopped anywhere, got 'loss_rises'"),
    ],
)
def test_end__is_refused_where_no_loss_could_end_it(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=r"^path\.end: ") as error:
        read(composed(*words, RISES))
    assert said in str(error.value)
