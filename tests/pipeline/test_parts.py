"""Parts of one's own: each kind is one new file in one folder, and no file of Gapwise changes.

A method, path rule with its verifier, and step rule work in the whole pipeline; a toy of each kind is found. (In runs too:
test_toys.py; a sweep's figure: test_sweep.py; a command: test_cli.py.) Runs without the JIT, to take seconds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from toys import HALVES, VERIFIER

from gapwise import parts
from gapwise.pipeline.config.settings import ConfigError, read
from gapwise.stages.solver.methods import methods
from gapwise.storage.paths import open_path
from gapwise.storage.results import read_path

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

SUBGRADIENT = '''
"""Stochastic subgradient descent with Pegasos steps: no dual point, so nothing is certified (LJ13 section 5)."""

import math
from dataclasses import asdict, dataclass, field

import numpy as np

from gapwise.stages.solver.capabilities import MethodCapabilities
from gapwise.stages.solver.codes import ORACLE_CALLS, STEPS
from gapwise.stages.solver.counts import Counts
from gapwise.stages.solver.ledger import restored_trace
from gapwise.stages.solver.objective import Certificate, squared_norm
from gapwise.stages.solver.options import MethodOptions, check
from gapwise.stages.solver.oracles import vertices_at
from gapwise.stages.solver.schedule import Schedule
from gapwise.stages.solver.solver import Recipe

SPECS = (
    ("w", ("feature",), "f8", "primal point"),
    ("steps", ("counter",), "i8", "steps and oracle calls"),
    ("trace", ("row", "column"), "f8", "a row a pass"),
)


@dataclass
class Options(MethodOptions):
    offset: float = 1.0

    def check(self):
        super().check()
        check("solver.offset", self.offset, self.offset > 0, "a number > 0")

    @property
    def capabilities(self):
        return MethodCapabilities(certifies=False)


@dataclass
class Point:
    problem: object
    ledger: object
    w: np.ndarray
    fresh: bool = False
    known_gap: float = math.nan
    hinges: np.ndarray = field(default_factory=lambda: np.empty(0))

    views = ("", "")

    def rebase(self): ...
    def primal(self): return self.w
    def supports(self): return None
    def block_gaps(self): return np.full(self.problem.n, np.nan)
    def dual_value(self): return math.nan
    def begin_lambda(self, lam, breakpoint, exact_due): self.ledger.begin_lambda(lam, breakpoint)
    def move_to(self, lam, warm_start): ...

    def mean_hinge(self):
        P = self.problem
        return float(np.sum(vertices_at(P, self.w, range(P.n), self.ledger.spread).hinge)) / P.n

    def packed(self):
        arrays = {"w": self.w.copy(), "steps": self.ledger.counters.copy(), "trace": self.ledger.packed_trace()}
        return arrays, {"counts": asdict(self.ledger.counts)}


def begin(problem, options, pool, seed, ledger):
    return Point(problem, ledger, np.zeros(problem.d))


def restored(problem, options, seed, arrays, attrs, ledger):
    ledger.counts, ledger.trace = Counts(**attrs["counts"]), restored_trace(arrays["trace"])
    ledger.counters[:] = arrays["steps"]
    return Point(problem, ledger, arrays["w"].copy())


def schedule(it, options, own_primal):
    P, ledger = it.problem, it.ledger

    def advance(goal):
        lam = ledger.counts.lam
        for i in range(P.n):
            size, scratch = P.local_ptr[i + 1] - P.local_ptr[i], P.scratch()
            theta, delta = np.zeros(size), np.zeros(size)
            truth = P.truth[P.label_ptr[i] : P.label_ptr[i + 1]]
            y = truth.copy()
            P.scores(i, it.w, theta)
            P.max_oracle(i, theta, y, scratch)
            P.add(i, truth, 1.0, delta)
            P.add(i, y, -1.0, delta)
            ledger.counters[[STEPS, ORACLE_CALLS]] += 1
            rate = 1.0 / (lam * (ledger.steps + options.offset))
            it.w *= 1.0 - rate * lam
            P.push(i, rate, delta, it.w)
        ledger.record(Certificate(lam, math.nan, it.mean_hinge(), math.nan, squared_norm(it.w), math.nan))
        status = ledger.limit()
        return (status, None) if status else None

    return Schedule(advance, rewrites_w=True)


METHOD = Recipe(schedule, begin, restored, SPECS)
'''

STEP = '''
"""Towards the corner, or from the worst atom to it, whichever is better: never away."""

from gapwise.stages.solver.steps import FW, PAIRWISE, StepRule

STEP = StepRule(FW + PAIRWISE)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "methods/subgradient.py": SUBGRADIENT,
        "rules/halves.py": HALVES,
        "certify/halves.py": VERIFIER,
        "steps/forwards.py": STEP,
        "conf/solver/subgradient.yaml": "name: subgradient\nmethod: subgradient\noffset: 2.0\nmax_passes: 60\n"
        "max_seconds: .inf\n",
    }
    for name, text in files.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(folder: Path, *words: str, code: int = 0, **env: str) -> tuple[Path, str]:
    """The pipeline on four pairs of labels, with the folder's parts; the run directory, and all it said."""
    path = os.pathsep.join(str(part) for part in (ROOT, ROOT / "tests" / "support"))
    command = [sys.executable, "-m", "pipeline", "parts=own", "tracking=none",
               "compute=serial", "dataset=python_oracle", "dataset.oracle=python_task:Pairs", *words]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1", "GAPWISE_RUNS": str(folder / "runs"), **env}
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=240)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    return Path(last.removeprefix("run: ")), said


def test_method__without_a_certificate_runs_to_the_end_and_says_so(folder: Path) -> None:
    made, said = run(folder, "solver=subgradient", "path=grid", "path.lambdas=[1.0,0.1]")
    arrays, attrs = read_path(made / "path.zarr")
    assert attrs["method"] == "subgradient"
    assert not attrs["certified"]
    assert np.isnan(arrays["gap"]).all()
    assert np.isnan(arrays["dual"]).all()
    assert (arrays["effective_passes"] == 60.0).all()
    assert "no dual point" in said
    assert "every certificate holds" not in said
    result = json.loads((made / "result.json").read_text())
    assert result["verify"]["certified"] is False
    assert (made / "figures" / "losses.png").is_file()
    assert open_path(made).weights_at(0.1).shape == (7,)
    trained = arrays["primal"]
    assert trained[1] < 1.0, "the loss of w = 0 is 1 at most, and the steps have made it smaller"


def test_method__is_refused_where_a_path_needs_a_dual_point(folder: Path) -> None:
    _, said = run(folder, "solver=subgradient", "path.lambda_min=0.1", code=2)
    assert "solver.method: expected one with a dual point" in said
    _, said = run(folder, "solver=subgradient", "solver.offset=-1", "path=single", code=2)
    assert "solver.offset: expected a number > 0" in said


@pytest.mark.long  # tests/stages/test_resume.py does it for every supplied method
def test_method__goes_on_from_what_it_has_committed(folder: Path) -> None:
    words = ("solver=subgradient", "path=single", "path.lambda=0.1", "checkpoint.every_seconds=0")
    whole, _ = run(folder, *words)
    other = {"GAPWISE_RUNS": str(folder / "other")}
    run(folder, *words, "solver.max_seconds=1e-9", code=1, **other)
    parts, _ = run(folder, *words, "solver.max_seconds=inf", **other)
    for name, array in read_path(whole / "path.zarr")[0].items():
        if name != "seconds":
            assert array.tobytes() == read_path(parts / "path.zarr")[0][name].tobytes(), name


def test_rule__and_step_rule_are_certified_like_any_other(folder: Path) -> None:
    made, said = run(folder, "path.rule=halves", "path.lambda_min=0.1", "solver.step=forwards")
    lams = read_path(made / "path.zarr")[0]["lambda"]
    assert (lams[1:] >= 0.5 * lams[:-1]).all()
    assert np.any(lams[1:] == 0.5 * lams[:-1])
    assert "every certificate holds" in said
    assert open_path(made).weights_at(float(0.7 * lams[0])).shape == (7,)


def test_names__of_parts_that_are_not_there_are_refused_with_those_there_are(folder: Path) -> None:
    _, said = run(folder, "solver.method=nothing", code=2)
    known = ", ".join(sorted([*methods(), "subgradient"]))
    assert f"solver.method: expected one of {known}, got 'nothing'" in said
    _, said = run(folder, "path.rule=nothing", code=2)
    assert (
        "path.rule: expected one of anytime, grid, halves, heuristic, one_sided, paper, single, two_sided, got 'nothing'"
        in said
    )
    _, said = run(folder, "solver.step=nothing", code=2)
    assert "solver.step: expected one of away, best, forwards, fw, pairwise, got 'nothing'" in said


COMMAND = """
from gapwise.pipeline.cli import Command
COMMAND = Command("A toy.", lambda parser: None, lambda asked: 0)
"""
BACKEND = """
from gapwise.storage.backend import location
from gapwise.storage.backend.objects import ObjectBackend

class ToyBackend(ObjectBackend):
    schemes = ("toy",)
    def locate(self, url):
        return location(url.replace("toy://", "memory://toy/"))
"""
ESTIMATOR = """
from gapwise.pipeline.estimators.multiclass import MulticlassSVM

class ToySVM(MulticlassSVM):
    pass
"""
CLAIM = """
from gapwise.stages.reports.papers.claim import Claim
CLAIMS = [Claim("toy", "nowhere", "Toys are fun", "smiles", ("toy",), None)]
"""
STAGE = """
from gapwise.pipeline.stage_graph import Stage
STAGE = Stage("toy", lambda job: {}, needs=("solve",))
"""
SECTION = """
ORDER, TITLE = 1, "A toy"
applies = content = None
"""
MOVE = """
from gapwise.stages.solver.block.moves import Move
from gapwise.stages.solver.steps import FW
MOVE = Move(FW)
"""
SAMPLER = """
from gapwise.stages.solver.block.samplers import Sampler
SAMPLER = Sampler(lambda S, flags, rng, order, k: 0)
"""
TOYS = {
    "backends": (BACKEND, "from gapwise.storage.backend import location; assert str(location('toy://a')) == 'memory://toy/a'"),
    "certify": ("VERIFIER = 'own'", "from gapwise.stages.certify.audit import verifier; assert verifier('toy') == 'own'"),
    "charts": ("applies = chart = None", "from gapwise.stages.reports import charts; "
               "import pkgutil; assert 'toy' in [m.name for m in pkgutil.iter_modules(charts.__path__)]"),
    "commands": (COMMAND, "from gapwise.pipeline.cli import command, known; assert 'toy' in known(); command('toy')"),
    "datasets": ("def open(options): return 'reader'", "from gapwise.stages.datasets import open_dataset; "
                 "assert open_dataset('toy', {}) == 'reader'"),
    "estimators": (ESTIMATOR, "import gapwise; assert issubclass(gapwise.ToySVM, gapwise.MulticlassSVM)"),
    "methods": ("METHOD = 'method'", "from gapwise.stages.solver.methods import method; assert method('toy') == 'method'"),
    "model_formats": ("ENDING = 'toy'", "from gapwise.pipeline.model_formats import form, known; "
                      "assert 'toy' in known() and form('toy').ENDING == 'toy'"),
    "moves": (MOVE, "from gapwise.stages.solver.block.moves import move, moves; assert 'toy' in moves(); move('toy')"),
    "papers": (CLAIM, "from gapwise.stages.reports.papers import claims; assert 'toy' in [c.name for c in claims()]"),
    "problems": ("def build(arrays, meta): ...", "from gapwise.stages.problems import structure, structures; "
                 "structure('toy'); assert 'toy' in structures()"),
    "rules": ("RULE = 'rule'", "from gapwise.stages.solver.path.rules import path_rule, rules; "
              "assert 'toy' in rules() and path_rule('toy') == 'rule'"),
    "run_figures": ("applies = lambda run: True", "from gapwise.stages.reports import run_figures; "
                    "import pkgutil; assert 'toy' in [m.name for m in pkgutil.iter_modules(run_figures.__path__)]"),
    "samplers": (SAMPLER, "from gapwise.stages.solver.block.samplers import sampler, samplers; "
                 "assert 'toy' in samplers(); sampler('toy')"),
    "sections": (SECTION, "from gapwise.stages.reports.page import _known; assert 'A toy' in [s.TITLE for s in _known()]"),
    "stages": (STAGE, "from gapwise.pipeline.stage_graph import flow; assert 'toy' in flow()"),
    "steps": (STEP, "from gapwise.stages.solver.steps import step_rule, steps; assert 'toy' in steps(); step_rule('toy')"),
    "sweep_figures": ("make = None", "from gapwise.stages.reports.sweep_figures import names; assert 'toy' in names()"),
}  # fmt: skip
"""The file of a toy of each kind, and what finds it."""


def test_kinds__are_the_packages_that_look_for_parts() -> None:
    """A package looks for parts of one kind, the one that `KINDS` names; of each kind there is a toy here."""
    packages = {}
    for file in (file for room in ("pipeline", "stages", "storage") for file in (ROOT / room).rglob("__init__.py")):
        for kind in re.findall(r'^__path__ = with_parts\(__path__, "(\w+)"\)$', file.read_text(), re.MULTILINE):
            packages[kind] = ".".join(("gapwise", *file.relative_to(ROOT).parts[:-1]))
    assert packages == parts.KINDS
    assert TOYS.keys() == parts.KINDS.keys()


def distribution(site: Path, **points: str) -> None:
    """What an installer would leave of a package with these entry points, without its modules."""
    info = site / "toys-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{parts.GROUP}]\n{lines}")


@pytest.mark.parametrize("where", ["one folder", "an installed package"])
def test_toys__of_every_kind_are_found(tmp_path: Path, where: str) -> None:
    root = tmp_path / "toys" / "parts"
    root.mkdir(parents=True)
    (root.parent / "__init__.py").touch()
    for kind, (text, _) in TOYS.items():
        (root / kind).mkdir()
        (root / kind / "toy.py").write_text(text, encoding="utf-8")
    (root / "conf" / "solver").mkdir(parents=True)
    (root / "conf" / "solver" / "toy.yaml").write_text("name: toy\n")
    code = "\n".join(finds for _, finds in TOYS.values())
    code += "\nfrom gapwise.pipeline.config import choices; assert 'toy' in choices('solver')"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    without = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert without.returncode != 0
    if where == "one folder":
        env["GAPWISE_PARTS"] = str(root)
    else:
        distribution(tmp_path, toys="toys.parts")
        env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_package__that_is_not_there_is_left_out_and_a_helper_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    distribution(tmp_path, broken="nowhere.parts", toys="toys_beside.parts")
    files = {name: tmp_path / "toys_beside" / name for name in ("__init__.py", "helper.py", "parts/problems/toy.py")}
    for file in files.values():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(parts.VARIABLE, raising=False)
    parts.installed.cache_clear()
    try:
        assert parts.installed() == {"toys": tmp_path / "toys_beside" / "parts"}
        assert [record.getMessage() for record in caplog.records] == [
            "entry point gapwise.parts: broken = 'nowhere.parts': expected a package with folders of parts; there is none"
        ]
        assert parts.sources(*parts.KERNELS) == {f"toys/{name}": file for name, file in files.items()}
        assert parts.files_beside(files["parts/problems/toy.py"]) == files
        assert parts.files_beside(Path(__file__)) == {}
        assert parts.modules("problems") == ["gapwise.stages.problems.toy"]
    finally:
        parts.installed.cache_clear()


def test_toys__do_not_go_before_parts_of_gapwise(tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "bcfw.py").write_text("raise AssertionError('never')")
    code = "from gapwise.stages.solver.methods import method; print(type(method('bcfw')).__name__)"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "GAPWISE_PARTS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout == "Recipe\n", done.stderr


def test_folder__that_is_not_there_is_refused(tmp_path: Path) -> None:
    for words, env, says in (
        (["parts=nowhere"], {}, "error: parts: expected a folder with parts of your own, got nowhere\n"),
        (["ls"], {"GAPWISE_PARTS": "no"}, "error: GAPWISE_PARTS: expected a folder with parts of your own, got no\n"),
    ):
        command = [sys.executable, "-m", "gapwise", *words]
        done = subprocess.run(command, env={**os.environ, **env}, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (2, says)


def test_folder__named_too_late_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(parts.VARIABLE, raising=False)
    with pytest.raises(ConfigError, match=r"parts: expected the folder as a word of the command, .* uses none"):
        read(composed(f"parts={tmp_path}"))
    monkeypatch.setenv(parts.VARIABLE, str(tmp_path))
    read(composed(f"parts={tmp_path}"))
    read(composed())


def test_words__name_the_folder_absolutely_for_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(parts.VARIABLE, "elsewhere")
    parts.use(["solver=bcfw", "parts=own"])
    assert os.environ[parts.VARIABLE] == str(tmp_path / "own")
    assert parts.use(["parts=null"]) == ["parts=null"]
    assert parts.folder() is None
    assert parts.use(["parts=own", "check", "my:Class", "parts=3"]) == ["check", "my:Class", "parts=3"]
    assert parts.folder() == tmp_path / "own"
