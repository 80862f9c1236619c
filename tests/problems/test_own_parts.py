"""A structure and a data set as new files in a folder of one's own; no file of the repository changes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from toys import READER, STRUCTURE

from gapwise.stages.problems.compiled import sources_fingerprint

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

INSTANCES = """
import numpy as np
from gapwise.stages.problems import build

def sign():
    rng = np.random.default_rng(0)
    return build("sign", {"x": rng.normal(size=(5, 3)), "labels": np.array([0, 1, 1, 0, 1])}, {})

INSTANCES = {"sign": sign}
LABELS = {"Sign": lambda problem: 2}
"""

USE = """
import numpy as np
from pathlib import Path
from gapwise.stages.datasets import FeatureMap, open_dataset
from gapwise.stages.featurize import featurize, open_problem
from gapwise.stages.problems import build, calls_python, capabilities, structures
from gapwise.stages.problems.compiled import sources_fingerprint
from gapwise.storage.features import open_features

supplied = {"chain", "multiclass", "multiclass_sparse", "potts", "python_oracle", "segmentation"}
assert {"sign", *supplied} <= set(structures()), structures()
assert [calls_python(name) for name in ("sign", "chain", "python_oracle")] == [False, False, True]
assert capabilities("sign").whole == ("x", "labels")
store = Path("store")
featurize({"name": "clouds", "n": 9, "shift": 1.0}, store, key="k", map_blocks=map, report=lambda *_: None)
assert open_problem(store, "test").n == 9
features = open_features(store)
new = FeatureMap(features.meta, {"scale": features.arrays("test")["scale"]}).encode([[1, 2, 3]])
assert build(new.structure, new.arrays, new.meta).x.tolist() == [[1, 2, 3]]
print(sources_fingerprint(type(open_problem(store, "train"))))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("problems/sign.py", STRUCTURE),
        ("datasets/clouds.py", READER),
        ("tiny/sign_instances.py", INSTANCES),
        ("conf/dataset/clouds.yaml", "name: clouds\nn: 20\nshift: 0.5\n"),
    ):
        file = tmp_path / "own" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def python(folder: Path, *words: str, cwd: Path | None = None, own: bool = True) -> str:
    """What Python prints, with the parts of the folder unless `own` is False, and a kernel cache of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "kernels")}
    env |= {"GAPWISE_PARTS": str(folder / "own")} if own else {}
    done = subprocess.run([sys.executable, *words], cwd=cwd or folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_parts__are_found_featurized_encoded_and_in_the_fingerprint(folder: Path) -> None:
    before = python(folder, "-c", USE)
    for kind in ("methods", "run_figures"):
        (folder / "own" / kind).mkdir()
    for name, compiled in (("problems/sign.py", True), ("methods/helper.py", True), ("run_figures/toy.py", False)):
        with (folder / "own" / name).open("a") as file:
            file.write("# edited\n")
        after = python(folder, "-c", USE)
        assert (after != before) is compiled, name
        before = after


def test_parts__keep_the_contract_of_structures(folder: Path) -> None:
    words = ("-m", "pytest", "-n0", "-q", "tests/problems/test_contract.py", "-k", "sign", "-p", "no:cacheprovider")
    assert python(folder, *words, "-rA", cwd=ROOT).count("[sign") == 13


def test_parts__run_through_the_pipeline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # compiling the solver for it would take a minute
    words = ("path=single", "path.lambda=0.1", "path.tolerance=0.01", "tracking=none", "compute=serial")
    root = f"run.root={folder / 'runs'}"
    out = python(folder, "-m", "pipeline", "dataset=clouds", *words, root)
    run = Path(out.splitlines()[-1].removeprefix("run: "))
    result = json.loads((run / "result.json").read_text())
    assert result["problem"] == {"name": "clouds", "n": 20, "d": 3}
    assert result["status"] == "CONVERGED"
    assert result["verify"]["certified"] is True
    assert 0.0 <= result["evaluate"]["test_loss"] < 0.4


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="without the JIT there is no cache of kernels")
def test_kernels__of_a_structure_that_cannot_be_imported_do_not_keep_others_from_loading(folder: Path) -> None:
    use = "import numpy as np; from gapwise.stages.evaluate import _constant_loss; "
    use += "from gapwise.stages.problems import build; "
    arrays = "{'x': np.eye(3), 'labels': np.array([0, 1, 0])}"
    print_loss = "print(_constant_loss(problem))"
    python(folder, "-c", f"{use} problem = build('sign', {arrays}, {{}}); {print_loss}")
    other = f"{use} problem = build('multiclass', {arrays}, {{'classes': 2}}); {print_loss}"
    assert float(python(folder, "-c", other, own=False)) == pytest.approx(1 / 3)


def test_fingerprint__sees_every_file_of_a_structure_that_is_a_package(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "elsewhere"
    package.mkdir()
    (package / "__init__.py").write_text("from elsewhere.inner import Inner\n")
    (package / "inner.py").write_text("class Inner: ...\n")
    (package / "kernels.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    inner = importlib.import_module("elsewhere").Inner
    before = sources_fingerprint.__wrapped__(inner)
    (package / "kernels.py").write_text("# edited\n")
    assert sources_fingerprint.__wrapped__(inner) != before
