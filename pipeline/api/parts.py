"""Data sets and structures of your own: one folder, which GAPWISE_PARTS or the word ``parts=FOLDER`` of a command names.

    FOLDER/datasets/clouds.py           a data set; its module is gapwise.stages.datasets.clouds
    FOLDER/problems/sign.py             a structure
    FOLDER/conf/dataset/clouds.yaml     keys of the configuration

The files become modules of Gapwise's own packages, where they are found by discovery like
those of Gapwise, which go before files of the same name. The variable reaches worker processes, so all of them see the same
parts. It is read when a package is first imported, therefore it must be set before.

An installed package offers both kinds in the same way: it names a package of its own that is such a folder.

    [project.entry-points."gapwise.parts"]      # pyproject.toml
    clouds = "my_package.parts"                 # my_package/parts/datasets/clouds.py and so on

Parts of your own go before those of installed packages.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

VARIABLE = "GAPWISE_PARTS"
GROUP = "gapwise.parts"
"""The group of entry points."""
KINDS = {"datasets": "gapwise.stages.datasets", "problems": "gapwise.stages.problems"}
"""Folder of parts to the package that its files belong to."""


def folder() -> Path | None:
    """The folder that the variable names; NotADirectoryError if there is none.

    The variable is made absolute, for processes that start in another folder.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    root = Path(given).expanduser().resolve()
    if not root.is_dir():
        raise NotADirectoryError(f"{VARIABLE}: expected a folder with parts of your own, got {given}")
    os.environ[VARIABLE] = str(root)
    return root


@functools.cache
def installed() -> dict[str, Path]:
    """Folders of parts that installed packages offer, by the names of their entry points, sorted; imports no part.

    One that cannot be found is left out, with a warning.
    """
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    roots: dict[str, Path] = {}
    for point in sorted(entry_points(group=GROUP)):
        try:
            spec = find_spec(point.value)
        except ImportError:  # of the package around it
            spec = None
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
        if places:
            roots[point.name] = Path(places[0])
        else:
            told = "entry point %s: %s = %r: expected a package with folders of parts; there is none"
            logging.getLogger("gapwise").warning(told, GROUP, point.name, point.value)
    return roots


def folders() -> dict[str, Path]:
    """All folders of parts that are not Gapwise's, by names that do not depend on where they are: your own, then others."""
    root = folder()
    return {**({VARIABLE: root} if root is not None else {}), **installed()}


def use(words: Sequence[str]) -> list[str]:
    """Set the variable as the word ``parts=FOLDER`` of a command line says; NotADirectoryError if it is no folder.

    Among the words that configure a run it may stand anywhere. Words behind the name of a command are the command's, so
    there it stands before the name, and is not among the words that are returned.
    """
    own = words[:1] if _names_folder(words[:1]) else []
    rest = words[len(own) :]
    configures = not rest or "=" in rest[0] or rest[0][:1] in ("-", "+", "~")
    for word in filter(lambda word: _names_folder([word]), words if configures else own):
        value = word.partition("=")[2]
        if value in ("null", ""):
            os.environ.pop(VARIABLE, None)
        elif not Path(value).expanduser().is_dir():
            raise NotADirectoryError(f"parts: expected a folder with parts of your own, got {value}")
        else:
            os.environ[VARIABLE] = value
    folder()
    return [*(words if configures else rest)]


def _names_folder(words: Sequence[str]) -> bool:
    """Whether the first word is ``parts=…``."""
    return bool(words) and words[0].lstrip("+").startswith("parts=")


def with_parts(path: Iterable[str], kind: str) -> list[str]:
    """`__path__` of the package of this kind, with the folders of other parts behind it."""
    return [*path, *(str(root / kind) for root in folders().values() if (root / kind).is_dir())]


def sources(*packages: str) -> dict[str, Path]:
    """All Python files of parts, or of those in `packages`, Gapwise's apart, by names that do not depend on where they are.

    Of a package that offers parts these are all its files, because parts import others of them.
    """
    kinds = [kind for kind, home in KINDS.items() if not packages or home.startswith(packages)]
    files = {name: _files_around(root) for name, root in installed().items()}
    if (root := folder()) is not None:
        own = (file for kind in kinds for file in sorted((root / kind).rglob("*.py")))
        files[VARIABLE] = {str(file.relative_to(root)): file for file in own}
    return {f"{name}/{relative}": file for name, of_one in files.items() for relative, file in of_one.items()}


def digest_of(files: Mapping[str, Path], more: str = "") -> str:
    """SHA-256 of names and contents of source files, in the order of their names, and of `more`; 64 hexadecimal digits."""
    digest = hashlib.sha256(more.encode())
    for name, file in sorted(files.items()):
        digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def files_beside(part: Path) -> dict[str, Path]:
    """All Python files of the installed package that offers the part in this file; empty for other parts."""
    return next((_files_around(root) for root in installed().values() if part.is_relative_to(root)), {})


def _files_around(root: Path) -> dict[str, Path]:
    """All Python files of the package that this folder is part of."""
    top = root
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    return {str(file.relative_to(top)): file for file in sorted(top.rglob("*.py"))}


def conf() -> list[Path]:
    """The folders with YAML of parts, Gapwise's apart."""
    return [root / "conf" for root in folders().values() if (root / "conf").is_dir()]
