"""A data set and a structure of one's own, one new file each in one folder: found, and run end to end by a command.

No file of Gapwise changes. The process runs without the JIT, to take seconds.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from waiting import python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import json, os, sys, threading

OWN, called = os.environ["GAPWISE_PARTS"], set()

def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(OWN):
        called.add((frame.f_code.co_filename.removeprefix(OWN + "/"), frame.f_code.co_name))

sys.setprofile(watch)
threading.setprofile(watch)
from gapwise.pipeline.entry import main

sys.argv[1:] = ["dataset=clouds", "tracking=none", "compute=serial", "path.lambda_min=0.05", "path.eps=0.2"]
assert main() == 0
print(json.dumps(sorted(f"{file}: {name}" for file, name in called)))
"""

STRUCTURE = """

from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.protocol import frozen

CAPABILITIES = Capabilities(whole=("x", "labels"))

def build(arrays, meta):
    x, steps = frozen(arrays["x"], float), frozen(np.arange(len(arrays["x"]) + 1))
    none = frozen(np.empty(0))
    return Sign(len(x), x.shape[1], steps, steps, frozen(arrays["labels"], np.uint8), none, none, x, 1.0)

def derived(**block):
    return {}

def metrics(problem, arrays, predictions):
    return {"error_rate": float(np.mean(predictions != problem.truth))}
"""
"""What follows the text of `sign_structure`."""

READER = '''
"""Two clouds of points around +shift and -shift."""
from dataclasses import dataclass
import numpy as np
from gapwise.stages.datasets import NEW, Reader

@dataclass(frozen=True)
class Clouds(Reader):
    n: int
    shift: float
    structure = "sign"
    def files(self):
        return {}
    def featurize(self, sink, map_blocks, report):
        for k, split in enumerate(("train", "test")):
            rng = np.random.default_rng(k)
            labels = rng.integers(2, size=self.n).astype(np.uint8)
            sink.put(split, "x", rng.normal(size=(self.n, 3)) + self.shift * (2.0 * labels[:, None] - 1.0))
            sink.put(split, "labels", labels)
        sink.put("", "scale", np.ones(1))
        return {"d": 3, "n_train": self.n, "n_test": self.n}
    @classmethod
    def encoder(cls, meta, shared):
        return Encoder(shared["scale"])

class Encoder:
    def __init__(self, scale):
        self.scale = scale
    def encode(self, raw, sink, map_blocks):
        sink.put(NEW, "x", self.scale * np.asarray(raw, float))
        sink.put(NEW, "labels", np.zeros(len(raw), np.uint8))
'''

CALLED = {
    "datasets/clouds.py": ("featurize",),
    "problems/sign.py": ("build", "scores", "max_oracle", "push", "decode"),
}
"""Functions of each file that must have been called; with the JIT off, steps call Python functions."""


def test_toys__give_a_certified_path(tmp_path: Path) -> None:
    texts = {
        "datasets/clouds.py": READER,
        "problems/sign.py": (ROOT / "tests" / "support" / "sign_structure.py").read_text() + STRUCTURE,
        "conf/dataset/clouds.yaml": "name: clouds\nn: 20\nshift: 0.5\n",
    }
    for name, text in texts.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text, encoding="utf-8")
    own = {"GAPWISE_PARTS": str(tmp_path / "own"), "GAPWISE_RUNS": str(tmp_path / "runs")}
    done = python("-c", SCRIPT, cwd=tmp_path, NUMBA_DISABLE_JIT="1", **own)
    wanted = {f"{file}: {name}" for file, names in CALLED.items() for name in names}
    assert wanted <= {*json.loads(done.stdout.splitlines()[-1])}
    (file,) = tmp_path.glob("runs/clouds-*/result.json")
    result = json.loads(file.read_text())
    assert result["problem"] == {"name": "clouds", "n": 20, "d": 3}
    assert result["verify"]["certified"]
    assert 0.0 <= result["evaluate"]["test_loss"] < 0.4
