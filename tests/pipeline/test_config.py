"""The configuration: every file in conf/ composes and is valid, and errors name the wrong key in one line."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import pytest
from configs import composed
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from gapwise.pipeline.cli import command, known
from gapwise.pipeline.command import readable
from gapwise.pipeline.config import choices, groups
from gapwise.pipeline.config.removed import REMOVED
from gapwise.pipeline.config.run_options import TrackingOptions
from gapwise.pipeline.config.settings import CONF, Settings, by_user_name, on_this_machine, read
from gapwise.pipeline.errors import ConfigError
from gapwise.pipeline.help import GROUPS, comments, summary
from gapwise.pipeline.tracking.mlflow import store_uri
from gapwise.records import flat
from gapwise.stages.datasets import open_dataset
from gapwise.stages.solver.methods import method_options, methods
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.path.rules import rules

EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
ROOT = CONF.parent


def with_data(*overrides: str) -> Settings:
    """Read, giving the data set a root or a file where it asks for one."""
    cfg = composed(*overrides)
    keys = ("root", "file", "test_file", "oracle", "module", "command")
    for key in (key for key in keys if OmegaConf.is_missing(cfg.dataset, key)):
        with pytest.raises(ConfigError, match=rf"dataset\.{key}: must be given"):
            read(cfg)
        cfg.dataset[key] = "somewhere"
    return read(cfg)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_experiment__composes_and_validates(experiment: str) -> None:
    settings = with_data(f"+experiment={experiment}")
    assert settings.dataset["name"]
    assert settings.path.kappa < 1


CHOICES = {group: sorted(path.stem for path in (CONF / group).glob("*.yaml")) for group in GROUPS}
ONLY = {"expensive_oracle": "regpath", **dict.fromkeys(("eg", "ssg"), "single")}
"""The path of solvers that know one only."""
MORE = {"single": "path.lambda=0.1", "cluster": "compute.address=tcp://host:8786"}


@pytest.mark.parametrize("k", range(max(len(names) for names in CHOICES.values())))
def test_groups__every_file_validates(k: int) -> None:
    chosen = {group: CHOICES[group][k % len(CHOICES[group])] for group in ("dataset", "solver", "compute", "tracking")}
    chosen["path"] = ONLY.get(chosen["solver"], CHOICES["path"][k % len(CHOICES["path"])])
    words = [f"{group}={name}" for group, name in chosen.items()]
    settings = with_data(*words, *(MORE[name] for name in chosen.values() if name in MORE))
    rule = settings.path.rule
    assert chosen == {
        "dataset": settings.dataset["name"], "solver": settings.solver.name,
        "path": "regpath" if rule == "two_sided" else rule,
        "compute": settings.compute.kind, "tracking": settings.tracking.kind,
    }  # fmt: skip


def test_params__are_the_sample_experiment_as_dvc_composes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAPWISE_RUNS", raising=False)
    cfg = composed("+experiment=regpath_horseseg")  # as conf/for_dvc.yaml has it: tests/pipeline/test_dvc.py
    OmegaConf.resolve(cfg)
    assert OmegaConf.load(ROOT / "params.yaml") == cfg, (
        "params.yaml is behind conf/: python -m pipeline --cfg job --resolve +experiment=regpath_horseseg > params.yaml"
    )


def test_defaults__are_what_is_fastest_with_cheap_oracles() -> None:
    def chosen(*words: str) -> tuple[str, str, float]:
        settings = read(composed(*words))
        return settings.solver.name, settings.path.rule, settings.path.kappa

    assert chosen() == ("bcpfw_gap_cache", "two_sided", 0.7)
    assert chosen("solver=expensive_oracle") == ("expensive_oracle", "two_sided", 0.84)
    assert chosen("path=single")[0] == "accelerated"
    settings = read(composed("solver=bcpfw_gap_cache", "solver.sampling=uniform", "solver.cache.nu=0.5"))
    assert (settings.solver.sampler, settings.solver.cache.nu) == ("uniform", 0.5)
    for order in (("path=single", "solver=bcfw"), ("solver=bcfw", "path=single")):
        assert chosen(*order)[0] == "bcfw"


def test_key__is_made_of_what_differs_from_the_defaults() -> None:
    settings = read(composed("path.warm_start=none", "solver=expensive_oracle"))
    chosen = {name: value for name, value in settings.choices.items() if not name.startswith("dataset.")}
    assert chosen == {
        "path.warm_start": "none", "path.kappa": 0.84, "seed": 0, "solver.method": "accelerated", "solver.n_best": 0,
        "solver.exact_passes": "at_mean",
    }  # fmt: skip


USUAL = {
    "solver.step": "pairwise", "solver.sampling": "gap", "solver.degree": 1.0, "solver.refresh_every": 10,
    "solver.line_search": True, "solver.averaging": "none", "solver.rebase_steps": 0, "solver.cache.kind": "none",
    "solver.cache.F": 0.25, "solver.cache.nu": 0.01, "solver.cache.capacity": 50, "path.rule": "two_sided",
    "path.eps": 0.1, "path.kappa": 0.7, "path.lambda_min": 0.0, "path.lambda": 0.01, "path.tolerance": 0.1,
    "path.relative": False, "path.warm_start": "keep_dual", "path.end": "whole", "path.max_breakpoints": 100_000,
}  # fmt: skip
FURTHER = {
    "n_best": 1, "multiplane.unused_iterations": 10, "multiplane.approximate_passes": 1000, "multiplane.rounds": 1,
    "cache.kind": "gap",
}  # fmt: skip


def test_defaults__are_those_that_keys_rest_on() -> None:
    """A default that changes must come with another `FORMAT_VERSION`: old runs would be taken for new ones."""
    usual = flat({"solver": by_user_name("solver", method_options()), "path": by_user_name("path", PathOptions())})
    assert {name: usual[name] for name in USUAL if name in usual} == {k: v for k, v in USUAL.items() if k in usual}
    for method in ("accelerated", "mpbcfw"):
        further = flat(by_user_name("solver", method_options(method)))
        assert {name: further[name] for name in FURTHER if name in further} == {
            name: value for name, value in FURTHER.items() if name in further
        }


@pytest.mark.parametrize(
    ("override", "key", "says"),
    [
        ("path.eps=soon", "path.eps", "'soon'"),
        ("path.kappa=1", "path.kappa", "(0, 1)"),
        ("solver.sampling=gaps", "solver.sampling", "permutation"),
        ("+solver.sampler=gap", "solver.sampler", "sampling"),
        ("seed=1.5", "seed", "1.5"),
        ("compute=cluster", "compute.address", "must be given"),
        ("run.until=solv", "run.until", "solve"),
        ("path=single path.lambdas=[1,2]", "path.lambdas", "is not read with path.rule=single; give path=grid"),
        ("solver=ssg", "solver.method", "one with a dual point, for path.rule=two_sided (path=grid|single need none)"),
        ("solver=eg path=regpath", "solver.method", "one with a dual point, for path.rule=two_sided"),
        ("path.lambda=3", "path.lambda", "is not read with path.rule=two_sided; give path=single"),
        ("+path.kind=grid", "path.kind", "was removed; for regpath write nothing"),
        ("path=grid path.rule=paper", "path.rule", "path=grid sets it; leave out path.rule=paper or path=grid"),
        ("dataset=sequences_csv", "dataset.file", "must be given"),
    ],
)  # fmt: skip
def test_bad_value__names_the_key(override: str, key: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(composed(*override.split()), overrides=override.split())
    text = str(caught.value)
    assert text.startswith(f"{key}:")
    assert says in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("+experiment=regpath_orc", "experiment: there is no 'regpath_orc' (did you mean regpath_ocr?); there are: "),
        ("solver=bcfww", "solver: there is no 'bcfww' (did you mean bcfw?); there are: accelerated, "),
        ("eps=0.1", "eps: unknown key (did you mean path.eps?); there are: "),
        ("path.ep=1", "path.ep: unknown key (did you mean eps?); there are: end, eps, kappa, "),
        ("path.eps=-1", "path.eps: expected a number > 0"),
    ],
)
def test_command__bad_configuration_is_one_line_and_exit_code_2(
    given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, override: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = given(*override.split())
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("error: ")
    assert says in done.err
    assert list(tmp_path.iterdir()) == []


def test_help__names_every_choice_and_explains_groups_choices_and_commands(given) -> None:
    done = given("--help", "path.eps=1")
    assert (done.code, done.err, "path.eps=null" in done.out) == (0, "", True)
    names = {word.strip(",*") for word in done.out.split()}
    assert {name for choices in CHOICES.values() for name in choices} <= names
    lines = [line.strip("* ") for line in given("--help", "solver").out.splitlines()]
    for file in (CONF / "solver").glob("*.yaml"):
        assert any(line.startswith(file.stem) and line.endswith(summary(file)) for line in lines), file
    shown = given("--help", "sequences_csv").out
    for key, value, _ in comments(CONF / "dataset" / "sequences_csv.yaml"):
        assert f"  dataset.{key}={value}".split(" ")[2] in shown
    assert given("--help", "predict").out.startswith("usage: gapwise predict ")
    done = given("--help", "solvr")
    assert done.code == 2
    assert "--help solvr: no such group, choice or command (did you mean solver?)" in done.err


def test_key__ignores_where_and_how_long_but_not_what() -> None:
    settings = read(composed())
    key, features = settings.run_key({}), settings.features_key({})
    for override in ("compute=serial", "tracking=none", "checkpoint.every_seconds=1", "run.root=elsewhere",
                     "solver.max_seconds=9", "figures.formats=[pdf]"):  # fmt: skip
        assert read(composed(override)).run_key({}) == key, override
    for override in ("seed=1", "path.eps=0.2", "solver=bcfw", "solver.degree=2", "dataset.seed=1"):
        other = read(composed(override))
        assert other.run_key({}) != key, override
        assert (other.features_key({}) == features) == (override != "dataset.seed=1"), "solvers share features"
    assert settings.run_key({"files": 2}) != key


@pytest.mark.parametrize("name", ["train (1).txt", "a=b.txt", "it's.txt", "[1].txt", "日本", "\\ü\\", "é, ü"])
def test_words__may_have_any_file_names(name: str) -> None:
    parse, parts = OverridesParser.create().parse_override, [part.strip() for part in name.split(",")]
    assert parse(readable(f"+dataset.file={name}")).value() == name
    assert parse(readable(f"dataset.file=[{name},b.txt]")).value() == [*parts, "b.txt"]
    words = parse(readable(f"dataset.file={name},b.txt", sweeps=True)).sweep_string_iterator()
    assert [parse(f"dataset.file={word}").value() for word in words] == [*parts, "b.txt"]


@pytest.mark.parametrize(
    "word",
    ["seed=1,2", "path.lambdas=[1,2]", "dataset.label_weights={O: 1}", "a='x y'", "--cfg", "~dataset.x", "a=range(1,3)",
     "a=${oc.env:HOME}/x", "dataset.file=train-*.txt"],
)  # fmt: skip
def test_words__that_hydra_reads_stay_as_they_are(word: str) -> None:
    assert [readable(word, sweeps) for sweeps in (False, True)] == [word, word]


def test_home__is_meant_by_a_tilde_in_every_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("Ada B\n")
    (tmp_path / "template").write_text("U:%x[0,0]\n")
    files = {"file": ["~/a.txt", Path("~/b.txt")], "test_file": "~/b*", "template": "~/template"}
    reader = open_dataset("sequences_csv", files)
    assert {*reader.files().values()} == {tmp_path / name for name in ("a.txt", "b.txt", "template")}
    parser = ArgumentParser()
    command("predict").arguments(parser)
    assert parser.parse_args(["run", "~/a.txt", "b"]).inputs == [str(tmp_path / "a.txt"), "b"]
    assert store_uri(TrackingOptions(uri="~/mlruns")) == str(tmp_path / "mlruns")
    assert on_this_machine("~/runs") == str(tmp_path / "runs")


@pytest.mark.parametrize(
    ("words", "eps"),
    [
        ((), 0.1),
        (("dataset=multiclass_arrays", "dataset.file=x"), 0.1),
        (("dataset=multiclass_arrays", "dataset.file=x", "dataset.validation=0.2"), 0.02),
        (("dataset=multiclass_arrays", "dataset.file=x", "sweep.cv=5"), 0.02),
        (("dataset=multiclass_arrays", "dataset.file=x", "dataset.validation=0.2", "path.eps=0.3"), 0.3),
    ],
)
def test_eps__is_that_of_estimators_where_data_of_ones_own_choose_lambda(words: tuple[str, ...], eps: float) -> None:
    assert read(composed(*words)).path.eps == eps


@pytest.fixture
def gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key, a value, a flag, a preset and a command as if they had been removed."""
    for name in ("path.lanes", "path.width=2", "path.rule=paper", "tracking.fast=true", "solver=slow", "frobnicate"):
        monkeypatch.setitem(REMOVED, name, f"instead of {name}")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("path.lanes=2", "path.lanes"),
        ("+path.lanes=2", "path.lanes"),
        ("path.width=2", "path.width=2"),
        ("path.rule=paper", "path.rule=paper"),
        ("+tracking.fast=true", "tracking.fast=true"),
        ("solver=slow", "solver=slow"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_command__refuses_what_is_gone(
    given, gone: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = given(*words.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"{name}: was removed; instead of {name}\n")
    assert done.err.count("\n") == 1


def test_table__names_nothing_that_is_there() -> None:
    there = {f"{group}={choice}" for group in groups() for choice in choices(group)} | {*known()}
    there |= {f"solver.method={name}" for name in methods()} | {f"path.rule={name}" for name in rules()}
    assert not there & {*REMOVED}
