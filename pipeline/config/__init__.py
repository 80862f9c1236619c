"""The configuration: YAML in conf/, typed and checked here."""

from pathlib import Path

from gapwise import parts

CONF = Path(__file__).resolve().parents[2] / "conf"


def conf_folders() -> list[Path]:
    """The folders with YAML: Gapwise's, that of your own parts, those of installed packages. The first one goes before."""
    return [CONF, *parts.conf()]


def groups() -> set[str]:
    """Names of the groups of presets."""
    return {str(file.parent.relative_to(folder)) for folder in conf_folders() for file in folder.glob("*/**/*.yaml")}


def choices(group: str) -> dict[str, Path]:
    """The YAML of every choice of a group, by name, sorted."""
    files = {file.stem: file for folder in reversed(conf_folders()) for file in (folder / group).glob("*.yaml")}
    return dict(sorted(files.items()))
