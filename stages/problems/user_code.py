"""Users' own code, named as ``module:Class``; and which of it may run: what the user names, not what only a file names.

A model or a run says which class or program it was made with. Whoever opens it may not have made it, so commands and
`gapwise.load_model` refuse such a name unless the user trusts the files or gives the name himself. Outside of `only`,
as in a run that the user's own command configures, everything is allowed. A command refuses in all threads of its process,
because threads that a library starts know nothing of what the thread has set that started them.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib
import inspect
import sysconfig
import traceback
from collections.abc import Collection, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType

from gapwise.parts import digest_of

OURS = ("gapwise",)
"""Packages that a key covers by versions, not by contents."""

Names = frozenset[str] | None
"""Code that may run, by name; None: all code."""

_here: ContextVar[Names] = ContextVar("here")
_everywhere: list[Names] = [None]
"""The last entry holds in threads that have set nothing."""


class UntrustedError(PermissionError):
    """Files name code that the user did not allow; nothing of it was run."""


@contextlib.contextmanager
def only(names: Collection[str] | None = (), *, everywhere: bool = False) -> Iterator[None]:
    """Inside the block, refuse all code of one's own but `names` (``module:Class`` or a command); None: refuse nothing.

    `everywhere`: also in threads that have no such block of their own, as in a process that carries out one command.
    """
    allowed = None if names is None else frozenset(names)
    if everywhere:
        _everywhere.append(allowed)
    before = _here.set(allowed)
    try:
        yield
    finally:
        _here.reset(before)
        if everywhere:
            _everywhere.pop()


def permit(name: str, what: str) -> None:
    """Raise UntrustedError, which says `what` would have been done, unless code of this name is allowed."""
    allowed = _here.get(_everywhere[-1])
    if allowed is not None and name not in allowed:
        raise UntrustedError(
            f"{name!r} is named by these files alone, and using them would {what}; nothing was run. If you trust whoever "
            "made them, give predict --trust; in Python trust=True, or the name itself as oracle=…"
        )


@functools.cache
def oracle_source(oracle: str) -> str:
    """Hash of the code behind ``module:Class``; part of the features' key, because results depend on the oracle.

    It covers the module's file, or all Python files of its package, and whatever they import, directly or not, from the same
    folder. It does not cover installed packages, files loaded in other ways, or data: `Oracle.files` declares those. Classes
    of Gapwise itself have no hash.
    """
    module = user_module(oracle)
    if module.__name__.partition(".")[0] in OURS:
        return "ours"
    return digest_of(own_files(module))[:12]


def own_files(module: ModuleType) -> dict[str, Path]:
    """The Python files that a user's module consists of, by their names relative to the folder it is imported from."""
    try:
        source = inspect.getsourcefile(module)
    except TypeError:  # a notebook has no file
        source = None
    if source is None:
        return {}
    root = Path(source).resolve().parents[module.__name__.count(".") + (Path(source).name == "__init__.py")]
    installed = root in {Path(folder).resolve() for folder in sysconfig.get_paths().values()}
    files: dict[str, Path] = {}
    to_see = [module.__name__.partition(".")[0]]
    while to_see:
        name = to_see.pop()
        for file in _files_of(root, name):
            relative = file.relative_to(root).as_posix()
            if relative not in files:
                files[relative] = file
                to_see += [] if installed else [top for top in _top_names(file) if top not in OURS]
    return files


def _files_of(root: Path, name: str) -> list[Path]:
    """The files of the top-level module or package `name` in the folder `root`; [] if it is not there."""
    alone = root / f"{name}.py"
    if (root / name).is_dir():
        return sorted((root / name).rglob("*.py"))
    return [alone] if alone.is_file() else []


def _top_names(file: Path) -> set[str]:
    """First names of all absolute imports in a file."""
    return {name.partition(".")[0] for name in imported_names(file)}


def imported_names(file: Path) -> set[str]:
    """Dotted names of all absolute imports in a file, those behind ``from … import`` included."""
    names: set[str] = set()
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file.

    The garbage collector rests meanwhile. CPython 3.11 counts the depth of trees for all threads together. So where a
    collection lets other code parse, this one fails with "AST constructor recursion depth mismatch" (python/cpython#106905).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(file.read_bytes())
    finally:
        if collects:
            gc.enable()


def told(error: BaseException) -> str:
    """An error of a user's code in one line: its type, its message and the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}, line {frame.lineno})"


def user_module(oracle: str) -> ModuleType:
    """Import the module of ``module:Class``; ValueError says how to make it importable, or that it is not trusted."""
    name = oracle.partition(":")[0]
    permit(oracle, f"import the module {name!r}")
    try:
        return importlib.import_module(name)
    except SystemExit as error:
        raise ValueError(f"{oracle}: importing {name!r} calls sys.exit({error.code!r})") from error
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"{oracle}: cannot import {name!r} ({error}); expected module:Class, importable on every machine that computes "
            "(set PYTHONPATH)"
        ) from error


def user_object(oracle: str) -> object:
    """What ``module:Name`` names, usually a class; None if the module, which a user wrote, does not define it."""
    return getattr(user_module(oracle), oracle.partition(":")[2], None)
