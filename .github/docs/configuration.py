"""The tables of the page Configuration: every key of conf/, with the comment behind it there.

``python .github/docs/configuration.py`` prints them. A key without a comment is an error.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gapwise.pipeline.config import CONF, choices
from gapwise.pipeline.config.run_options import (
    CheckpointOptions,
    ComputeOptions,
    FigureOptions,
    RunOptions,
    SnapshotOptions,
    TrackingOptions,
)
from gapwise.pipeline.help import comments, summary
from gapwise.stages import datasets
from gapwise.stages.solver.methods import methods, options_type
from gapwise.stages.solver.options import PathOptions

BASES = {"solver": ("bcfw",), "path": ("regpath",), "compute": ("threads", "cluster"), "tracking": ("mlflow",)}
"""Files whose comments explain a key in the other files of the group, too."""
UNITS = {
    "max_passes": "effective passes",
    "refresh_every": "effective passes",
    "every_passes": "effective passes",
    "max_oracle_calls": "calls",
    "eps": "of the loss",
    "tolerance": "of the loss, or a share",
    "walltime": "h:m:s",
    "rebase_steps": "steps",
}
"""Units that the name of a key does not say; keys that end in `_seconds` say theirs."""
FIELDS = {"lambda": "lam", "sampling": "sampler"}
"""Keys whose field in the dataclass has another name."""
OUTSIDE = {"dataset.label", "solver.name", "solver.max_seconds", "snapshots.keep"}
"""Keys of sections in the run's key that are no part of it."""
INSIDE = {"run.criterion"}
"""Keys of other sections that are part of it."""
SCIENCE = ("dataset", "solver", "path", "seed", "snapshots")
GENERAL: Mapping[str, type] = {
    "checkpoint": CheckpointOptions,
    "snapshots": SnapshotOptions,
    "figures": FigureOptions,
    "run": RunOptions,
}


class Key(NamedTuple):
    """A row of a table."""

    name: str
    kind: str
    default: str
    unit: str
    enters: bool
    comment: str


def leaves(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted key and value of every entry that holds no further keys."""
    for name, value in values.items():
        if name in ("defaults", "hydra"):
            continue
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def explained(file: Path) -> dict[str, str]:
    return {key: comment for key, _, comment in comments(file)}


def rows(group: str, name: str) -> list[Key]:
    """The keys of a choice of a group; ValueError names those without a comment."""
    file = choices(group)[name]
    values = yaml.safe_load(file.read_text(encoding="utf-8"))
    inside = f"{group}." if group in values else ""
    known: dict[str, str] = {}
    for base in (*BASES.get(group, ()), *bases(group, file), name):
        known |= explained(choices(group)[base]) if base in choices(group) else {}
    listed = []
    for key, value in leaves(values):
        short = key.removeprefix(inside)
        comment = known.get(key) or known.get(short)
        if short in ("name", "kind") or (inside and not key.startswith(inside)):
            continue
        if not comment:
            raise ValueError(f"{file.relative_to(CONF.parent)}: {key} has no comment; write what it does behind it")
        listed.append(row(group, short, value, comment, enters(group, name, short), schema(group, values)))
    return listed


def enters(group: str, name: str, key: str) -> bool:
    """Whether a key determines numbers, so that another value makes another run."""
    if group != "dataset":
        return in_key(group, f"{group}.{key}")
    top = key.split(".")[0]
    return top in datasets.science({"name": name, top: "given"})


def in_key(section: str, key: str) -> bool:
    """Whether a key outside of the data sets determines numbers."""
    return key in INSIDE or (section in SCIENCE and key not in OUTSIDE)


def schema(group: str, values: Mapping[str, Any]) -> type | None:
    if group == "solver":
        method = str(values.get("method", "bcfw"))
        return options_type(method) if method in methods() else None
    return {"path": PathOptions, "compute": ComputeOptions, "tracking": TrackingOptions, **GENERAL}.get(group)


def row(group: str, key: str, value: object, comment: str, inside: bool, typed: type | None) -> Key:
    last = key.rsplit(".", 1)[-1]
    unit = UNITS.get(last, "seconds" if last.endswith("seconds") else "")
    full = f"{group}.{key}" if group else key
    return Key(full, kind_of(key, value, typed), shown(value), unit, inside, comment)


def kind_of(key: str, value: object, typed: type | None) -> str:
    """The type of a key: that of its field, else that of its value."""
    for part in key.split("."):
        if typed is None or not dataclasses.is_dataclass(typed):
            break
        fields = {field.name: field for field in dataclasses.fields(typed)}
        field = fields.get(FIELDS.get(part, part))
        if field is None:
            break
        if str(field.type).endswith(("Options", "Group")):
            typed = type(field.default_factory()) if field.default_factory is not dataclasses.MISSING else None
            continue
        return str(field.type).replace(" | None", " or null")
    if value in ("???", None):
        return "any"
    return {"bool": "bool", "int": "int", "float": "float", "list": "list", "dict": "keys"}.get(
        type(value).__name__, "str"
    )


def shown(value: object) -> str:
    if value == "???":
        return "(must be given)"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return "infinite" if value == float("inf") else str(value)


def escaped(text: str) -> str:
    return re.sub(r"([|*_<>$])", r"\\\1", text)


def table(keys: list[Key]) -> str:
    lines = ["| key | what it does | default | type | unit | in the run's key |", "|---|---|---|---|---|---|"]
    for key in keys:
        yes = "yes" if key.enters else "no"
        default = key.default.replace("|", "\\|")
        kind = key.kind.replace("|", "\\|")
        cells = (f"`{key.name}`", escaped(key.comment), f"`{default}`", kind, key.unit or "–", yes)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def general() -> list[Key]:
    """The keys of conf/config.yaml itself."""
    file = CONF / "config.yaml"
    known, listed = explained(file), []
    for key, value in leaves(yaml.safe_load(file.read_text(encoding="utf-8"))):
        if key not in known:
            raise ValueError(f"conf/config.yaml: {key} has no comment; write what it does behind it")
        section, _, inner = key.partition(".")
        typed = GENERAL.get(section)
        listed.append(row(section if inner else "", inner or key, value, known[key], in_key(section, key), typed))
    return listed


def own_files(group: str) -> list[str]:
    """Choices whose file names all of its keys: the others only say what differs from one of these."""
    return [name for name, file in choices(group).items() if not bases(group, file)]


def bases(group: str, file: Path) -> list[str]:
    """The choices of the same group that a file starts from."""
    named = yaml.safe_load(file.read_text(encoding="utf-8")).get("defaults", [])
    return [base for base in named if isinstance(base, str) and base in choices(group)]


def presets(group: str) -> str:
    lines = ["| choice | what it is |", "|---|---|"]
    lines += [f"| `{group}={name}` | {escaped(summary(file))} |" for name, file in choices(group).items()]
    return "\n".join(lines)


def page() -> str:
    """The tables, in Markdown."""
    out = ["## General keys", table(general())]
    for group, title in (
        ("path", "Path"), ("compute", "Compute"), ("tracking", "Tracking"), ("dataset", "Data sets"), ("solver", "Solvers"),
    ):  # fmt: skip
        out += [f"## {title}", presets(group)]
        for name in choices(group):
            if group == "solver" and name not in own_files(group):
                rows(group, name)  # every key must be explained here, too
                continue
            if keys := rows(group, name):
                out += [f"### {group}={name}", table(keys)]
    out += ["## Experiments", presets("experiment").replace("`experiment=", "`+experiment=")]
    return "\n\n".join(out) + "\n"


if __name__ == "__main__":
    print(page())
