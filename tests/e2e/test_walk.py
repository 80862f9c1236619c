"""The walk in stages/README.md names the functions that README's first command executes, in that order, and no file is
executed that is not named there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRACED = f"""
import json, sys
root, first, seen = {str(ROOT)!r} + "/", {{}}, set()

def imports(frame):
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame is not None and frame.f_back is not None

def note(frame, event, arg):
    code = frame.f_code
    if event == "call" and code not in seen and code.co_filename.startswith(root) and not imports(frame):
        seen.add(code)
        file = code.co_filename.removeprefix(root).removeprefix(".src/gapwise/")  # the packages' links
        first.setdefault(f"{{file}}: {{code.co_name}}", len(first))

from gapwise.pipeline.entry import main
sys.setprofile(note)
try:
    code = main()
finally:
    sys.setprofile(None)
json.dump([code, first], open(sys.argv[-1].partition("=")[2] + ".json", "w"))
"""
TINY = ("n_train=4", "n_test=2", "n_validation=2", "colour_words=8", "sift_words=8", "superpixels=20")


def named() -> tuple[list[str], list[str]]:
    """`file: function` of every row of the walk, in order, and the other files that are named; files from the root."""
    text = (ROOT / "stages" / "README.md").read_text(encoding="utf-8")
    rows = text.partition("## From the command to the step")[2].partition("\n## ")[0]
    walk, _, others = rows.partition("**Also executed by this command**")
    cited, files = re.findall(r"`(\S+\.py): (\w+)`", walk), re.findall(r"`(\S+\.py)`", others.partition("\n")[2])
    names = [f"{os.path.normpath(f'stages/{file}')}: {function}" for file, function in cited]
    return names, [f"stages/{file}" for file in files]


@pytest.mark.slow
def test_walk__is_what_the_first_command_executes(tmp_path: Path) -> None:
    command = re.search(r"python -m (?:pipeline|gapwise) (\S+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert command is not None
    words = [command[1], "tracking=none", "compute=serial", "run.until=solve", "path.eps=0.3"]
    words += [*(f"dataset.{word}" for word in TINY), f"run.root={tmp_path / 'runs'}"]
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", TRACED, *words], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    code, first = json.loads((tmp_path / "runs.json").read_text())
    assert code == 0, done.stderr[-2000:]
    walk, others = named()
    assert len(walk) > 20
    assert [name for name in walk if name not in first] == []
    assert [(a, b) for a, b in pairwise(walk) if first[a] > first[b]] == []
    started = [name for name, when in first.items() if when >= first[walk[0]]]
    files = {name.partition(": ")[0] for name in started}
    of_stages = {file for file in files if file.startswith("stages/") and not file.startswith("stages/datasets/")}
    walked = {name.partition(": ")[0] for name in walk}
    assert not walked & {*others}
    assert sorted(of_stages - walked) == sorted(others)
