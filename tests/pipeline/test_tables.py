"""Commands on tables with named columns: a run of CSV files, then predict, evaluate and exported models on others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_process import Here

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.model_formats._pyfunc import labelled, table
from gapwise.stages.model.folders import load_model
from gapwise.stages.model.from_run import example_of

WORDS = ("dataset=multiclass_arrays", "compute=serial", "tracking=none", "path=single", "path.lambda=0.01")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with tables, and the run of two of them, whose columns are in different orders."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    y = np.arange(40) % 2
    data = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    data["a"] += 6 * y - 3
    data["label"] = np.where(y, "1", "01")
    data.iloc[::4].to_csv(folder / "train.csv", index=False)
    data.iloc[1::4].to_csv(folder / "train.csv", index=False, header=False, mode="a")
    test = data.iloc[2:].iloc[[k for k in range(38) if k % 4 < 2]]
    test[["label", "c", "b", "a"]].to_csv(folder / "test.csv", index=False)
    test.to_csv(folder / "with_index.csv")
    test[["b", "c", "a"]].to_csv(folder / "new.csv", index=False)
    files = [f"dataset.{name}={folder}/{file}.csv" for name, file in (("file", "train"), ("test_file", "test"))]
    done = Here(folder / "runs", [*WORDS, *files])
    done.finish()
    return folder, done.run


def test_run__matches_columns_of_the_test_file_by_name(made: tuple[Path, Path]) -> None:
    folder, run = made
    assert json.loads((run / "metrics.json").read_text())["test_error_rate"] == 0.0
    shown = pd.read_csv(run / "predictions" / "predicted.csv", dtype=str)
    wanted = pd.read_csv(folder / "test.csv", dtype=str)["label"]
    assert shown["predicted"].tolist() == shown["label"].tolist() == wanted.tolist()


def test_predict__takes_columns_in_any_order_with_and_without_labels(
    made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, run = made
    labels = pd.read_csv(folder / "test.csv", dtype=str)["label"].tolist()
    for name in ("test", "with_index", "new"):
        assert carry_out(["predict", str(run), str(folder / f"{name}.csv")]) == 0
        header, *rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
        assert header == ["example", *(["label"] if name != "new" else []), "predicted"]
        assert [row[-1] for row in rows] == labels


def test_evaluate__measures_classes(made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder, run = made
    swapped = pd.read_csv(folder / "test.csv", dtype=str)
    swapped.loc[:3, "label"] = "1"
    swapped.to_csv(folder / "swapped.csv", index=False)
    assert carry_out(["evaluate", str(run), str(folder / "test.csv"), str(folder / "swapped.csv"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    n = len(swapped)
    assert (said["blocks"], said["loss"], said["metrics"]) == (2 * n, 2 / (2 * n), {"error_rate": 2 / (2 * n)})
    assert [(row["label"], row["support"]) for row in said["labels"]] == [("01", n - 2), ("1", n + 2)]
    assert [(row["truth"], row["predicted"], row["count"]) for row in said["confusions"]] == [("1", "01", 2)]
    assert carry_out(["evaluate", str(run), str(folder / "swapped.csv")]) == 0
    assert f"{n} examples" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b,c\n1,2,3\n", "has no labels to compare predictions with"),
        ("a,b,c,label\n1,2,3,01\n1,2,3,1.0\n", "new.csv: line 3: the label '1.0' does not occur in the training data"),
        (
            "A,b,c,label\n1,2,3,1\n",
            "new.csv: line 1: expected the columns of the training data, in any order; missing: a",
        ),
        ("1,2,3,1\n", "new.csv: line 1: expected the columns of the training data"),
    ],
)
def test_evaluate__refuses_other_tables(
    made: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (tmp_path / "new.csv").write_text(text)
    assert carry_out(["evaluate", str(made[1]), str(tmp_path / "new.csv")]) == 1
    assert says in capsys.readouterr().err


def test_exported_model__takes_tables_with_the_columns_in_any_order(made: tuple[Path, Path], tmp_path: Path) -> None:
    folder, run = made
    assert carry_out(["export", str(run), "-o", str(tmp_path / "model")]) == 0
    model = load_model(tmp_path / "model")
    test = pd.read_csv(folder / "test.csv", dtype={"label": str})
    for columns in (["a", "b", "c"], ["c", "label", "a", "b"]):
        assert labelled(model, test[columns])["labels"].map(lambda row: row[0]).tolist() == test["label"].tolist()
    assert [*table([example_of(run)]).columns] == ["a", "b", "c"]  # the input example of an MLflow model
    with pytest.raises(ValueError, match="missing: a, b, c, unknown: input"):
        labelled(model, pd.DataFrame({"input": [[1.0, 2.0, 3.0]]}))
