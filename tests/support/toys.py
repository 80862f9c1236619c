"""Toys: the texts of files that each add one part, among one's own parts."""

from __future__ import annotations

from pathlib import Path

STRUCTURE = '''
"""The sign of <w, x>: blocks are single vectors, labels 0 and 1."""
from typing import NamedTuple
import numpy as np
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.protocol import dot, frozen

CAPABILITIES = Capabilities(whole=("x", "labels"))

class Sign(NamedTuple):
    n: int
    d: int
    local_ptr: np.ndarray
    label_ptr: np.ndarray
    truth: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    x: np.ndarray

    @property
    def labels(self):
        return 2
    @property
    def unconstrained(self):
        return True

    def scores(self, i, w, theta):
        theta[0] = dot(self.x[i], w)
    def max_oracle(self, i, theta, y, scratch):
        wrong = 1 - self.truth[i]
        gain = 1.0 + theta[0] * (2.0 * wrong - 1.0) - theta[0] * (2.0 * self.truth[i] - 1.0)
        y[0] = wrong if gain > 0.0 else self.truth[i]
        return self.loss(i, y)
    def decode(self, i, theta, y, scratch):
        y[0] = 1 if theta[0] > 0.0 else 0
    def value(self, i, theta, y):
        return theta[0] * (2.0 * y[0] - 1.0)
    def add(self, i, y, c, out):
        out[0] += c * (2.0 * y[0] - 1.0)
    def norm2(self, i, delta):
        return delta[0] * delta[0] * dot(self.x[i], self.x[i])
    def push(self, i, c, delta, w):
        for j in range(w.size):
            w[j] += c * delta[0] * self.x[i, j]
    def loss(self, i, y):
        return 1.0 if y[0] != self.truth[i] else 0.0
    def least_loss(self, i):
        return 1.0
    def scratch(self):
        return (np.empty(0),)

def build(arrays, meta):
    x, steps = frozen(arrays["x"], float), frozen(np.arange(len(arrays["x"]) + 1))
    none = frozen(np.empty(0))
    return Sign(len(x), x.shape[1], steps, steps, frozen(arrays["labels"], np.uint8), none, none, x)

def derived(**block):
    return {}

def metrics(problem, arrays, predictions):
    return {"error_rate": float(np.mean(predictions != problem.truth))}
'''

READER = '''
"""Two clouds of points around +shift and -shift."""
import numpy as np
from gapwise.stages.datasets import NEW

class Clouds:
    structure = "sign"
    def __init__(self, n, shift):
        self.n, self.shift = n, shift
    def files(self):
        return {}
    def source(self):
        return {}
    def featurize(self, sink, map_blocks, report):
        for k, split in enumerate(("train", "test")):
            rng = np.random.default_rng(k)
            labels = rng.integers(2, size=self.n).astype(np.uint8)
            sink.put(split, "x", rng.normal(size=(self.n, 3)) + self.shift * (2.0 * labels[:, None] - 1.0))
            sink.put(split, "labels", labels)
        sink.put("", "scale", np.ones(1))
        return {"d": 3, "n_train": self.n, "n_test": self.n}

class Encoder:
    def __init__(self, scale):
        self.scale = scale
    def encode(self, raw, sink, map_blocks):
        sink.put(NEW, "x", self.scale * np.asarray(raw, float))
        sink.put(NEW, "labels", np.zeros(len(raw), np.uint8))

def open(options):
    return Clouds(options["n"], options["shift"])

def encoder(meta, shared):
    return Encoder(shared["scale"])
'''

HALVES = '''
"""Every breakpoint at half the lambda of the one before, or where `paper` certifies down to, if that is higher."""

from dataclasses import dataclass, replace

from gapwise.stages.solver.path.rules.paper import Paper


@dataclass
class Halves(Paper):
    def following(self, solved):
        found = super().following(solved)
        half = 0.5 * solved.point.lam
        return replace(found, lam=half, low=half) if found.low < half and found.lam == found.low else found


RULE = Halves
'''

VERIFIER = '''
"""The verifier of `halves`: it certifies as `paper` does."""

from gapwise.stages.certify.cells import Cells


class Halves(Cells):
    def claims(self, b):
        return super().claims(b)


VERIFIER = Halves
'''

METHOD = (Path(__file__).parent / "toy_method.py").read_text(encoding="utf-8")

STAGE = '''
"""Counts the breakpoints, once they are verified."""
from gapwise.pipeline.stage_graph import Stage
from gapwise.storage.results import read_path

def run(job):
    return {"breakpoints": len(read_path(job.dir.path / "path.zarr")[0]["lambda"])}

STAGE = Stage("count", run, needs=("verify",))
'''

ESTIMATOR = '''
"""The sign of <w, x> by `fit` and `predict`, for labels -1 and 1."""
import numpy as np
from gapwise.pipeline.estimators.multiclass import MulticlassSVM

class SignSVM(MulticlassSVM):
    def fit(self, X, y):
        return super().fit(X, np.where(np.asarray(y) > 0, "plus", "minus"))

    def predict(self, X):
        return np.where(super().predict(X) == "plus", 1, -1)
'''

BACKEND = '''
"""toy://: files in the memory of this process, apart from those of fsspec's memory://."""
import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from gapwise.storage.backend.objects import ObjectBackend

class ToyFiles(MemoryFileSystem):
    protocol, store, pseudo_dirs = ("toy",), {}, [""]

    @classmethod
    def _strip_protocol(cls, path):
        return MemoryFileSystem._strip_protocol(str(path).replace("toy://", "memory://"))

fsspec.register_implementation("toy", ToyFiles)

class ToyBackend(ObjectBackend):
    schemes = ("toy",)

    def is_shared(self, where):
        return False
'''

TOYS = {
    "backends/toy.py": BACKEND,
    "certify/halves.py": VERIFIER,
    "datasets/clouds.py": READER,
    "estimators/sign.py": ESTIMATOR,
    "methods/turns.py": METHOD,
    "problems/sign.py": STRUCTURE,
    "rules/halves.py": HALVES,
    "stages/count.py": STAGE,
}
"""File to its text; each works beside all others."""
