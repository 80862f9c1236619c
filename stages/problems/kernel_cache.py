"""numba's cache on disk: what compiled code depends on, where it lies, and what becomes of damaged files.

numba names compiled code after the time, the size and the lines of one file. Here its name comes from what that file and
all that it imports say, without docstrings, comments and annotations. So an edit of a comment compiles nothing again, an
edit of a kernel compiles what can reach it, and all copies of the project share one folder: $GAPWISE_KERNELS, otherwise
~/.cache/gapwise/kernels.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import io
import itertools
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from gapwise import parts
from gapwise.stages.problems.user_code import parsed

JitOptions = dict[str, Any]
"""Options of numba's `njit`."""

Kernel = Callable[..., Any]
"""A function that numba compiles, or its plain form without the JIT; takes problems of any structure, and arrays."""

ROOMS = ("gapwise.stages.problems", "gapwise.stages.solver", "gapwise.stages.certify")
"""Packages with code that kernels of other files call."""

DISCOVERED = {*parts.KINDS.values()} - {"gapwise.stages.problems"}
"""Packages whose modules are found by name, which may end in any kernel; a structure is only in those made for it."""

MARK = b"gapwise: sha256 "
"""What stands between the contents of a file of the cache and their checksum."""

STARTED = time.time()
"""A file that is newer may say something else than the code that this process has imported."""

READER = sys.version.encode() + Path(__file__).read_bytes()
"""What decides how sources are read."""

UNKNOWN = os.urandom(8).hex()
"""Stands for that code, so that no other process takes it for what the file says."""


def folder() -> Path:
    """The folder of compiled code; without a home it is one that cannot be written."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME", "") + "/.cache"
    return Path(os.environ.get("GAPWISE_KERNELS") or f"{caches}/gapwise/kernels")


def code_digest(files: Mapping[str, Path], more: str = "") -> str:
    """SHA-256 of names and code of source files, in the order of their names, and of `more`; 64 hexadecimal digits."""
    digest = hashlib.sha256(more.encode())
    for name, file in sorted(files.items()):
        digest.update(f"{name}\0{_read(file)[0]}\0".encode())
    return digest.hexdigest()


def reached(files: Iterable[Path]) -> dict[str, Path]:
    """The files of `ROOMS` that code of `files` may run, by names of modules: all that is imported, directly or not.

    Only what runs counts, so an import below ``if TYPE_CHECKING`` does not.
    """
    found: dict[str, Path] = {}
    to_see = [name for file in files for name in _read(file)[1]]
    while to_see:
        name = to_see.pop()
        if name in found or (file := _file_of(name)) is None:
            continue
        found[name] = file
        to_see += _read(file)[1]
        if name in DISCOVERED:
            to_see += [f"{name}.{module.name}" for module in iter_modules(map(str, _folders_of(name)))]
    return found


@functools.cache
def _file_of(module: str) -> Path | None:
    """The file of a module in `ROOMS`; None for the name of something else."""
    package, _, name = module.rpartition(".")
    places = (place / end for place in _folders_of(package) for end in (f"{name}.py", f"{name}/__init__.py"))
    return next((place for place in places if place.is_file()), None)


def _folders_of(package: str) -> list[Path]:
    """Where the modules of a package lie; [] for the name of something else."""
    if package in sys.modules:
        return [Path(place) for place in getattr(sys.modules[package], "__path__", ())]
    above, _, name = package.rpartition(".")
    return [place / name for place in _folders_of(above)]


def _read(file: Path) -> tuple[str, list[str]]:
    """A digest of what a file says without docstrings, comments and annotations, and the dotted names that it imports."""
    stat = file.stat()
    return _read_once(file, stat.st_mtime_ns, stat.st_size)


@functools.cache
def _read_once(file: Path, changed: int, size: int) -> tuple[str, list[str]]:
    """`_read` of a file that was last changed at `changed` ns.

    Parsing takes 3 ms a file, which the folder of compiled code saves: it keeps the answer, named after the content.
    """
    source = file.read_bytes()
    kept = folder() / "sources" / hashlib.sha256(READER + source).hexdigest()
    answer = ""
    with contextlib.suppress(OSError, ValueError):
        answer = _checked(kept).decode()
    if not answer:
        answer = _parsed(file, source)
        _keep(kept, answer.encode())
    code, *names = answer.split("\n")
    newer = STARTED < changed / 1e9 <= time.time()
    return code + UNKNOWN * newer, names


def _parsed(file: Path, source: bytes) -> str:
    """The lines that `_read` returns."""
    try:
        tree = parsed(file)
    except SyntaxError:  # of a user's package, imported by nobody
        return hashlib.sha256(source).hexdigest()
    names: set[str] = set()
    tree.body = _bare(tree.body, names)
    code = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return "\n".join((code, *sorted(name for name in names if name.startswith(ROOMS))))


def _keep(file: Path, content: bytes) -> None:
    """Write a small file of the cache, where it can be written."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.{UNKNOWN}")
        new.write_bytes(content + MARK + hashlib.sha256(content).digest())
        new.replace(file)


def _bare(statements: list[Any], names: set[str]) -> list[Any]:
    """Statements without what never runs; `names` receives the dotted names of all absolute imports."""
    kept = []
    for node in statements:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            kept += _bare(node.orelse, names)
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            given = node.args
            for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
                if argument is not None:
                    argument.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        for inside in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            for field in ("body", "orelse", "finalbody"):
                if hasattr(inside, field):
                    setattr(inside, field, _bare(getattr(inside, field), names))
        kept.append(node)
    return kept


@functools.cache
def _stamp_of(file: Path) -> str:
    """Hash of all code that kernels of a file may run, but for what is compiled for a structure (`compiled`)."""
    return code_digest({**reached([file]), file.name: file})


class ByContent:
    """A cache locator, which numba asks before its own ones; it calls the methods below."""

    def __init__(self, py_file: str) -> None:
        self._py_file = py_file  # numba mentions it in warnings
        self._stamp = _stamp_of(Path(py_file))

    def get_cache_path(self) -> str:
        return str(folder() / f"{Path(self._py_file).stem}-{self._stamp[:16]}")

    def ensure_cache_path(self) -> None:
        """Make the folder; OSError unless files can be written there."""
        path = self.get_cache_path()
        os.makedirs(path, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return ""  # the qualified name of a kernel says which it is; numba would add its line

    @classmethod
    def from_function(cls, py_func: Callable[..., object], py_file: str) -> ByContent | None:
        """A locator for kernels of this package where their folder can be written, otherwise None: numba's own serve."""
        if not str(py_func.__module__).startswith("gapwise.") or not Path(py_file).is_file():
            return None
        with contextlib.suppress(OSError):
            cache = cls(py_file)
            cache.ensure_cache_path()
            return cache
        return None


def install() -> None:
    """Make numba ask `ByContent`, and take a damaged file of its cache, as a power cut leaves, for one that is missing.

    numba lets unpickling fail, in every process until the file is deleted, or runs what it finds. It numbers its files, so
    that two processes that save at the same time may take the same number; here a file is named after its key. It also
    numbers the functions that a process compiles. Two kernels from two processes may have one name for what they need to
    call Python, and only one of them would find it; here numbers begin at random. Where a release lacks the private names
    that this needs, a line in the log says so.
    """
    try:
        from numba.core import bytecode, caching

        class Checked(caching.IndexDataCacheFile):
            def save(self, key: object, data: object) -> None:
                name = self._data_name(int(hashlib.sha256(repr(key).encode()).hexdigest()[:15], 16))
                self._save_data(name, data)
                self._save_index({**self._load_index(), key: name})

            def _load_index(self) -> dict[object, str]:
                try:
                    _checked(Path(self._index_path))
                    return dict(super()._load_index())
                except Exception:  # whatever unpickling raises
                    return {}

            def _load_data(self, name: str) -> object:
                try:
                    _checked(Path(self._data_path(name)))
                    return super()._load_data(name)
                except Exception as error:
                    raise FileNotFoundError(name) from error  # which numba takes for a miss

            @contextlib.contextmanager
            def _open_for_write(self, path: str) -> Iterator[io.BytesIO]:
                with super()._open_for_write(path) as file:
                    written = io.BytesIO()
                    yield written
                    file.write(written.getvalue() + MARK + hashlib.sha256(written.getvalue()).digest())

        caching.IndexDataCacheFile = Checked  # type: ignore[misc]
        next(bytecode.FunctionIdentity._unique_ids)  # AttributeError where numba numbers in another way
        bytecode.FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(6)))
        locators: Any = caching.CacheImpl._locator_classes  # of other classes, with the same methods
        locators.insert(0, ByContent)
    except (ImportError, AttributeError) as error:
        logging.getLogger(__name__).warning("numba: %s; $GAPWISE_KERNELS and damaged kernels are not seen to", error)


def _checked(file: Path) -> bytes:
    """What a file says before its checksum; ValueError if that does not match. numba alone writes none: then nothing."""
    contents, mark, checksum = file.read_bytes().rpartition(MARK)
    if mark and hashlib.sha256(contents).digest() != checksum:
        raise ValueError(f"{file}: does not match its checksum")
    return contents
