"""Parts of your own: one folder, which the variable GAPWISE_PARTS or the word ``parts=FOLDER`` of a command names.

    FOLDER/datasets/clouds.py           a data set; its module is gapwise.stages.datasets.clouds
    FOLDER/problems/sign.py             a structure
    FOLDER/conf/dataset/clouds.yaml     keys of the configuration

`KINDS` lists the folders. The files become modules of Gapwise's own packages, where they are found by discovery like
those of Gapwise, which go before files of the same name. The variable reaches worker processes, so all of them see the same
parts. It is read when a package is first imported, therefore it must be set before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from pkgutil import iter_modules

VARIABLE = "GAPWISE_PARTS"
KINDS = {
    "backends": "gapwise.storage.backend",
    "certify": "gapwise.stages.certify",
    "charts": "gapwise.stages.reports.charts",
    "commands": "gapwise.pipeline.cli",
    "datasets": "gapwise.stages.datasets",
    "estimators": "gapwise.pipeline.estimators",
    "methods": "gapwise.stages.solver.methods",
    "model_formats": "gapwise.pipeline.model_formats",
    "moves": "gapwise.stages.solver.block.moves",
    "papers": "gapwise.stages.reports.papers",
    "problems": "gapwise.stages.problems",
    "rules": "gapwise.stages.solver.path.rules",
    "run_figures": "gapwise.stages.reports.run_figures",
    "samplers": "gapwise.stages.solver.block.samplers",
    "sections": "gapwise.stages.reports.page.sections",
    "stages": "gapwise.pipeline.stage_graph",
    "steps": "gapwise.stages.solver.steps",
    "sweep_figures": "gapwise.stages.reports.sweep_figures",
}
"""Folder of parts to the package that its files belong to."""
KERNELS = ("gapwise.stages.problems", "gapwise.stages.solver")
"""Packages with compiled code, which is compiled again when a file of them changes."""


def folder() -> Path | None:
    """The folder that the variable names; NotADirectoryError if there is none.

    The variable is made absolute, for processes that start in another folder.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return None
    found = Path(given).expanduser().resolve()
    if not found.is_dir():
        raise NotADirectoryError(f"{VARIABLE}: expected a folder with parts of your own, got {given}")
    os.environ[VARIABLE] = str(found)
    return found


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
    """`__path__` of the package of this kind, with the folder of one's own parts behind it if there is one."""
    root = folder()
    return [*path, str(root / kind)] if root is not None and (root / kind).is_dir() else [*path]


def modules(kind: str) -> list[str]:
    """Names of the modules that one's own parts of this kind are; imports none of them."""
    root = folder()
    found = iter_modules([str(root / kind)]) if root is not None else ()
    return sorted(f"{KINDS[kind]}.{module.name}" for module in found)


def sources(*packages: str) -> dict[str, Path]:
    """All Python files of one's own parts, or of those in `packages`, by names that do not depend on where they are."""
    root = folder()
    if root is None:
        return {}
    kinds = [kind for kind, home in KINDS.items() if not packages or home.startswith(packages)]
    return {str(file.relative_to(root)): file for kind in kinds for file in sorted((root / kind).rglob("*.py"))}


def conf() -> Path | None:
    """The folder with YAML of one's own parts, if there is one."""
    root = folder()
    return root / "conf" if root is not None and (root / "conf").is_dir() else None
