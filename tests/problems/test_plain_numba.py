"""Without numba's private parts: the same bits, one line in the log, and each way in which a release may lack them."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest
from tiny import multiclass
from waiting import python

from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.path.walk import begin

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def wide_multiclass() -> Problem:
    """Rows of 67 features, so that sums are of vectors, unrolled loops and a rest."""
    return multiclass(n=9, width=67, classes=11)


def bits_of_solve() -> str:
    """Weights, duals and gaps of blocks after a solve by the default method."""
    path = PathOptions(rule="single", lam=0.3, tolerance=1e-6)
    solver = begin(
        wide_multiclass(), method_options(cache=CacheOptions(kind="gap"), max_passes=60.0), path, None, seed=0
    )
    _, point = solver.solve(Goal(path.tolerance), lambda *_: None)
    S = solver.it.state
    return np.concatenate([S.u, S.ell, S.gap, [point.dual, point.primal]]).tobytes().hex()


def in_another_process(script: str, kernels: Path, **env: str) -> str:
    """What `script` prints; nothing that this process compiled is loaded."""
    done = python("-c", script, cwd=Path(__file__).parent, GAPWISE_KERNELS=str(kernels), **env)
    return done.stdout.strip() + done.stderr.strip()


MODE = "from gapwise.stages.problems.compiled import MODE; print(MODE)"


@pytest.mark.slow
def test_solve__has_the_same_bits_either_way(tmp_path: Path) -> None:
    script = "import test_plain_numba as t; print(t.bits_of_solve())"
    assert in_another_process(script, tmp_path, GAPWISE_PLAIN_NUMBA="1") == bits_of_solve()


def test_switch__chooses_how_functions_are_compiled(tmp_path: Path) -> None:
    told = "import logging; logging.basicConfig(level='INFO', format='%(message)s'); "
    output = in_another_process(told + MODE, tmp_path, GAPWISE_PLAIN_NUMBA="1")
    assert output == "plainGAPWISE_PLAIN_NUMBA is set: plain njit; steps take at least a third longer"


REFUSING = (
    "import numba; numba.__version__ = '99.0.0'; from numba.core.registry import CPUDispatcher as D; before = D.__init__\n"
    "def D_init(self, *, targetoptions, **rest):\n"
)
LACKING = {
    "a name": (
        "import numba.core.codegen as c; del c.JITCodeLibrary",
        r"ImportError: cannot import name 'JITCodeLibrary'",
    ),
    "wrappers": (
        REFUSING + "    kept = {k: v for k, v in targetoptions.items() if not k.startswith('no_c')}\n"
        "    before(self, targetoptions=kept, **rest)",
        "RuntimeError: numba makes wrappers of functions that ask for none",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("part", LACKING)
def test_release__that_lacks_a_part_gets_plain_njit_and_a_line_in_the_log(part: str, tmp_path: Path) -> None:
    change, reason = LACKING[part]
    replaced = "D.__init__ = D_init\n" if "D_init" in change else ""
    use = "from gapwise.stages.problems.protocol import dot; import numpy as np; a = np.ones(3); print(dot(a, a))"
    output = in_another_process(f"{change}\n{replaced}{MODE}\n{use}", tmp_path, GAPWISE_PLAIN_NUMBA="0")
    assert output.startswith("plain\n3.0")
    assert output.removeprefix("plain\n3.0").startswith("numba ")
    assert reason in output
    assert output.endswith("; plain njit serves, and steps take at least a third longer")
    assert len(output.splitlines()) == 2  # one line in the log, right behind what is printed


@pytest.mark.slow
def test_release__without_the_option_for_reference_counts_does_without(tmp_path: Path) -> None:
    change = (
        REFUSING
        + "    assert '_nrt' not in targetoptions, 'unknown'\n    before(self, targetoptions=targetoptions, **rest)\n"
    )
    use = "from gapwise.stages.problems.protocol import dot; import numpy as np; a = np.ones(3); print(dot(a, a))"
    output = in_another_process(f"{change}D.__init__ = D_init\n{use}", tmp_path, GAPWISE_PLAIN_NUMBA="0")
    assert output == "3.0numba 99.0.0: no option _nrt (unknown): steps take several times as long"
