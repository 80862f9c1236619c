"""The typed configuration: composed YAML in, checked dataclasses out, and errors that name the key.

Two keys differ from the names of their fields and are translated here: `path.lambda` (a Python keyword) and
`solver.sampling`. The key of a run depends only on what determines its numbers (`Settings.science`).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from gapwise import parts
from gapwise.pipeline.config import CONF as CONF
from gapwise.pipeline.config import choices
from gapwise.pipeline.config.objects import as_object
from gapwise.pipeline.config.removed import check_removed, hint
from gapwise.pipeline.config.run_options import (
    CheckpointOptions,
    ComputeOptions,
    ConfigError,
    FigureOptions,
    RunOptions,
    SeedOptions,
    SnapshotOptions,
    SweepOptions,
    TrackingOptions,
    expect,
)
from gapwise.pipeline.config.validation import with_validation
from gapwise.pipeline.errors import did_you_mean
from gapwise.records import Record, flat
from gapwise.stages import datasets
from gapwise.stages.choice.rules import CHOOSING_EPS, LOSS
from gapwise.stages.solver.check import check_path
from gapwise.stages.solver.methods import method_options, methods
from gapwise.stages.solver.options import LOSS_RISES, MethodOptions, PathOptions, check_one_of
from gapwise.stages.solver.path.rules import path_rule, rules
from gapwise.storage.backend import location
from gapwise.storage.backend.staging import cache_root
from gapwise.storage.format import FORMAT_VERSION

DATASET_KINDS = {"dataset.name": str, "dataset.root": str, "dataset.size": str, "dataset.seed": int}
KIND_NAMES = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    dict: "a group of keys",
    list: "a list",
}


class Checked(Protocol):
    """A dataclass of options that checks itself."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    def check(self) -> None:
        """ValueError names the option that is wrong."""


Options = TypeVar("Options", bound=Checked)
ALIASES = {"path": {"lambda": "lam"}, "solver": {"sampling": "sampler"}}


def on_this_machine(root: str) -> str:
    """`root`, or for a URL a local directory that can be written to."""
    return os.path.expanduser(root) if isinstance(location(root), Path) else str(cache_root())


OmegaConf.register_new_resolver(
    "many", lambda cv, variants: "MULTIRUN" if cv is not None or variants else None, replace=True
)


@dataclass(frozen=True)
class Settings:
    """Everything one run needs to know, checked."""

    dataset: Record
    solver: MethodOptions
    path: PathOptions
    compute: ComputeOptions
    tracking: TrackingOptions
    checkpoint: CheckpointOptions
    snapshots: SnapshotOptions
    figures: FigureOptions
    run: RunOptions
    seed: int
    experiment: str | None = None
    label: str | None = None
    """What the user calls the data; no part of the science."""

    @property
    def science(self) -> Record:
        """Everything that determines the numbers besides the contents of files: data set, solver, path, seed, and what
        lambda is chosen by.

        Not where the data are, the preset's name, or a time limit.
        """
        solver, path = by_user_name("solver", self.solver), by_user_name("path", self.path)
        del solver["name"], solver["max_seconds"]
        if self.path.can.open_ended:  # where to stop, like a limit of time
            del path["eps"]
        science = {"dataset": datasets.science(self.dataset), "solver": solver, "path": path, "seed": self.seed}
        if self.run.criterion != LOSS:
            science["criterion"] = self.run.criterion
        # snapshots change no number, but a run without them cannot replace one that should have them
        return {**science, "snapshots": self.snapshots.science} if self.snapshots.science else science

    @property
    def choices(self) -> Record:
        """The part of the science that makes the key, with dotted names: what differs from the defaults of the method and of
        a path. So a new option changes no key, and a default never changes under one `FORMAT_VERSION`.
        """
        default = {
            "solver": {**by_user_name("solver", method_options(self.solver.method)), "method": None},
            "path": by_user_name("path", PathOptions()),
        }
        usual = flat(default)
        return {name: value for name, value in flat(self.science).items() if name not in usual or usual[name] != value}

    @property
    def data_name(self) -> str:
        """What runs are named after: the label of the data, or the name of their reader."""
        return self.label or str(self.dataset["name"])

    @property
    def chooses_lambda(self) -> bool:
        """Whether blocks are held out to choose lambda on, and not as a fold of several."""
        return _held_out(self.dataset)

    @property
    def pick(self) -> str:
        """The rule by which this run's own blocks pick its best lambda; a fold of several leaves the rule to all of them."""
        return self.run.pick if self.chooses_lambda else "least"

    @property
    def asks_for_refit(self) -> bool:
        """Whether a lambda that is chosen on held-out blocks is to be solved on all blocks."""
        name = str(self.dataset["name"])
        return own_data(name) and datasets.reader_of(name).joined if self.run.refit is None else self.run.refit

    @property
    def refits(self) -> bool:
        """Whether this run does so at its end."""
        return self.chooses_lambda and self.asks_for_refit

    def features_key(self, source: Mapping[str, object]) -> str:
        """Key of the featurize stage: shared by all solvers of one data set."""
        return fingerprint({"format": FORMAT_VERSION, "dataset": datasets.science(self.dataset), "source": source})

    def run_key(self, source: Mapping[str, object]) -> str:
        """Key of the run: the choices made in it, and its data."""
        return fingerprint({"format": FORMAT_VERSION, **self.choices, "source": source})


def fingerprint(value: object) -> str:
    """Hash of JSON-able data, 64 hexadecimal digits; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def read(cfg: DictConfig, experiment: str | None = None, overrides: Iterable[str] = ()) -> Settings:
    """`cfg` as composed from conf/, typed and checked; ConfigError names the first key that is wrong."""
    _one_rule(tuple(overrides))
    check_removed(OmegaConf.to_container(cfg))  # type: ignore[arg-type]
    sections = ("dataset", "solver", "path", "compute", "tracking", "checkpoint", "snapshots", "figures", "run")
    _known("", cfg, (*sections, "seed", "sweep", "parts"))
    _same_parts(cfg.get("parts"))
    for name in sections:
        if not isinstance(cfg.get(name), DictConfig):
            raise ConfigError(f"{name}: expected a group of keys, got {cfg.get(name)!r}")
    solver = typed("solver", cfg.solver, method_defaults(cfg.solver))
    expect("solver.name", solver.name, re.fullmatch(r"\w[\w.-]*", solver.name) is not None, "a name for directories")
    data, folds = dataset_options(cfg.dataset), (cfg.get("sweep") or {}).get("cv")
    path = typed("path", _with_eps(cfg.path, data, folds is not None), PathOptions())
    path = path.for_method(solver) if cfg.path.get("kappa", 0.0) == 0.0 else path
    _unread(path)
    try:
        check_path(solver, path)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    settings = Settings(
        dataset=data,
        solver=solver,
        path=path,
        compute=typed("compute", cfg.compute, ComputeOptions()),
        tracking=typed("tracking", cfg.tracking, TrackingOptions()),
        checkpoint=typed("checkpoint", cfg.checkpoint, CheckpointOptions()),
        snapshots=typed("snapshots", cfg.snapshots, SnapshotOptions()),
        figures=typed("figures", cfg.figures, FigureOptions()),
        run=typed("run", cfg.run, RunOptions()),
        seed=typed("", DictConfig({"seed": cfg.seed}), SeedOptions()).seed,
        experiment=experiment,
        label=label_of(cfg.dataset),
    )
    if settings.run.refit and not settings.chooses_lambda and folds is None:
        raise ConfigError(
            "run.refit: expected blocks that lambda is chosen on; give dataset.validation=0.2 or sweep.cv=5"
        )
    if settings.run.refit and not datasets.reader_of(str(settings.dataset["name"])).joined:
        raise ConfigError(f"run.refit: {settings.dataset['name']} cannot join the blocks of two splits; leave it out")
    if settings.run.criterion != LOSS and settings.pick == "one_se":
        raise ConfigError(
            f"run.pick: one_se needs a standard error, and run.criterion={settings.run.criterion} has one over folds only; "
            "give sweep.cv=5, or run.pick=parabola"
        )
    if path.end == LOSS_RISES and (folds is not None or not settings.chooses_lambda):
        raise ConfigError(
            "path.end: loss_rises looks at the loss of one held-out part; give dataset.validation=0.2, and no folds"
        )
    if path.end == LOSS_RISES and settings.run.criterion != LOSS:
        raise ConfigError(
            f"path.end: loss_rises looks at the loss, and run.criterion={settings.run.criterion} may still gain below; "
            "leave out one of them"
        )
    return settings


def _held_out(dataset: Record) -> bool:
    """Whether blocks of a data set are held out to choose lambda on, and not as a fold of several."""
    validation = dataset.get("validation")
    return validation is not None and not (isinstance(validation, Mapping) and "fold" in validation)


def _with_eps(path: DictConfig, dataset: Record, folds: bool) -> DictConfig:
    """The group `path` with an eps where none is given: that of estimators, where data of one's own choose lambda."""
    if path.get("eps") is not None:
        return path
    chooses = own_data(str(dataset["name"])) and (folds or _held_out(dataset))
    return OmegaConf.merge(path, {"eps": CHOOSING_EPS if chooses else PathOptions().eps})  # type: ignore[return-value]


def _same_parts(wanted: object) -> None:
    """ConfigError if `parts` was set where it comes too late: parts are found before the configuration is composed."""
    used = parts.folder()
    folder = Path(str(wanted)).expanduser().resolve() if wanted else None
    if folder is not None and folder != used:
        raise ConfigError(
            f"parts: expected the folder as a word of the command, parts={wanted}, or in the variable {parts.VARIABLE}; "
            f"this process uses {used or 'none'}"
        )


def _one_rule(words: tuple[str, ...]) -> None:
    """ConfigError where a command names two rules, as path=heuristic path.rule=paper; the second would win silently."""
    for rule in rules():
        for word in words if f"path={rule}" in words else ():
            if word.startswith("path.rule=") and word != f"path.rule={rule}":
                raise ConfigError(f"path.rule: path={rule} sets it; leave out {word} or path={rule}")


def _unread(path: PathOptions) -> None:
    """ConfigError for lambdas or a tolerance that the path's rule would not look at.

    The other keys that a rule does not read are set by experiments whose rule people change.
    """
    given, default = (by_user_name("path", options) for options in (path, PathOptions()))
    for name in ("lambda", "lambdas", "tolerance"):
        if name in path.can.unread and given[name] != default[name]:
            ways = " or ".join(f"path={rule}" for rule in rules() if name not in path_rule(rule).unread)
            raise ConfigError(f"path.{name}: is not read with path.rule={path.rule}; give {ways}, or leave it out")


def sweep_options(cfg: DictConfig) -> SweepOptions:
    """The group `sweep` of `cfg`, checked; ConfigError names the key."""
    return typed("sweep", cfg.sweep, SweepOptions())


def method_defaults(cfg: DictConfig) -> MethodOptions:
    """The options of the method that `solver.method` names, all at their defaults; ConfigError lists the methods."""
    name = str(cfg.get("method", "bcfw"))
    try:
        check_one_of("solver.method", name, methods())
    except ValueError as error:
        raise ConfigError(str(error)) from None
    options: MethodOptions = method_options(name)
    return options


def by_user_name(section: str, options: Checked) -> dict[str, object]:
    """All options of a section with their values, by the names that they have in conf/."""
    named = {field: name for name, field in ALIASES.get(section, {}).items()}
    return {named.get(name, name): value for name, value in dataclasses.asdict(options).items()}


def dataset_options(cfg: DictConfig) -> dict[str, object]:
    """The group as a plain dict: only keys of the data set's own YAML, each of the type it has there."""
    given = _plain("dataset", cfg)
    validation = given.pop("validation", None)
    given.pop("label", None)  # `label_of`
    own = dataset_yaml(str(given.get("name")))
    defaults = {} if own is None else _values_in(own, own.stat().st_mtime_ns)
    if defaults:
        _known("dataset", given, [*defaults, "label", "validation"])
    typed_values = {name: _like(f"dataset.{name}", value, defaults.get(name)) for name, value in given.items()}
    return with_validation(typed_values, validation)


@functools.cache
def _values_in(file: Path, changed: int) -> dict[str, object]:
    """The values of a YAML as it was when it was last changed; nothing changes the result."""
    return dict(OmegaConf.to_container(OmegaConf.load(file)))  # type: ignore[arg-type]


def label_of(cfg: DictConfig) -> str | None:
    """`dataset.label`; ConfigError unless it can be part of a directory's name."""
    label = cfg.get("label")
    named = label is None or (isinstance(label, str) and re.fullmatch(r"\w[\w.-]*", label) is not None)
    expect("dataset.label", label, named, "a name for directories: letters, digits, dots, - and _")
    return label


def dataset_yaml(name: str) -> Path | None:
    """The YAML of a data set, ours or of another part; None without, as with --config-dir."""
    return choices("dataset").get(name)


def own_data(name: str) -> bool:
    """Whether a data set is the user's own: its YAML leaves open where it is."""
    file = dataset_yaml(name)
    return file is not None and "???" in OmegaConf.to_container(OmegaConf.load(file)).values()  # type: ignore[union-attr]


def _like(key: str, value: object, default: object) -> object:
    """`value` if it has the type of `default`; where the default is null, the type that the key's name implies."""
    kind = DATASET_KINDS.get(key, type(default) if default not in (None, "???") else None)
    if kind is None or value is None:
        return value
    if kind is str and not isinstance(value, bool):
        return str(value)
    if kind is float and type(value) is int:
        return float(value)
    expect(key, value, type(value) is kind, KIND_NAMES[kind])
    return value


def typed(section: str, cfg: DictConfig, schema: Options) -> Options:
    """`cfg` as an instance of `schema`'s dataclass, checked."""
    values = _plain(section, cfg)
    aliases = ALIASES.get(section, {})
    given = {aliases.get(name, name): value for name, value in values.items() if name not in aliases.values()}
    named = {field: name for name, field in aliases.items()}
    names = {f.name: named.get(f.name, f.name) for f in dataclasses.fields(schema)}
    _known(section, values, names.values())
    try:
        options = as_object(schema, given)
        options.check()
    except OmegaConfBaseException as error:
        key = str(error.full_key or "")
        head, _, rest = key.partition(".")
        key = ".".join(part for part in (section, names.get(head, head), rest) if part)
        message = str(error).splitlines()[0]
        if "is not a ListConfig" in message:
            got = OmegaConf.select(DictConfig({section: values}), key)
            message = f"expected a list, got {got!r}; write '{key}=[{str(got).strip('[]')}]'"
        raise ConfigError(f"{key}: {'unknown key' if message.startswith('Key ') else message}") from None
    except ValueError as error:
        message = str(error)
        for inner, outer in named.items():
            message = message.replace(f"{section}.{inner}:", f"{section}.{outer}:")
        raise ConfigError(message) from None
    return options


def _plain(section: str, cfg: DictConfig) -> dict[str, object]:
    """`cfg` with interpolations resolved; ConfigError if a mandatory value is missing."""
    try:
        values = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key = ".".join(part for part in (section, str(error.full_key).removeprefix(f"{section}.")) if part)
        raise ConfigError(f"{key}: must be given, e.g. {key}=...") from None
    except OmegaConfBaseException as error:
        raise ConfigError(f"{section}: {str(error).splitlines()[0]}") from None
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


def resolved(cfg: DictConfig) -> dict[str, object]:
    """`cfg` as plain values, with interpolations resolved: what another process composes the same configuration from."""
    values = OmegaConf.to_container(cfg, resolve=True)
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


def _known(section: str, given: Iterable[object], known: Iterable[str]) -> None:
    known = list(known)
    for name in given:
        if name not in known:
            key = f"{section}.{name}" if section else str(name)
            if says := hint(key):
                raise ConfigError(says)
            near = did_you_mean(str(name), known)
            raise ConfigError(f"{key}: unknown key{near}; there are: {', '.join(sorted(known))}")
