"""A toy of each kind, one new file in one folder: found, and run end to end through the ordinary commands.

No file of Gapwise changes, and each toy leaves a trace that nothing else leaves. One process runs them all, without the JIT,
to take seconds; runs live in the storage of the toy backend.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from toys import TOYS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import json, os, sys, threading
from pathlib import Path
import numpy as np

OWN, called = os.environ["GAPWISE_PARTS"], set()

def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(OWN):
        called.add((frame.f_code.co_filename.removeprefix(OWN + "/"), frame.f_code.co_name))

sys.setprofile(watch)
threading.setprofile(watch)
import gapwise
from gapwise.pipeline.entry import main
from gapwise.storage.backend import location
from gapwise.storage.results import read_path

BASE = ["dataset=clouds", "tracking=none", "compute=serial", "run.root=toy://runs"]

def made(*words):
    before = {folder.name for folder in location("toy://runs").iterdir()} if location("toy://runs").is_dir() else set()
    sys.argv[1:] = [*BASE, *words]
    assert main() == 0
    (new,) = (f for f in location("toy://runs").iterdir() if f.name not in before and (f / "result.json").is_file())
    arrays, attrs = read_path(new / "path.zarr")
    return new, arrays, attrs, json.loads((new / "result.json").read_text())

def told(folder, arrays, attrs, result):
    kept = json.loads((folder / "manifest.json").read_text())
    return {
        "problem": result["problem"], "verified": result["verify"]["certified"], "loss": result["evaluate"]["test_loss"],
        "method": attrs["method"], "rule": attrs["rule"], "gaps": arrays["gap"].tolist(),
        "lambdas": arrays["lambda"].tolist(), "stages": kept["stages"],
        "weights": gapwise.open_path(str(folder)).weights_at(arrays["lambda"][-1]).values.tolist(),
    }

path = ["path.lambda_min=0.05", "path.eps=0.2"]
found = {
    "parts": told(*made("path.rule=halves", *path)),
    "method": told(*made("solver=turns", "path=single", "path.lambda=0.1", "path.tolerance=0.05")),
}
X = np.random.default_rng(0).normal(size=(30, 3))
model = gapwise.SignSVM(lam=0.01).fit(X, np.sign(X[:, 0]))
right, proven = float(np.mean(model.predict(X) == np.sign(X[:, 0]))), model.certificate_
found["estimator"] = [right, float(proven.gap), proven.verified]
found["called"] = sorted(f"{file}: {name}" for file, name in called)
print(json.dumps(found))
"""

CALLED = {
    "backends/toy.py": ("_strip_protocol",),
    "certify/halves.py": ("claims",),
    "datasets/clouds.py": ("open", "featurize"),
    "estimators/sign.py": ("fit", "predict"),
    "methods/turns.py": ("prepare", "advance"),
    "problems/sign.py": ("build", "scores", "max_oracle", "push", "decode"),
    "rules/halves.py": ("following",),
    "stages/count.py": ("run",),
}
"""Functions of each file that must have been called; with the JIT off, steps call Python functions."""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two runs and an estimator made of the toys tell."""
    folder = tmp_path_factory.mktemp("toys")
    for name, text in TOYS.items():
        (folder / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "own" / name).write_text(text, encoding="utf-8")
    for name, text in {"dataset/clouds": "name: clouds\nn: 20\nshift: 0.5\n",
                       "solver/turns": "name: turns\nmethod: turns\n"}.items():  # fmt: skip
        (folder / "own" / "conf" / f"{name}.yaml").parent.mkdir(parents=True, exist_ok=True)
        (folder / "own" / "conf" / f"{name}.yaml").write_text(text)
    path = os.pathsep.join(str(part) for part in (ROOT, ROOT / "tests" / "support"))
    env = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "GAPWISE_PARTS": str(folder / "own")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, cwd=folder, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_toys__are_called(facts: dict[str, Any]) -> None:
    assert CALLED.keys() == TOYS.keys()
    wanted = {f"{file}: {name}" for file, names in CALLED.items() for name in names}
    assert wanted <= {*facts["called"]}, wanted - {*facts["called"]}


def test_parts__sampler_move_rule_and_verifier_give_a_certified_path(facts: dict[str, Any]) -> None:
    run = facts["parts"]
    assert run["problem"] == {"name": "clouds", "n": 20, "d": 3}
    assert (run["method"], run["rule"], run["verified"]) == ("bcfw", "halves", True)
    assert max(run["gaps"]) <= 0.2
    lams = run["lambdas"]
    assert all(after >= 0.5 * before for before, after in pairwise(lams))
    assert any(after == 0.5 * before for before, after in pairwise(lams))
    assert 0.0 <= run["loss"] < 0.4


def test_method__is_certified(facts: dict[str, Any]) -> None:
    run = facts["method"]
    assert (run["method"], run["rule"], run["verified"]) == ("turns", "single", True)
    assert run["gaps"][0] <= 0.05
    assert len(run["weights"]) == 3


@pytest.mark.parametrize("which", ["parts", "method"])
def test_runs__have_the_stage(facts: dict[str, Any], which: str) -> None:
    run = facts[which]
    assert run["stages"]["count"]["breakpoints"] == len(run["lambdas"])


def test_estimator__learns_the_sign(facts: dict[str, Any]) -> None:
    right, gap, verified = facts["estimator"]
    assert right > 0.9
    assert 0.0 <= gap <= 0.1
    assert verified is True
