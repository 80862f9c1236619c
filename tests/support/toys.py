"""Toys: the texts of a data set and a structure of one's own."""

from __future__ import annotations

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

TOYS = {"datasets/clouds.py": READER, "problems/sign.py": STRUCTURE}
"""File to its text."""
