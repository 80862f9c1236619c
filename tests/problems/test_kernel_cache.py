"""numba's cache on disk: named after what kernels may run, shared by content, and whatever happens to its files."""

from __future__ import annotations

import importlib.util
import inspect
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile
from solved import options_of, path_of
from tiny import TINY
from waiting import python

from gapwise.stages import evaluate
from gapwise.stages.certify import oracle as certificates
from gapwise.stages.problems import compiled, kernel_cache
from gapwise.stages.problems.kernel_cache import MARK, ByContent
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver import oracles
from gapwise.stages.solver.block import loop
from gapwise.stages.verify import verify

STAGES = Path(compiled.__file__).parents[1]
DRIVERS = {Path(module.__file__).stem: Path(module.__file__) for module in (loop, oracles, evaluate)}
DRIVERS |= {"answers": Path(certificates.__file__)}
STRUCTURES = {name: type(TINY[name]()) for name in ("chain", "multiclass", "segmentation")}
EVERY = {(caller, name) for caller in DRIVERS for name in STRUCTURES}
EDITS = {
    "problems/protocol.py": EVERY,
    "problems/chain/viterbi.py": {(caller, "chain") for caller in DRIVERS},
    "problems/images/maxflow.py": {(caller, "segmentation") for caller in DRIVERS},
    "solver/supports.py": {(caller, name) for caller in ("loop", "oracles") for name in STRUCTURES},
    "solver/block/step.py": {("loop", name) for name in STRUCTURES},
    "certify/kernels.py": set(),  # of these drivers, none calls them
    "solver/options.py": set(),
}
"""The keys that change with a file."""

SOURCE = """
from numba import njit

@njit(cache=True)
def more(x):
    return x + 1
"""
HARMS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "first byte": lambda content: content[:1],
    "half": lambda content: content[: len(content) // 2],
    "without its end": lambda content: content[:-1],
    "zeros": lambda content: bytes(len(content)),
    "text": lambda content: b"garbage",
    "another object": lambda content: b"N.",
    "a changed byte": lambda content: content[: len(content) // 2] + b"\xa5" + content[len(content) // 2 + 1 :],
}


def loaded(file: Path, name: str = "gapwise.module") -> Any:
    """The compiled function of a module, which is imported anew as another process would."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.more


def hits(function: Any) -> int:
    """How many of its compiled forms came from the disk, after a call."""
    assert function(1) == 2
    return sum(function.stats.cache_hits.values())


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `stages` whose files count instead of those of this process, with a kernel cache of its own."""
    copy = tmp_path / "stages"
    for room in ("problems", "solver", "certify", "evaluate.py"):
        target = copy / room
        (shutil.copytree if (STAGES / room).is_dir() else shutil.copy)(STAGES / room, target)

    def places(package: str) -> list[Path]:
        return [copy.joinpath(*package.split(".")[2:])]

    def files_of(kind: type) -> dict[str, Path]:
        within = kind.__module__.startswith("gapwise.")
        return {kind.__module__: copy / Path(inspect.getfile(kind)).relative_to(STAGES)} if within else {}

    monkeypatch.setenv("GAPWISE_KERNELS", str(tmp_path / "kernels"))
    monkeypatch.setattr(kernel_cache, "_folders_of", places)
    monkeypatch.setattr(compiled, "_files_of", files_of)
    monkeypatch.setattr(kernel_cache, "STARTED", float("inf"))
    return copy


def keys(tree: Path) -> dict[tuple[str, str], str]:
    """The fingerprint of every driver and structure, as a new process would compute it."""
    kernel_cache._read_once.cache_clear()
    kernel_cache._file_of.cache_clear()
    try:
        return {
            (caller, name): compiled.sources_fingerprint.__wrapped__(structure, tree / file.relative_to(STAGES))
            for caller, file in DRIVERS.items()
            for name, structure in STRUCTURES.items()
        }
    finally:
        kernel_cache._read_once.cache_clear()
        kernel_cache._file_of.cache_clear()


def test_key__does_not_change_with_a_docstring_a_comment_or_an_annotation(tree: Path) -> None:
    before, edited = keys(tree), 0
    for file in tree.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        new = text.replace('"""', '"""Edited. ', 1).replace(": np.ndarray", ": object").replace(" -> None:", ":")
        new = new.replace("if TYPE_CHECKING:", "if TYPE_CHECKING:\n    import gapwise.stages.solver.options")
        file.write_text(f"# A comment.\n\n{new}# Another.\n", encoding="utf-8")
        edited += new != text
    assert edited > 80
    assert keys(tree) == before


@pytest.mark.parametrize("name", EDITS)
def test_key__changes_where_an_edited_file_can_be_reached(tree: Path, name: str) -> None:
    before = keys(tree)
    with (tree / name).open("a", encoding="utf-8") as file:
        file.write("\nEDITED = 1\n")
    after = keys(tree)
    assert {key for key in EVERY if after[key] != before[key]} == EDITS[name]


def test_key__of_a_file_edited_while_the_process_runs_is_nobody_elses(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may have imported what the file said before."""
    kept = keys(tree)
    monkeypatch.setattr(kernel_cache, "STARTED", 0.0)
    mine = keys(tree)
    monkeypatch.setattr(kernel_cache, "UNKNOWN", "another process")
    theirs = keys(tree)
    assert all(len({kept[key], mine[key], theirs[key]}) == 3 for key in EVERY)
    future = {"ns": (2**62, 2**62)}  # as a clock that was wrong leaves it
    for file in tree.rglob("*.py"):
        os.utime(file, **future)
    assert keys(tree) == kept


def test_key__does_not_trust_a_damaged_answer(tree: Path, tmp_path: Path) -> None:
    before = keys(tree)
    answers = [*(tmp_path / "kernels" / "sources").iterdir()]
    own = [*DRIVERS.values(), *(Path(inspect.getfile(kind)) for kind in STRUCTURES.values())]
    files = {tree / file.relative_to(STAGES) for file in own}
    assert len(answers) == len({file.read_bytes() for file in (*files, *kernel_cache.reached(files).values())})
    for number, file in enumerate(answers):
        content = file.read_bytes()
        file.write_bytes([b"", content[:70], content.replace(b"a", b"b"), content.partition(MARK)[0]][number % 4])
    assert keys(tree) == before


@pytest.mark.interpreted
@pytest.mark.parametrize("name", ["chain_costs", "segmentation"])
def test_key__covers_every_file_that_a_kernel_calls(name: str, tmp_path: Path) -> None:
    called: dict[tuple[str, type], set[str]] = {}
    inside: list[Any] = []

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and inside:
            called[inside[1]].add(code.co_filename)
        elif event == "call" and "fingerprint" in code.co_freevars:  # the function that a driver has built
            problem = next(value for value in frame.f_locals.values() if hasattr(value, "local_ptr"))
            inside[:] = frame, (code.co_filename, type(problem))
            called.setdefault(inside[1], set())
        elif event == "return" and inside and frame is inside[0]:
            inside.clear()

    problem, path = TINY[name](), path_of(rule="two_sided", lambda_min=0.5)
    sys.setprofile(watch)
    try:
        for options in (options_of(), options_of(method="accelerated"), options_of(method="mpbcfw")):
            solve(Task(problem, options, path), tmp_path / options.method, key="k")
        verify(problem, tmp_path / options.method)
        evaluate.predict(problem, np.zeros(problem.d))
    finally:
        sys.setprofile(None)
    assert len(called) > 8
    for (caller, structure), files in called.items():
        start = [Path(caller), *(file for kind in structure.__mro__ for file in compiled._files_of(kind).values())]
        known = {str(file) for file in (*start, *kernel_cache.reached(start).values())}
        assert {file for file in files if file.startswith(str(STAGES))} <= known, (caller, structure)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_kernel__is_compiled_again_after_an_edit_of_its_code_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAPWISE_KERNELS", str(tmp_path / "kernels"))
    monkeypatch.setattr(kernel_cache, "STARTED", float("inf"))
    for folder, text, expected in (
        ("one", SOURCE, 0),
        ("a copy", SOURCE, 1),
        (
            "of other words",
            SOURCE.replace("(x):", '(x: int) -> int:\n    """x + 1"""').replace("\n@", "\n\n# More.\n@"),
            1,
        ),
        ("of other code", SOURCE.replace("x + 1", "1 + x"), 0),
    ):
        source = tmp_path / folder / "module.py"
        source.parent.mkdir()
        source.write_text(text)
        assert hits(loaded(source)) == expected, folder
    assert ByContent.from_function(loaded(source, "module").py_func, str(source)) is None  # numba's own serve


def test_saved__at_the_same_time_do_not_take_each_others_place(tmp_path: Path) -> None:
    one, two = (IndexDataCacheFile(str(tmp_path), "kernel", "stamp") for _ in range(2))
    one.save("a", "code of a")
    two._load_index = dict  # it looked before
    two.save("b", "code of b")
    assert (one.load("a"), one.load("b")) == (None, "code of b")


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_cache__that_is_damaged_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAPWISE_KERNELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "STARTED", float("inf"))
    source = tmp_path / "source" / "module.py"
    source.parent.mkdir()
    source.write_text(SOURCE)
    assert (hits(loaded(source)), hits(loaded(source))) == (0, 1)
    folder = tmp_path / "gapwise" / "kernels"
    (index,), (data,) = folder.rglob("*.nbi"), folder.rglob("*.nbc")
    for file in (index, data):
        for name, harm in HARMS.items():
            file.write_bytes(harm(file.read_bytes()))
            assert (hits(loaded(source)), hits(loaded(source))) == (0, 1), (file.suffix, name)
    data.unlink()
    assert (hits(loaded(source)), hits(loaded(source))) == (0, 1)
    for file in (index, data):  # as numba alone writes it
        file.write_bytes(file.read_bytes().partition(MARK)[0])
    assert hits(loaded(source)) == 1


CALLERS = """
import sys
import numpy as np
from numba import njit, objmode
from gapwise.stages.problems.compiled import COUNTED
from gapwise.stages.problems.protocol import JIT

if sys.argv[1] == "first":
    @njit(**COUNTED)
    def into_python(x):
        with objmode(y="float64"):
            y = float(x.sum())
        return y
else:  # as what it gives to Python may have another order
    @njit(**COUNTED)
    def into_python(x):
        two = np.full(1, 2, np.int8)
        with objmode(y="float64"):
            y = float(two[0] * x.sum())
        return y

@njit(cache=True, **JIT)
def first(x):
    return into_python(x)

@njit(cache=True, **JIT)
def second(x):
    return into_python(x) + 0.0

print([globals()[name](np.ones(2)) for name in sys.argv[1:]])
"""


@pytest.mark.slow
def test_kernels__of_two_processes_that_call_python_work_in_a_third(tmp_path: Path) -> None:
    (tmp_path / "callers.py").write_text(CALLERS)
    for names, values in ((["first"], "[2.0]"), (["second"], "[4.0]"), (["first", "second"], "[2.0, 4.0]")):
        assert python(tmp_path / "callers.py", *names, GAPWISE_KERNELS=str(tmp_path)).stdout == f"{values}\n"


def test_install__without_numbas_private_names_is_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delattr("numba.core.caching.IndexDataCacheFile")
    kernel_cache.install()
    assert "damaged kernels are not seen to" in caplog.text
