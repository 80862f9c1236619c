"""A user's own compiled structure in any module: no file of Gapwise changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from memory_sink import read

from gapwise.stages.datasets import DataError, open_dataset
from gapwise.stages.problems.compiled import sources_fingerprint
from gapwise.stages.problems.contract import CHECKS, checked_shapes, sampled
from gapwise.stages.problems.python_structure import problem_class, read_problem
from gapwise.stages.problems.user_code import oracle_source

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with the structure and its helper, as a user has it."""
    for name in ("sign_structure.py", "sign_helper.py"):
        shutil.copy(SUPPORT / name, tmp_path / name)
    return tmp_path


def python(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(ROOT / ".src")])
    env = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "kernels"), **env}
    return subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_structure__keeps_the_contract() -> None:
    problem, rng = read_problem("sign_structure:Sign", "train", {"n": 6}), np.random.default_rng(0)
    checked_shapes(problem)
    for of in CHECKS.values():
        of(problem, 2, sampled(problem, 2, rng), rng)


REFUSED = {
    "nowhere:Sign": "nowhere:Sign: cannot import 'nowhere' .* .set PYTHONPATH",
    "half_structure:Half": r"half_structure:Half does not define d, local_ptr, .*scratch, read; expected what",
    "half_structure:Wrong": r"Wrong.label_ptr: expected int64 offsets from 0, shape \(7,\)",
    "half_structure:Costly": r"Costly.loss: train block 0: the loss of the truth must be 0, is 1",
}
HALF = """
from typing import NamedTuple
import numpy as np
from sign_structure import Sign

class Half(NamedTuple):
    n: int

class Wrong(Sign):
    @classmethod
    def read(cls, split, n):
        return cls(*Sign.read(split, n)._replace(label_ptr=np.arange(n)))

class Costly(Sign):
    def loss(self, i, y):
        return 1.0

"""


@pytest.mark.parametrize("name", REFUSED)
def test_reader__refuses_what_is_no_structure(name: str, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own / "half_structure.py").write_text(HALF)
    monkeypatch.syspath_prepend(str(own))
    monkeypatch.delitem(sys.modules, "half_structure", raising=False)
    oracle_source.cache_clear()
    with pytest.raises(DataError, match=f"dataset.module: .*{REFUSED[name]}"):
        read(open_dataset("python_structure", {"module": name, "arguments": {"n": 6}}))


def test_edit__of_what_the_module_imports_changes_key_and_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    structure_file, helper = tmp_path / "edited_sign.py", tmp_path / "edited_helper.py"
    structure_file.write_text((SUPPORT / "sign_structure.py").read_text().replace("sign_helper", "edited_helper"))
    shutil.copy(SUPPORT / "sign_helper.py", helper)
    monkeypatch.syspath_prepend(str(tmp_path))
    kind = problem_class("edited_sign:Sign")

    def now() -> tuple[str, str]:
        return sources_fingerprint.__wrapped__(kind), oracle_source.__wrapped__("edited_sign:Sign")

    states = [now(), now()]
    assert states[0] == states[1]
    for file in (helper, structure_file):
        file.write_text(f"{file.read_text()}EDITED = 1\n")
        states.append(now())
    for values in zip(*states, strict=True):
        assert len({*values}) == 3


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="without the JIT there is no cache of kernels")
def test_edit__is_recompiled(own: Path) -> None:
    use = (
        "import numpy as np; from gapwise.pipeline.structure_check import _oracle_driver; from sign_structure import Sign; "
        "print(_oracle_driver(P := Sign.read('train'))(P, np.array([9.0, 0.0, 0.0]), np.arange(20)))"
    )
    first = float(python(own, "-c", use).stdout)
    assert float(python(own, "-c", use).stdout) == first
    helper = own / "sign_helper.py"
    helper.write_text(helper.read_text().replace("2.0 * a", "-20.0 * a"))
    assert float(python(own, "-c", use).stdout) != first


RUN = """
from pathlib import Path
from in_process import here
from real_runs import Sandbox
from gapwise.pipeline.cli import carry_out
words = ["dataset=python_structure", "dataset.module=sign_structure:Sign", "path.eps=0.3", "tracking=none"]
sandbox = here(Sandbox(Path("runs").resolve(), [*words, "compute=serial"]))
print(sandbox.issue("solver.max_seconds=1e-6").err.splitlines()[-2])
sandbox.finish()
print((sandbox.run / "result.json").read_text().replace("\\n", ""))
carry_out(["predict", "--trust", str(sandbox.run), '{"split": "new", "n": 4}'])
"""


@pytest.mark.slow
def test_run__goes_on_where_it_stopped_is_verified_and_predicts(own: Path) -> None:
    """In a process of its own, without the JIT, which would compile the solver for the structure for a minute."""
    path = os.pathsep.join([str(own), str(ROOT / ".src"), str(SUPPORT)])
    done = python(own, "-c", RUN, NUMBA_DISABLE_JIT="1", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    stopped, told, *predicted = done.stdout.splitlines()
    assert "what was done is committed" in stopped
    result = json.loads(told)
    assert (result["problem"], result["status"]) == ({"name": "python_structure", "n": 20, "d": 3}, "CONVERGED")
    assert result["verify"]["certified"] is True
    assert result["evaluate"]["test_wrong_signs"] <= 2
    assert (predicted[0], len(predicted)) == ("block,predicted", 5)
