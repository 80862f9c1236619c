"""A data set and a structure of one's own, one new file each in one folder: found, and run end to end by a command.

No file of Gapwise changes. The process runs without the JIT, to take seconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from toys import TOYS

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

CALLED = {
    "datasets/clouds.py": ("featurize",),
    "problems/sign.py": ("build", "scores", "max_oracle", "push", "decode"),
}
"""Functions of each file that must have been called; with the JIT off, steps call Python functions."""


def test_toys__give_a_certified_path(tmp_path: Path) -> None:
    texts = {**TOYS, "conf/dataset/clouds.yaml": "name: clouds\nn: 20\nshift: 0.5\n"}
    for name, text in texts.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text, encoding="utf-8")
    path = os.pathsep.join(str(part) for part in (ROOT, ROOT / "tests" / "support"))
    env = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "GAPWISE_PARTS": str(tmp_path / "own"),
           "GAPWISE_RUNS": str(tmp_path / "runs")}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    wanted = {f"{file}: {name}" for file, names in CALLED.items() for name in names}
    assert wanted <= {*json.loads(done.stdout.splitlines()[-1])}
    (file,) = tmp_path.glob("runs/clouds-*/result.json")
    result = json.loads(file.read_text())
    assert result["problem"] == {"name": "clouds", "n": 20, "d": 3}
    assert result["verify"]["certified"]
    assert 0.0 <= result["evaluate"]["test_loss"] < 0.4
