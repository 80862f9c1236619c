"""Structures and data sets of other installed packages, which announce a module as an entry point:

    [project.entry-points."gapwise.structures"]      # pyproject.toml of the package
    poses = "my_package.poses"
    [project.entry-points."gapwise.readers"]
    my_poses = "my_package.my_poses"

The module offers what one in `stages.problems` or `stages.datasets` does; a part of Gapwise of the same name goes before it.
The YAML of a reader lies in ``conf/dataset/`` of its package, which Hydra finds with
``hydra.searchpath=[pkg://my_package.conf]``. (Parts in a folder that no package installs: `gapwise.parts`.)
"""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

STRUCTURES, READERS = "gapwise.structures", "gapwise.readers"
"""The groups of entry points."""


def announced(group: str) -> list[str]:
    """Names of all modules of a group, sorted; imports no module."""
    return sorted(entry_points(group=group).names)


def installed_module(group: str, name: str) -> ModuleType | None:
    """The module that an installed package announces as `name`, or None; ValueError if it cannot be imported."""
    for point in entry_points(group=group, name=name):
        try:
            module: ModuleType = point.load()
        except (ImportError, AttributeError) as error:
            raise ValueError(
                f"entry point {group}: {name} = {point.value!r} cannot be imported: {error}; expected a module"
            ) from error
        return module
    return None


def conf_of(name: str) -> tuple[str, Path] | None:
    """Hydra's search path to the YAML file of the reader that an installed package announces as `name`; None without one."""
    for point in entry_points(group=READERS, name=name):
        package = point.module.partition(".")[0]
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            file = Path(folder) / "conf" / "dataset" / f"{name}.yaml"
            if file.is_file():
                return f"pkg://{package}.conf", file
    return None
