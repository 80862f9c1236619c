"""Which folder may import which: read off the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("pipeline", "stages", "storage")
OURS = "gapwise"
EVERYWHERE = ("gapwise.parts", "gapwise.records", "gapwise.stages.Stopped")
"""What every room may import, and what imports nothing of the project."""
KERNELS = (
    "gapwise.stages.problems.protocol",
    "gapwise.stages.problems.capabilities",
    "gapwise.stages.problems.certainty",
    "gapwise.stages.problems.marginals",
    "gapwise.stages.problems.moves",
    "gapwise.stages.problems.compiled",
    "gapwise.stages.problems.inner",
    "gapwise.stages.problems.metric",
    "gapwise.stages.problems.one_type",
    "gapwise.stages.problems.operations",
    "gapwise.stages.problems.prefetch",
    "gapwise.stages.problems.simd",
    "gapwise.stages.problems.stored",
    "gapwise.stages.problems.weightless",
)
PIPELINE_ONLY = ("hydra", "omegaconf", "dask", "distributed", "mlflow", "dvc")


def sources() -> list[Path]:
    return sorted(path for room in FOLDERS for path in (ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(module, is deferred) of every import: deferred are those in a function and those under TYPE_CHECKING."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    deferred = {
        id(node)
        for part in ast.walk(tree)
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        or (isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING")
        for node in ast.walk(part)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name, id(node) in deferred
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            for name in node.names:
                yield f"{node.module}.{name.name}", id(node) in deferred


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def allowed(path: Path) -> tuple[str, ...]:
    """Packages of the project that `path` may import, besides EVERYWHERE."""
    parts = path.relative_to(ROOT).parts
    if parts in (("pipeline", "api", "parts.py"), ("pipeline", "api", "records.py")):
        return ()
    if parts[0] == "storage":
        return ("gapwise.storage",)
    if parts[0] == "pipeline":
        return (OURS,)
    if parts[1] == "datasets":
        return ("gapwise.stages.datasets", "gapwise.stages.problems")
    if parts[1] == "problems":
        return ("gapwise.stages.problems",)
    if parts[1] == "solver":
        return ("gapwise.stages.solver", "gapwise.stages.problems.parallel", *KERNELS)
    if parts[1] == "certify":
        return ("gapwise.stages.certify", "gapwise.stages.problems.parallel", "gapwise.stages.problems")
    if parts[1] == "parallel.py":
        return KERNELS
    return ("gapwise.stages", "gapwise.storage")


def breaks(path: Path) -> list[str]:
    """Imports of `path` that its room does not allow."""
    wrong = []
    for module, deferred in imports(path):
        if within(module, OURS) and not within(module, *allowed(path), *EVERYWHERE):
            wrong.append(module)
        if within(module, *FOLDERS):
            wrong.append(f"{module}: begins with gapwise")
        if within(module, *PIPELINE_ONLY) and path.relative_to(ROOT).parts[0] != "pipeline":
            wrong.append(module)
        if within(module, "mlflow") and not deferred:
            wrong.append(f"{module} runs at import")
    return wrong


def wrong_in(check: Callable[[Path], list[str]]) -> dict[str, list[str]]:
    """What a check finds in the project's files, by file."""
    return {str(path.relative_to(ROOT)): wrong for path in sources() if (wrong := check(path))}


def test_imports__go_down_the_floors() -> None:
    assert wrong_in(breaks) == {}


PRIVATE_ROOMS = ("zarr.core",)
"""Modules that their project calls private, though no name says so."""


def private(path: Path) -> list[str]:
    """Private names that `path` imports from other modules, private modules of other packages, and PRIVATE_ROOMS."""
    names_of_others = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and within(node.module or "", *PRIVATE_ROOMS):
            names_of_others.append(str(node.module))
        if isinstance(node, ast.ImportFrom) and within(node.module or "", OURS):
            names = [f"{node.module}.{name.name}" for name in node.names]
            package, _, last = str(node.module).rpartition(".")
            if last.startswith("_") and package != module_of(path.parent / "__init__.py"):
                names_of_others.append(str(node.module))
            names_of_others += [name for name in names if re.match("_(?!_)", name.rpartition(".")[2])]
    return names_of_others


def test_private_names__are_imported_by_nobody_else() -> None:
    assert wrong_in(private) == {}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("from gapwise.stages.solve import _x", True),
        ("from gapwise.stages.solve import (\n    a,\n    _x,\n)", True),
        ("from gapwise.pipeline.model_formats._code import x", True),
        ("from gapwise.stages._mine import x", False),
        ("from gapwise.stages.solve import x as _x", False),
        ("from numba.core.caching import _CacheLocator", False),
        ("from zarr.core.sync import sync", True),
        ("from zarr.codecs import ZstdCodec", False),
        ("from gapwise import __version__", False),
    ],
)
def test_private__sees_them(line: str, wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "stages" / "x.py"
    file.parent.mkdir()
    file.write_text(line)
    monkeypatch.setitem(private.__globals__, "ROOT", tmp_path)
    assert bool(private(file)) is wrong


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = (OURS, *(parts[2:] if parts[:2] == ("pipeline", "api") else parts))
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def circle(files: dict[str, Path]) -> list[str]:
    """Modules that import each other in a circle, wherever the import stands; [] if there is none."""
    arrows: dict[str, set[str]] = {}
    for name, path in files.items():
        modules = {module for module, _ in imports(path) if within(module, OURS)}
        known = {module if module in files else module.rpartition(".")[0] for module in modules}
        arrows[name] = (known & files.keys()) - {name}
    finished: set[str] = set()

    def visit(name: str, above: list[str]) -> list[str]:
        if name in above:
            return [*above[above.index(name) :], name]
        if name not in finished:
            for other in sorted(arrows[name]):
                if modules := visit(other, [*above, name]):
                    return modules
            finished.add(name)
        return []

    return next((modules for name in sorted(files) if (modules := visit(name, []))), [])


def test_imports__run_in_no_circle() -> None:
    assert circle({module_of(path): path for path in sources()}) == []


def test_circle__is_seen(tmp_path: Path) -> None:
    lines = {
        "gapwise.stages.a": "from gapwise.stages.b import x",
        "gapwise.stages.b": "def f():\n    import gapwise.stages.c",
        "gapwise.stages.c": "import gapwise.stages.a",
    }
    files = {name: tmp_path / f"{name}.py" for name in lines}
    for name, path in files.items():
        path.write_text(lines[name])
    assert circle(files) == ["gapwise.stages.a", "gapwise.stages.b", "gapwise.stages.c", "gapwise.stages.a"]
    files["gapwise.stages.c"].write_text("import gapwise.stages.d")
    assert circle(files) == []


@pytest.mark.parametrize(
    ("where", "line", "wrong"),
    [
        ("storage/x.py", "from gapwise.stages.solver import loop", True),
        ("stages/problems/x.py", "import gapwise.stages.solver.options", True),
        ("stages/datasets/x.py", "from gapwise.stages import solver", True),
        ("stages/datasets/x.py", "from gapwise.storage.features import FeatureWriter", True),
        ("stages/problems/x.py", "from gapwise.stages.problems import protocol", False),
        ("stages/solver/x.py", "from gapwise.stages.problems import chain", True),
        ("stages/solver/x.py", "from gapwise.stages.problems.protocol import JIT", False),
        ("stages/certify/x.py", "from gapwise.stages.solver.objective import Certificate", True),
        ("stages/certify/x.py", "from gapwise.storage.files import write_json", True),
        ("stages/certify/x.py", "from gapwise.stages.problems.parallel import Spread", False),
        ("stages/x.py", "import gapwise.pipeline.run", True),
        ("stages/x.py", "import gapwise", True),
        ("stages/x.py", "from gapwise import open_path", True),
        ("stages/x.py", "from gapwise.storage.paths import open_path", False),
        ("stages/x.py", "from storage.paths import open_path", True),
        ("pipeline/x.py", "import stages.solve", True),
        ("storage/x.py", "from gapwise import parts", False),
        ("pipeline/api/parts.py", "from gapwise.storage.paths import open_path", True),
        ("stages/problems/x.py", "from gapwise.records import Facts", False),
        ("pipeline/api/records.py", "from gapwise.stages.problems.kernel_types import Kernel", True),
        ("stages/x.py", "def f():\n    import mlflow", True),
        ("pipeline/x.py", "import mlflow", True),
        ("pipeline/x.py", "def f():\n    from mlflow import MlflowClient", False),
        ("pipeline/x.py", "if TYPE_CHECKING:\n    from mlflow import MlflowClient", False),
        ("pipeline/x.py", "if True:\n    from mlflow import MlflowClient", True),
    ],
)
def test_rule__sees_a_break(
    where: str, line: str, wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / where
    file.parent.mkdir(parents=True)
    file.write_text(line)
    monkeypatch.setitem(breaks.__globals__, "ROOT", tmp_path)
    assert bool(breaks(file)) is wrong


LONGEST = 200
"""Most lines of a class, from its first line to its last; in `pipeline` without the docstrings that pages print."""


def lines_of(part: ast.ClassDef, *, docstrings: bool) -> int:
    """Lines of a class, with or without docstrings."""
    total = int(part.end_lineno or part.lineno) - part.lineno + 1
    if docstrings:
        return total
    owners = [node for node in ast.walk(part) if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    texts = [node.body[0] for node in owners if ast.get_docstring(node) is not None]
    return total - sum(int(text.end_lineno or text.lineno) - text.lineno + 1 for text in texts)


def long_classes(path: Path) -> list[tuple[str, int]]:
    """(name, lines) of the classes of `path` over LONGEST."""
    printed = path.relative_to(ROOT).parts[0] == "pipeline"
    parts = [part for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(part, ast.ClassDef)]
    sizes = [(part.name, lines_of(part, docstrings=not printed)) for part in parts]
    return [(name, size) for name, size in sizes if size > LONGEST]


def test_classes__can_be_held_in_the_head() -> None:
    longer = [(str(path.relative_to(ROOT)), name) for path in sources() for name, _ in long_classes(path)]
    assert longer == []


@pytest.mark.parametrize(
    ("room", "rows", "wrong"), [("stages", 199, False), ("stages", 200, True), ("pipeline", 0, False)]
)
def test_long_classes__are_seen(
    room: str, rows: int, wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / room / "x.py"
    file.parent.mkdir()
    text = "" if rows else '    """' + "text\n" * 250 + '    """\n    x = 1\n'
    file.write_text("class Long:\n" + text + "    x = 1\n" * rows)
    monkeypatch.setitem(long_classes.__globals__, "ROOT", tmp_path)
    assert bool(long_classes(file)) is wrong


def supers(path: Path) -> list[int]:
    """Lines of `path` that call `super()`."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id == "super"]


def test_solver__is_composed_and_calls_no_super(tmp_path: Path) -> None:
    solver = sorted((ROOT / "stages" / "solver").rglob("*.py"))
    assert len(solver) > 100
    assert {str(path): lines for path in solver if (lines := supers(path))} == {}
    file = tmp_path / "x.py"
    file.write_text("class B(A):\n    def f(self):\n        return super().f()\n")
    assert supers(file) == [3]
