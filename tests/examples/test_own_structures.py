"""The worked examples of structures of one's own keep the contract, are solved along a whole path, and learn."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from memory_sink import problems
from solved import options_of, path_of, solved

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.structure_check import check
from gapwise.stages.datasets import open_dataset
from gapwise.stages.model.predict import predict
from gapwise.stages.solver.options import Status
from gapwise.stages.verify import verify
from gapwise.storage.paths import open_path

HERE = Path(__file__).parent
EXAMPLES = {
    "ranking:Ranking": (0.05, 0.15),
    "hierarchy:Hierarchy": (0.1, 0.1),
    "assignment:Assignment": (0.2, 0.2),
    "potts_grid:Grid": (0.1, 0.06),
}
"""Each with the accuracy of its path, and the largest test loss that the best model of it may have."""


@pytest.fixture(autouse=True)
def _examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


@pytest.mark.parametrize("name", EXAMPLES)
def test_example__keeps_the_contract(name: str) -> None:
    report = check("python_oracle", {"oracle": name}, seconds=0.05)
    assert [finding for finding in report.findings if not finding.ok] == []
    assert report.seconds["max_oracle"] > 0.0


@pytest.mark.parametrize("name", ["assignment:Assignment", "hierarchy:Hierarchy"])
def test_example__is_certified_along_its_path_and_learns(name: str, tmp_path: Path) -> None:
    train, test, _, _ = problems(open_dataset("python_oracle", {"oracle": name}))
    eps, most = EXAMPLES[name]
    path = path_of(eps=eps, lambda_min=0.01)
    assert solved(train, tmp_path, options_of(rebase_steps=1000, refresh_every=10), path) is Status.CONVERGED
    assert verify(train, tmp_path)["certified"]
    weights = open_path(tmp_path).weights.values
    assert min(float(np.mean(predict(test, w)[1])) for w in weights) < most < np.mean(predict(test, -weights[-1])[1])


class Still:
    """What stands for a network here: random features, and how often it was called."""

    def __init__(self) -> None:
        self.calls, self.into = 0, np.random.default_rng(0).normal(size=(8, 16))

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        self.calls += 1
        return np.tanh(batch @ self.into)


def images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=90)
    return (3.0 * np.eye(3, 8)[labels] + rng.normal(size=(90, 8))).astype(np.float32), labels


def test_last_layer__computes_features_once_and_says_whose_they_are(tmp_path: Path) -> None:
    from last_layer import features_of

    network, (inputs, _), file = Still(), images(), tmp_path / "features.npy"
    first = features_of(network, inputs, file, batch=40)
    assert (network.calls, first.shape, first.dtype) == (3, (90, 16), np.float32)
    np.testing.assert_array_equal(features_of(network, inputs, file), first)
    assert network.calls == 3
    with pytest.raises(ValueError, match=r"features\.npy: has the features of 90 inputs, expected 10"):
        features_of(network, inputs[:10], file)


def test_last_layer__of_a_torch_network_predicts_what_the_svm_does(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install -e '.[torch]')")
    from last_layer import features_of, torch_layer, torch_network

    from gapwise.pipeline.estimators.multiclass import MulticlassSVM

    inputs, labels = images()
    network = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU())
    x = features_of(torch_network(network), inputs, tmp_path / "features.npy")
    model = MulticlassSVM(lam=0.1, tolerance=0.01).fit(x, labels)
    whole = torch_network(torch.nn.Sequential(network, torch_layer(model)))
    np.testing.assert_array_equal(model.classes_[whole(inputs).argmax(axis=1)], model.predict(x))


def test_every_example__is_explained_in_the_readme() -> None:
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    files = {file.name for pattern in ("*.py", "*.ipynb") for file in HERE.glob(pattern)}
    assert [name for name in sorted(files) if not name.startswith("test_") and f"]({name})" not in readme] == []


def test_command__says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert carry_out(["check", "ranking:Ranking", "n=4", "--seconds", "0.1"]) == 0
    assert "+dataset.arguments.n=4 solver=bcpfw_gap_cache" in capsys.readouterr().out


def test_program__answers_in_lines_of_json_and_is_named_when_it_ends(tmp_path: Path) -> None:
    for split in ("train", "test"):
        rng = np.random.default_rng(len(split))
        y = (np.cumsum(rng.random((8, 4)) < 0.3, axis=1) + rng.integers(2, size=(8, 1))) % 2
        rows = zip(y, 2.0 * y - 1.0 + rng.normal(size=y.shape), strict=True)
        lines = (" ".join(["".join(map(str, bits)), *map(repr, x.tolist())]) for bits, x in rows)
        (tmp_path / f"{split}.txt").write_text("\n".join(lines) + "\n")
    data = [str(tmp_path / "train.txt"), str(tmp_path / "test.txt")]
    command = f"{sys.executable} {HERE}/bits.py {tmp_path}"
    options = {"oracle": "program:Program", "arguments": {"command": command, "data": data}}
    report = check("python_oracle", options, seconds=0.05)
    assert [finding for finding in report.findings if not finding.ok] == []
    assert [*map(str, open_dataset("python_oracle", options).files().values())] == data
    dies = {"command": "sh -c 'read q; echo [1,1,1]; exit 3'"}
    says = check("python_oracle", {**options, "arguments": dies}).findings[0].says
    assert says.startswith("Program.truth: train block 0: RuntimeError: sh -c")
    assert "ended with 3 (program.py" in says
