"""Commands predict and export: the labels that evaluate found, for six kinds of data, also without the run."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import predict_runs
import pytest
from harms import flip
from waiting import python

from gapwise.pipeline.cli import carry_out
from gapwise.stages.model.calibrate import calibration_of
from gapwise.stages.model.folders import load_model, save_model
from gapwise.stages.model.from_run import features_of_run, model_of
from gapwise.stages.model.model import Model
from gapwise.stages.problems import build
from gapwise.storage.paths import open_path

KINDS = ("chain", "multiclass", "pictures", "oracle", "ranking")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predict")
    predict_runs.make(folder)
    return folder


def run_of(made: Path, kind: str) -> Path:
    (run,) = (path.parent for path in (made / "runs" / kind).glob("*/manifest.json"))
    return run


@pytest.mark.parametrize("kind", KINDS)
def test_predict__of_raw_test_input_gives_the_labels_of_evaluate(made, kind):
    with np.load(made / f"{kind}-labels.npz") as predicted, np.load(run_of(made, kind) / "predictions.npz") as expected:
        for name in ("labels", "label_ptr"):
            assert predicted[name].dtype == expected[name].dtype
            assert np.array_equal(predicted[name], expected[name]), name


def test_probabilities__are_fitted_on_the_validation_split_by_the_model_without_it(made):
    shown = (made / "held-margins").read_text()
    assert shown == (made / "held-exported-margins").read_text()
    run, model = run_of(made, "held"), load_model(made / "held.gapwise")
    features = features_of_run(run)
    problem = build("chain", features.arrays("validation"), features.meta)
    w = open_path(run).weights_at(model.lambda_).values
    everything = np.ones(problem.truth.size, bool)
    expected = calibration_of(problem, w, "isotonic", f"the validation split of {run.name}", everything)
    assert model.calibration == expected
    assert not np.array_equal(w, model.weights)  # these are of all blocks
    for line in filter(None, shown.splitlines()):
        margin, probability = map(float, line.split(" ")[-2:])
        assert probability == pytest.approx(expected(np.array([margin]))[0], abs=1e-3)


def test_predict__tags_text_as_the_run_does_with_labels_or_without_in_one_file_or_two(made):
    tagged = (run_of(made, "chain") / "predictions" / "predicted.txt").read_text(encoding="utf-8")
    assert "élan" in tagged
    for name in ("chain", "joined", "exported"):
        assert (made / f"{name}-shown").read_text(encoding="utf-8") == tagged
    lines = [line.split(" ") for line in tagged.splitlines()]
    bare = [" ".join([*line[:2], line[3]]) if line != [""] else "" for line in lines]
    assert (made / "bare-shown").read_text(encoding="utf-8").splitlines() == bare


def test_evaluate__of_the_test_file_gives_the_measures_of_the_run(made, capsys):
    run = run_of(made, "chain")
    assert carry_out(["evaluate", str(run), str(made / "test.txt"), "--json"]) == 0
    said, metrics = (json.loads(text) for text in (capsys.readouterr().out, (run / "metrics.json").read_text()))
    assert said["loss"] == metrics["test_loss"]
    assert {f"test_{name}": value for name, value in said["metrics"].items()}.items() <= metrics.items()
    assert said["labels"] == json.loads((run / "predictions" / "labels.json").read_text())["labels"]


def test_predict__masks_have_labels_as_values_and_the_size_of_the_picture(made):
    from PIL import Image

    run = run_of(made, "pictures")
    with np.load(run / "predictions.npz") as stored:
        labels, ptr = stored["labels"], stored["label_ptr"]
    (store,) = (made / "runs" / "pictures" / "features").glob("horses_sample-*/test")
    regions, edges = np.load(store / "superpixel_map.npy"), np.load(store / "superpixel_map_ptr.npy")
    for i in range(6):
        with Image.open(made / "pictures-shown" / f"{i:03d}.png") as mask:
            assert mask.mode == "P"
            pixels = np.asarray(mask)
        expected = labels[ptr[i] : ptr[i + 1]][regions[edges[i] : edges[i + 1]]]
        assert np.array_equal(pixels.ravel(), expected)
        for name in (f"{i:03d}.png", f"{i:03d}-overlay.png", "labels.csv"):
            assert (run / "predictions" / "masks" / name).read_bytes() == (made / "pictures-shown" / name).read_bytes()


def test_predict__replaces_a_folder_of_predictions_with_force_and_no_other_folder(made, refused, tmp_path):
    words = ["predict", run_of(made, "pictures"), made / "pictures" / "000.png", "-o"]
    there, others = tmp_path / "masks", tmp_path / "pictures"
    assert carry_out([*map(str, words), str(there)]) == 0
    written = {path.name: path.read_bytes() for path in there.iterdir()}
    (there / "old.png").write_bytes(b"of an earlier prediction")
    assert f"{there}: exists; nothing is overwritten" in refused(*words, there)
    assert carry_out([*map(str, words), str(there), "--force"]) == 0
    assert {path.name: path.read_bytes() for path in there.iterdir()} == written
    shutil.copytree(made / "pictures", others)
    assert "has no labels.csv" in refused(*words, others, "--force")
    assert (others / "000.png").read_bytes() == (made / "pictures" / "000.png").read_bytes()
    (tmp_path / "link").symlink_to(there)
    assert carry_out([*map(str, words), str(tmp_path / "link"), "--force"]) == 0
    assert not (tmp_path / "link").is_symlink()
    assert there.is_dir(), "only the link was replaced"


def test_model__of_any_lambda_has_the_weights_and_the_certificate_of_the_path(made, tmp_path):
    run = run_of(made, "chain")
    path = open_path(run)
    lams = path["lambda"].values
    between = float(np.sqrt(lams[0] * lams[1]))
    for lam in (between, float(lams[1]), 10.0 * float(lams[0])):
        model = save_model(run, lam, tmp_path / "model")
        assert np.array_equal(model.weights, path.weights_at(lam).values)
        loaded = load_model(tmp_path / "model")
        assert (loaded.lambda_, loaded.certificate, loaded.meta) == (lam, model.certificate, model.meta)
        assert loaded.weights.tobytes() == model.weights.tobytes()
        assert loaded.certificate["gap"] == (float(path["gap"][1]) if lam == lams[1] else None)
    assert (loaded.certificate["eps"], loaded.certificate["certainty"], loaded.labels) == (
        0.1,
        "exact",
        ["B", "I", "O"],
    )
    assert {loaded.certificate[name] for name in ("verified", "certified")} == {True}


def test_model__of_a_run_that_moved_finds_the_features_beside_it(made, tmp_path):
    shutil.copytree(made / "runs" / "multiclass", tmp_path / "moved")
    away = (made / "runs" / "multiclass").rename(tmp_path / "away")
    try:
        model = model_of(next((tmp_path / "moved").glob("multiclass_arrays-*")))
    finally:
        away.rename(made / "runs" / "multiclass")
    assert model.meta["dataset"] == "multiclass_arrays"


def test_model__of_a_run_that_changed_is_refused(made, tmp_path, refused):
    shutil.copytree(made / "runs" / "chain", tmp_path / "runs")
    (run,) = (tmp_path / "runs").glob("sequences_csv-*")
    original = (run / "metrics.json").read_bytes()
    (run / "metrics.json").write_bytes(original.replace(b"0", b"1", 1))
    assert "metrics.json: changed since the run wrote it; repeat" in refused("export", run, "-o", tmp_path / "m")
    (run / "metrics.json").write_bytes(original)
    (words,) = (tmp_path / "runs" / "features").glob("*/shared/vocabulary.npy")
    flip(words)
    assert "vocabulary.npy: does not match its checksum" in refused("export", run, "-o", tmp_path / "m")
    flip(max((run / "path.zarr" / "weights").rglob("*"), key=lambda file: file.stat().st_size))
    assert "path.zarr: changed since the run wrote it" in refused("export", run, "-o", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_commands__refuse_what_cannot_be_done_and_write_nothing(made, tmp_path, refused):
    run, out = run_of(made, "chain"), tmp_path / "out"
    text = str(made / "test.txt")
    model = str(made / "chain.gapwise")
    assert "a model of lambda" in refused("predict", model, "--lambda", "77", text, "-o", out)
    assert "neither a run (it has no manifest.json) nor a model" in refused("predict", made, text, "-o", out)
    assert "there are [0.1]" in refused("predict", run_of(made, "oracle"), "--lambda", "1", "test", "-o", out)
    bad = tmp_path / "bad.txt"
    bad.write_text("cat X1\n\nsat X0 O more\n")
    assert f"{bad}: line 3: 4 columns, but 2 on line 1" in refused("predict", model, bad, "-o", out)
    pictures = run_of(made, "pictures")
    assert "give a folder for them: -o FOLDER" in refused("predict", pictures, made / "pictures")
    assert "cannot be decoded as an image" in refused("predict", pictures, bad, "-o", out)
    (tmp_path / "out-is-there").mkdir()
    (tmp_path / "out-is-there" / "mine").touch()
    assert "out-is-there: is a folder" in refused("predict", model, text, "-o", tmp_path / "out-is-there")
    told = refused("export", run, "--format", "mlflow", "-o", tmp_path / "out-is-there")
    assert "nothing is overwritten" in told
    assert "held out no blocks to fit it on; run it again with" in refused(
        "predict", run, text, "--calibrate", "sigmoid"
    )
    ranking = run_of(made, "ranking")
    assert "the structure ranking has none" in refused("predict", ranking, made / "test.svmlight", "--margins")
    message = "this reader does not read the labels of new input; its class must define truth(new, meta)"
    assert message in refused("evaluate", run_of(made, "pictures"), made / "pictures")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "out-is-there"]


def test_oracle__serves_a_split_without_truth_and_says_that_its_code_changed(made, caplog):
    from python_task import Pairs

    model = model_of(run_of(made, "oracle"), trust=True)
    predicted = model.answer({"split": "fresh", "n": 5})
    asked = Pairs("fresh", n=5)
    assert [predicted.named(i) for i in range(5)] == [asked.decode(i, model.weights).tolist() for i in range(5)]
    edited = Model(model.lambda_, model.weights, {}, {**model.meta, "source": "other"}, {}, {}, None)
    edited.answer("fresh")
    assert "its code has changed since the training" in caplog.text


def test_predict__loads_nothing_that_it_does_not_need(made):
    words = ["predict", str(run_of(made, "multiclass")), str(made / "new.npz")]
    code = f"""
import sys
from unittest.mock import patch
sys.argv[1:] = {words!r}
from gapwise.pipeline.entry import main
assert main() == 0
print(*sorted({{module.split(".")[0] for module in sys.modules}}), file=sys.stderr)
"""
    done = python("-c", code, NUMBA_DISABLE_JIT="1")
    assert done.stdout == (made / "multiclass-shown").read_text()
    loaded = set(done.stderr.split())
    assert "numpy" in loaded
    assert not loaded & {"mlflow", "sklearn", "dask", "distributed", "hydra", "omegaconf", "xarray", "matplotlib"}


def test_mlflow__model_predicts_in_a_new_process_what_evaluate_found(made):
    code = f"""
import json, mlflow, pandas as pd
model = mlflow.pyfunc.load_model({str(made / "chain.mlflow")!r})
blocks = open({str(made / "bare.txt")!r}, encoding="utf-8").read().strip("\\n").split("\\n\\n")
found = model.predict(pd.DataFrame({{"input": blocks}}))
print(json.dumps([list(row) for row in found["labels"]]))
"""
    done = python("-c", code, cwd=made, NUMBA_DISABLE_JIT="1")
    names = load_model(made / "chain.gapwise").labels
    with np.load(run_of(made, "chain") / "predictions.npz") as expected:
        labels, ptr = expected["labels"], expected["label_ptr"].tolist()
    blocks = [[names[label] for label in labels[a:b]] for a, b in pairwise(ptr)]
    assert json.loads(done.stdout.splitlines()[-1]) == blocks
