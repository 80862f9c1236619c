"""Stages that do almost nothing, with the real signatures, to test `pipeline.run` without solving.

`install()` puts them into sys.modules. The environment variable FAKE_STAGE says where to misbehave:
"solve:interrupt", "solve:sigterm", "verify:certificate", "featurize:data", "featurize:interrupt", "evaluate:bug",
"solve:time", "solve:wait", "solve:deaf", and for seed 1 "solve:die", "solve:die once". "solve:spread" uses the spread.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from judged import judged

from gapwise.stages.datasets import DataError


class CertificateError(RuntimeError):
    """Like that of stages.certify."""


class NotCompiling:
    """In place of `pipeline.compiling.Compiling`, which loads numba: a third of a second of each process."""

    seconds = 0.0

    def __init__(self, progress: Any, check: Any) -> None: ...

    def __enter__(self) -> NotCompiling:
        return self

    def __exit__(self, *raised: object) -> None: ...


class Features:
    def __init__(self, path: Path) -> None:
        self.meta = json.loads((path / "meta.json").read_text())


class FakeReader:
    structure = "multiclass"

    def files(self) -> dict[str, Path]:
        return {}

    def source(self) -> dict[str, Any]:
        return {"files": "fake"}


def misbehaves(behaviour: str) -> bool:
    return os.environ.get("FAKE_STAGE") == behaviour


def note(run_dir: Path, stage: str) -> None:
    """Record which stages ran, in order."""
    with (run_dir.parent / "calls.txt").open("a") as file:
        file.write(f"{stage}\n")


def wait_for(told: Callable[[], bool]) -> None:
    """A solve that goes on until it is told to stop; fails after a minute."""
    for _ in range(600):
        if told():
            return
        time.sleep(0.1)
    raise TimeoutError("nobody told")


def square(x: int) -> int:
    return x * x


def featurize(
    dataset: Any,
    target: Path,
    *,
    key: str,
    map_blocks: Any,
    report: Any,
    unchanged: Any = lambda: None,
    whole: Any = None,
) -> None:
    if target.exists():
        return
    note(target.parent, "featurize")
    if misbehaves("featurize:data"):
        raise DataError("horses/mask007.png: expected 160 x 120 as its image, got 80 x 60")
    if misbehaves("featurize:interrupt"):
        signal.raise_signal(signal.SIGINT)
    assert list(map_blocks(square, range(5))) == [0, 1, 4, 9, 16]
    report(5, 5, "images")
    unchanged()
    target.mkdir(parents=True)
    (target / "meta.json").write_text(json.dumps({"n": 5, "d": 3, "key": key}))


def damaged(target: Path) -> None:
    return None


def open_for_blocks(features: Path, split: str) -> tuple[str, None]:
    return split, None


def open_problem(features: Path, split: str, hold: bool = False) -> str:
    return split


def init_path(problem: Any, path: Any, spread: Any) -> Any:
    return types.SimpleNamespace(lam=0.5)


def trace() -> dict[str, np.ndarray]:
    rows = 6
    step = np.arange(rows)
    return {
        "breakpoint": step // 2, "lambda": 0.5 / (1 + step // 2), "passes": 1.0 + step, "oracle_calls": 5 * (step + 1),
        "steps": 10 * step, "seconds": 0.1 * step, "timestamp_ms": 1_790_000_000_000 + 100 * step,
        "gap": 1.0 / (1 + step), "dual": 0.1 * step, "primal": 0.2 * step,
    }  # fmt: skip


def write_path(target: Path, count: int = 3, losses: bool = True) -> None:
    import zarr

    group = zarr.open_group(target, mode="w")
    j = np.arange(count)
    columns = {
        "lambda": 0.5 / (1.0 + j), "gap": np.full(count, 0.08), "primal": 0.3 + 0.1 * j, "dual": 0.22 + 0.1 * j,
        "effective_passes": 2.0 + j, "oracle_calls": 10 + 5 * j, "seconds": 0.1 * (j + 1),
        "lambda_low": 0.5 / (2.0 + j),
        "status": np.zeros(count, np.int8),
    }  # fmt: skip
    if losses:
        columns |= {"train_loss": 0.3 / (1.0 + j), "test_loss": 0.2 + 0.05 * (j - 1.0) ** 2}
    for name, column in columns.items():
        group.create_array(name, data=column, dimension_names=("breakpoint",))
    meanings = ["CONVERGED", "PASS_LIMIT", "ORACLE_LIMIT", "TIME_LIMIT", "INTERRUPTED"]
    group.attrs.update(
        {
            "status_meanings": meanings,
            "n": 5,
            "d": 3,
            "eps": 0.1,
            "kappa": 0.9,
            "rule": "one_sided",
            "certainty": "exact",
            "lambda_top": 4.0,
        }
    )


@dataclass(frozen=True)
class Task:
    """The real one is in a module that loads numba."""

    problem: Any
    options: Any
    path: Any
    seed: int = 0
    start: Any = None
    initial: Any = None
    switches: bool = False


@dataclass(frozen=True)
class Spacing:
    every_passes: float = 0.0
    every_share: float = 0.0


@dataclass(frozen=True)
class Session:
    spread: Any = None
    report: Any = None
    stop: Any = None
    committed: Any = None
    every_seconds: float = 30.0


def solve(task: Task, run_dir: Path, *, session: Session, **ways: Any) -> str:
    note(run_dir, "solve")
    if task.seed == 13:
        raise ValueError("segmentation: block 7: unary is not finite")
    for behaviour, number in (("solve:interrupt", signal.SIGINT), ("solve:sigterm", signal.SIGTERM)):
        if misbehaves(behaviour):
            os.kill(os.getpid(), number)
    if misbehaves("solve:wait"):
        wait_for(session.stop)
        note(run_dir, "told")
    if misbehaves("solve:deaf"):
        time.sleep(60)
    if misbehaves("solve:die") or (misbehaves("solve:die once") and not (run_dir / "died").exists()):
        (run_dir / "died").touch()
        if task.seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    if session.stop():
        return "INTERRUPTED"
    if misbehaves("solve:spread"):
        assert session.spread.map_ranges(lambda a, b: b - a, [(0, 2), (2, 5)]) == [2, 3]
    counters = {"lambda": 0.5, "breakpoint": 0, "passes": 2.0, "gap": 0.08, "tolerance": 0.09, "oracle_calls": 48_123}
    session.report(counters)
    rows = np.stack(list(trace().values()), axis=1)
    session.committed(rows)
    (run_dir / "trace.zarr").mkdir(exist_ok=True)
    write_path(run_dir / "path.zarr")
    return "TIME_LIMIT" if misbehaves("solve:time") else "CONVERGED"


def verify(problem: Any, run_dir: Path, **ways: Any) -> dict[str, Any]:
    note(run_dir, "verify")
    if misbehaves("verify:certificate"):
        raise CertificateError("verify: the certificate fails at lambda = 0.25: gap 0.2 > 0.1")
    record = {
        "certified": True, "epsilon": 0.1, "max_gap": 0.08, "max_rebuild_error": 1e-15, "max_simplex_error": 0.0,
    }  # fmt: skip
    record["verdict"] = judged(findings={"largest_gap": 0.08}).record()
    (run_dir / "verify.json").write_text(json.dumps(record))
    return record


def asked_for(path: Any, method: str, *, seed: int, key: str, status: str | None = None, certainty: str = "") -> None:
    assert status is not None


def evaluate(features: Path, run_dir: Path, **ways: Any) -> dict[str, Any]:
    note(run_dir, "evaluate")
    if misbehaves("evaluate:bug"):
        raise KeyError("a bug")
    record = {"best_lambda": 0.25, "train_loss": 0.15, "test_loss": 0.2, "test_accuracy": 0.9}
    (run_dir / "metrics.json").write_text(json.dumps(record))
    return record


def draw(run_dir: Path, features: Any, formats: tuple[str, ...]) -> list[Path]:
    note(run_dir, "figures")
    (run_dir / "figures").mkdir(exist_ok=True)
    target = run_dir / "figures" / "path.png"
    target.write_bytes(b"picture")
    return [target]


def write_report(run_dir: Path, features: Any, target: Path | None = None) -> Path:
    if misbehaves("report:bug"):
        raise KeyError("a bug")
    (run_dir / "report.html").write_text("<title>report</title>")
    return run_dir / "report.html"


def write_sweep_report(folder: Path, target: Path | None = None) -> None:
    (folder / "report.html").write_text("<title>sweep</title>")


def no_path(path, names=None):
    """Fake solves leave no path.zarr."""
    raise FileNotFoundError(path)


def modules() -> dict[str, types.ModuleType]:
    """Module name to fake module."""
    parts: dict[str, dict[str, Any]] = {
        "gapwise.stages.featurize": {
            "featurize": featurize,
            "open_for_blocks": open_for_blocks,
            "open_problem": open_problem,
            "damaged": damaged,
        },
        "gapwise.stages.init_path": {"init_path": init_path},
        "gapwise.stages.solve": {"solve": solve, "Task": Task, "Spacing": Spacing, "Session": Session},
        "gapwise.stages.solver.counts": {"TRACE": tuple(trace()), "CERTIFIED": "certified"},
        "gapwise.stages.verify": {"verify": verify, "asked_for": asked_for, "CertificateError": CertificateError},
        "gapwise.stages.evaluate": {"evaluate": evaluate},
        "gapwise.stages.reports.run_figures": {"draw": draw},
        "gapwise.stages.reports.page": {"write_report": write_report},
        "gapwise.stages.reports.page.sweep": {"write_sweep_report": write_sweep_report},
        "gapwise.stages.datasets.horses_sample": {
            "open": lambda options: FakeReader(),
            "VALIDATION": {"scenes": ("n_validation",)},
        },
        "gapwise.storage.features": {"open_features": Features, "Features": Features},
        "gapwise.storage.results": {"read_trace": lambda run: trace(), "read_path": no_path},
    }
    made = {}
    for name, content in parts.items():
        made[name] = types.ModuleType(name)
        made[name].__file__ = __file__
        made[name].__dict__.update(content)
    return made


def install() -> None:

    sys.modules.update(modules())
    from gapwise.pipeline import compiling, job
    from gapwise.stages import datasets

    compiling.Compiling = NotCompiling
    if not misbehaves("solve:spread"):
        job.Job.spread = None  # making one loads numba too
    datasets.open_dataset = lambda name, options: FakeReader()


if __name__ == "__mp_main__":  # in a sweep's worker
    install()
if __name__ == "__main__":
    install()
    from gapwise.pipeline.entry import main

    sys.exit(main())
