"""Sequences of dense vectors: `ChainSVM` beside a linear-chain CRF layer of PyTorch on the same frozen vectors.

    python tests/benchmarks/bench_dense.py [--sentences 10000] [--width 768] [--torch PYTHON]

Each side is a process of its own with one thread, which draws the same sentences: labels from a Markov chain, vectors from
a normal distribution for each label. CPU seconds and the largest resident set are those of that process. "data" is its
memory after drawing the float32 vectors, before fitting. Ours: `ChainSVM()` as it is, which solves a certified path, chooses
lambda on a fifth of the sentences and refits on all; and that lambda alone. Kernels are loaded before the clock starts, by
fits to a few sentences; where they had to be compiled, run it again. The CRF: a linear layer, transitions, starts and ends;
Adam on batches of 32 sentences padded to the longest. Its learning rate is the better of two by the loss on a fifth held
out, and it is then trained on all for as many epochs as were best there. PYTHON is an interpreter that has torch and NumPy;
without torch that side is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

LABELS, TEST = 9, 0.2
APART = 4.0
"""Distance of the means of two labels; the noise of each coordinate is 1."""


def sentences(n: int, width: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Float32 (T, width) and labels (T,) of n sentences of 15 tokens on average."""
    model, rng = np.random.default_rng(0), np.random.default_rng([1, seed])
    follows = model.dirichlet(np.full(LABELS, 0.4), size=LABELS).cumsum(axis=1)
    means = model.normal(size=(LABELS, width)) * APART / np.sqrt(2.0 * width)
    X, y = [], []
    for T in rng.integers(5, 26, n).tolist():
        labels, draws = np.empty(T, np.int64), rng.random(T)
        labels[0] = rng.integers(LABELS)
        for t in range(1, T):
            labels[t] = min(int(np.searchsorted(follows[labels[t - 1]], draws[t])), LABELS - 1)
        X.append((rng.standard_normal((T, width), np.float32) + means[labels]).astype(np.float32))
        y.append(labels)
    return X, y


def memory() -> float:
    """Largest resident set so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def told(what: str, seconds: float, wrong: float, note: str = "") -> None:
    print(json.dumps({"what": what, "cpu": seconds, "error": wrong, "peak": memory(), "note": note}), flush=True)


def error(predicted: list[Any], y: list[np.ndarray]) -> float:
    """Share of wrong tokens."""
    return float(np.mean(np.concatenate([np.asarray(a) != b for a, b in zip(predicted, y, strict=True)])))


def ours(n: int, width: int) -> None:
    """The whole `fit`, and one lambda."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from gapwise import ChainSVM

    few, labels = sentences(60, width, 2)
    for lam in ("auto", 0.1):
        ChainSVM(lam=lam).fit(few, labels)
    X, y = sentences(n, width, 0)
    new, truth = sentences(max(int(n * TEST), 1), width, 1)
    told("data", 0.0, 0.0)
    begun = time.process_time()
    model = ChainSVM().fit(X, y)
    seconds = time.process_time() - begun
    passes = float(model.path_["effective_passes"].values[-1] + model.refit_["effective_passes"].values[-1])
    note = f"lambda {model.lambda_:.3g}, {model.path_.sizes['breakpoint']} breakpoints, {passes:.0f} passes"
    begun = time.process_time()
    wrong = error(model.predict(new), truth)
    told("ChainSVM()", seconds, wrong, f"{note}; prediction {time.process_time() - begun:.2f} s")
    lam, begun = model.lambda_, time.process_time()
    model = ChainSVM(lam=lam).fit(X, y)
    told(f"ChainSVM(lam={lam:.3g})", time.process_time() - begun, error(model.predict(new), truth))


def crf(n: int, width: int) -> None:
    """A CRF layer in PyTorch."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(width, LABELS)
            self.steps = torch.nn.Parameter(torch.zeros(LABELS, LABELS))
            self.ends = torch.nn.Parameter(torch.zeros(2, LABELS))

        def forward(self, x: Any, y: Any, lengths: Any) -> Any:
            """Mean negative log-likelihood a sentence; x (B, T, width), y (B, T)."""
            scores, rows, mask = self.linear(x), torch.arange(len(x)), torch.arange(x.shape[1]) < lengths[:, None]
            gold = (scores.gather(2, y[..., None])[..., 0] * mask).sum(1)
            gold = gold + (self.steps[y[:, :-1], y[:, 1:]] * mask[:, 1:]).sum(1)
            gold = gold + self.ends[0][y[:, 0]] + self.ends[1][y[rows, lengths - 1]]
            alpha = self.ends[0] + scores[:, 0]
            for t in range(1, x.shape[1]):
                longer = torch.logsumexp(alpha[:, :, None] + self.steps, 1) + scores[:, t]
                alpha = torch.where(mask[:, t, None], longer, alpha)
            return (torch.logsumexp(alpha + self.ends[1], 1) - gold).mean()

        def tag(self, x: Any) -> list[int]:
            """Viterbi."""
            scores, back = self.linear(x), []
            best = self.ends[0] + scores[0]
            for t in range(1, len(x)):
                values, before = (best[:, None] + self.steps).max(0)
                best, _ = values + scores[t], back.append(before)
            labels = [int((best + self.ends[1]).argmax())]
            for before in reversed(back):
                labels.append(int(before[labels[-1]]))
            return labels[::-1]

    def batch(X: list[np.ndarray], y: list[np.ndarray]) -> tuple[Any, Any, Any]:
        pad = torch.nn.utils.rnn.pad_sequence
        rows, labels = [torch.from_numpy(x) for x in X], [torch.from_numpy(one) for one in y]
        return pad(rows, batch_first=True), pad(labels, batch_first=True), torch.tensor([len(x) for x in X])

    def train(
        X: list[np.ndarray], y: list[np.ndarray], rate: float, epochs: int, held: Any = None
    ) -> tuple[Any, int, float]:
        """The layer, the best number of epochs by the loss on `held`, and that loss; stops when it rises."""
        layer, rng, best = Layer(), np.random.default_rng(0), (epochs, np.inf)
        optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
        for epoch in range(epochs):
            order = rng.permutation(len(X))
            for k in range(0, len(X), 32):
                some = order[k : k + 32]
                optimizer.zero_grad()
                layer(*batch([X[i] for i in some], [y[i] for i in some])).backward()
                optimizer.step()
            if held is not None:
                with torch.no_grad():
                    parts = range(0, len(held[0]), 256)
                    loss = float(
                        np.mean([float(layer(*batch(held[0][k : k + 256], held[1][k : k + 256]))) for k in parts])
                    )
                if loss > best[1]:
                    break
                best = epoch + 1, loss
        return layer, *best

    X, y = sentences(n, width, 0)
    new, truth = sentences(max(int(n * TEST), 1), width, 1)
    told("data", 0.0, 0.0)
    begun, fifth = time.process_time(), n // 5
    held = X[:fifth], y[:fifth]
    tried = {rate: train(X[fifth:], y[fifth:], rate, 20, held)[1:] for rate in (1e-3, 1e-2)}
    rate = min(tried, key=lambda rate: tried[rate][1])
    layer, *_ = train(X, y, rate, tried[rate][0])
    seconds = time.process_time() - begun
    begun = time.process_time()
    with torch.no_grad():
        wrong = error([layer.tag(torch.from_numpy(x)) for x in new], truth)
    epochs = sum(min(epochs + 1, 20) for epochs, _ in tried.values()) + tried[rate][0]
    note = f"torch {torch.__version__}; rate {rate:g}, {tried[rate][0]} epochs, {epochs} in all"
    told("CRF layer, tuned", seconds, wrong, f"{note}; prediction {time.process_time() - begun:.2f} s")
    begun = time.process_time()
    layer, *_ = train(X, y, rate, tried[rate][0])
    told("CRF layer, the last training alone", time.process_time() - begun, wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--torch", default=sys.executable, help="an interpreter that has torch")
    parser.add_argument("--side", choices=("ours", "torch"), help="this process alone")
    args = parser.parse_args()
    if args.side:
        (ours if args.side == "ours" else crf)(args.sentences, args.width)
        return
    size = f"{args.sentences:,} sentences, {args.width} numbers a token, {LABELS} labels"
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; {size}")
    print(f"  {'':<38}{'CPU s':>8}{'token error':>13}{'peak GB':>9}")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    for side, python in (("ours", sys.executable), ("torch", args.torch)):
        command = [python, __file__, "--side", side, "--sentences", str(args.sentences), "--width", str(args.width)]
        done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            row = json.loads(line)
            numbers = f"{row['cpu']:>8.2f}{row['error']:>13.4f}" if row["cpu"] else f"{'':>21}"
            print(f"  {row['what']:<38}{numbers}{row['peak']:>9.2f}  {row['note']}", flush=True)
        if done.returncode:
            print(f"  {side}: not measured: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
