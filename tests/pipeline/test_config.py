"""The configuration: every file in conf/ composes and is valid, and errors name the wrong key in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from functools import partial
from pathlib import Path

import pytest
from configs import composed
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from gapwise.pipeline.cli import command
from gapwise.pipeline.command import readable
from gapwise.pipeline.config.run_options import (
    CheckpointOptions,
    ComputeOptions,
    FigureOptions,
    RunOptions,
    SnapshotOptions,
    TrackingOptions,
)
from gapwise.pipeline.config.settings import CONF, Settings, by_user_name, on_this_machine, read
from gapwise.pipeline.errors import ConfigError
from gapwise.pipeline.help import GROUPS, KEYS, comments, help_on, summary
from gapwise.pipeline.tracking.mlflow import store_uri
from gapwise.stages.datasets import open_dataset
from gapwise.stages.solver.methods import method_options, methods
from gapwise.stages.solver.options import PathOptions

EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))
ROOT = CONF.parent


def with_data(*overrides: str) -> Settings:
    """Read, giving the data set a root or a file where it asks for one."""
    cfg = composed(*overrides)
    keys = ("root", "file", "test_file", "oracle", "module", "command")
    missing = [key for key in keys if OmegaConf.is_missing(cfg.dataset, key)]
    for key in missing:
        with pytest.raises(ConfigError, match=rf"dataset\.{key}: must be given"):
            read(cfg)
        cfg.dataset[key] = "somewhere"
    return read(cfg)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_experiment__composes_and_validates(experiment: str) -> None:
    settings = with_data(f"+experiment={experiment}")
    assert settings.dataset["name"]
    assert settings.path.kappa < 1


@pytest.mark.parametrize(
    "choice",
    [
        f"{group}={path.stem}"
        for group in ("dataset", "solver", "path", "compute", "tracking")
        for path in sorted((CONF / group).glob("*.yaml"))
    ],
)
def test_group__every_file_validates(choice: str) -> None:
    group, name = choice.split("=")
    more = {"single": "path.lambda=0.1", "cluster": "compute.address=tcp://host:8786"}
    more |= dict.fromkeys(("eg", "ssg", "ssg_wavg"), "path=single")  # no dual point of labellings, as a path needs
    settings = with_data(choice, *([more[name]] if name in more else []))
    rule = settings.path.rule
    chosen = {
        "dataset": settings.dataset["name"], "solver": settings.solver.name,
        "path": "regpath" if rule == "two_sided" else rule,
        "compute": settings.compute.kind, "tracking": settings.tracking.kind,
    }  # fmt: skip
    assert chosen[group] == name


def test_params__are_the_sample_experiment_as_dvc_composes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAPWISE_RUNS", raising=False)
    cfg = composed("+experiment=regpath_horseseg")  # as conf/for_dvc.yaml has it: tests/pipeline/test_dvc_params.py
    OmegaConf.resolve(cfg)
    assert OmegaConf.load(ROOT / "params.yaml") == cfg, (
        "params.yaml is behind conf/: python -m pipeline --cfg job --resolve +experiment=regpath_horseseg > params.yaml"
    )


def test_names__reach_their_fields() -> None:
    settings = read(
        composed(
            "path=single",
            "solver=bcpfw_gap_cache",
            "path.lambda=0.25",
            "solver.sampling=uniform",
            "solver.cache.nu=0.5",
        )
    )
    assert settings.path.lam == 0.25
    assert settings.solver.sampler == "uniform"
    assert settings.solver.cache.nu == 0.5


SECTIONS = {
    "path": PathOptions, "compute": ComputeOptions, "tracking": TrackingOptions, "checkpoint": CheckpointOptions,
    "snapshots": SnapshotOptions, "figures": FigureOptions, "run": RunOptions,
}  # fmt: skip
PRESETS = [name for name in methods() if (CONF / "solver" / f"{name}.yaml").is_file()]
OTHERWISE = {"path": {"kappa"}, "run": {"root"}, "bcfw": {"sampling", "step"}}
"""Keys whose default in conf/ is another: 0 stands for the rule's own kappa, the root may come from a variable, and BCFW is
LJ13's in conf/, while the library's options are those of the default preset."""


def differing(yaml: object, options: object, path: str = "") -> set[str]:
    """Keys of a YAML whose values are not the options' defaults."""
    if isinstance(yaml, dict) and isinstance(options, dict):
        return {key for name in yaml for key in differing(yaml[name], options[name], f"{path}.{name}")}
    return set() if yaml == options else {path.removeprefix(".")}


@pytest.mark.parametrize("section", [*SECTIONS, *PRESETS])
def test_yaml__repeats_the_defaults_of_the_options(section: str) -> None:
    group, make = ("solver", partial(method_options, section)) if section in PRESETS else (section, SECTIONS[section])
    cfg = composed(f"solver={section}") if section in PRESETS else composed()
    differences = differing(OmegaConf.to_container(cfg[group], resolve=True), by_user_name(group, make()))
    assert differences - {"name"} <= OTHERWISE.get(section, set())


def test_defaults__are_what_is_fastest_with_cheap_oracles() -> None:
    def chosen(*words: str) -> tuple[str, str, float]:
        settings = read(composed(*words))
        return settings.solver.name, settings.path.rule if settings.path.can.finds_lambdas else "", settings.path.kappa

    assert chosen() == ("bcpfw_gap_cache", "two_sided", 0.7)
    assert chosen("solver=expensive_oracle") == ("expensive_oracle", "two_sided", 0.84)
    assert chosen("solver=expensive_oracle", "path.kappa=0.7")[2] == 0.7
    assert chosen("solver=expensive_oracle", "path.rule=anytime")[2] == 0.85
    assert chosen("path.rule=one_sided")[2] == 0.9
    assert chosen("path=single")[0] == "accelerated"
    for order in (("path=single", "solver=bcfw"), ("solver=bcfw", "path=single")):
        assert chosen(*order)[0] == "bcfw"
    assert read(composed("+experiment=staleness", "dataset.root=x")).solver.name == "bcfw_gap"


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("path.rule=one_sided",), "ed2b4d72"),
        (("path=single", "solver=bcpfw_gap_cache", "path.tolerance=0.1", "path.relative=false"), "4ce844ca"),
        (("path=grid",), "8046d998"),
        (("path=heuristic",), "e7fd309f"),
        (("path.rule=two_sided",), "a816b1aa"),
    ],
)
def test_key__stays_what_it_is(words: tuple[str, ...], key: str) -> None:
    assert read(composed(*words)).run_key({}).startswith(key)


def test_single_lambda__has_the_tolerance_of_the_library() -> None:
    single, grid = (read(composed(f"path={path}")).path for path in ("single", "grid"))
    assert (single.tolerance, single.relative) == (1e-3, True)
    assert (grid.tolerance, grid.relative) == (0.1, False)


@pytest.mark.parametrize("experiment", ["staleness", "cache_regimes", "compare_family", "hard_and_easy", "multiplane"])
def test_absolute_tolerances_of_experiments__stay_absolute(experiment: str) -> None:
    path = composed(f"+experiment={experiment}").path
    assert (path.rule, path.relative) == ("single", False)


def test_key__knows_of_batches() -> None:
    assert read(composed()).science["solver"]["batch_size"] == 1
    assert read(composed("solver.batch_size=4")).science["solver"]["batch_size"] == 4


@pytest.mark.parametrize(
    ("override", "key", "says"),
    [
        ("path.eps=-1", "path.eps", "> 0"),
        ("path.eps=0", "path.eps", "> 0"),
        ("path.kappa=1", "path.kappa", "(0, 1)"),
        ("path.eps=soon", "path.eps", "'soon'"),
        ("path.lambda=0", "path.lambda", "> 0"),
        ("solver.sampling=gaps", "solver.sampling", "permutation"),
        ("solver.name=../elsewhere", "solver.name", "a name"),
        ("solver.cache.F=x", "solver.cache.F", "'x'"),
        ("solver.batch_size=0", "solver.batch_size", ">= 1"),
        ("+solver.cache.G=1", "solver.cache.G", "unknown key"),
        ("+solver.sampler=gap", "solver.sampler", "sampling"),
        ("+path.lam=1", "path.lam", "lambda"),
        ("+dataset.shape=1", "dataset.shape", "there are: colour_samples"),
        ("dataset.seed=x", "dataset.seed", "an integer"),
        ("seed=-1", "seed", "from 0 to"),
        ("seed=1.5", "seed", "1.5"),
        ("compute.workers=0", "compute.workers", ">= 1"),
        ("compute=cluster", "compute.address", "must be given"),
        ("compute=cluster compute.address=host", "compute.address", "tcp://"),
        ("compute=slurm compute.slurm.cores=0", "compute.slurm.cores", ">= 1"),
        ("+compute.slurm.partition=x", "compute.slurm.partition", "unknown key"),
        ("run.stage=solv", "run.stage", "solve"),
        ("checkpoint.every_seconds=-1", "checkpoint.every_seconds", ">= 0"),
        ("figures.formats=[png,eps]", "figures.formats", "png, pdf, svg"),
        ("path=grid path.lambdas=[]", "path.lambdas", "a list"),
        ("path=single path.lambdas=[1,2]", "path.lambdas", "is not read with path.rule=single; give path=grid"),
        (
            "solver=ssg",
            "solver.method",
            "one with a dual point, for path.rule=two_sided (path=grid|single need none), got 'ssg'",
        ),
        ("solver=ssg_wavg path=heuristic", "solver.method", "one with a dual point, for path.rule=heuristic"),
        ("solver=eg path=regpath", "solver.method", "the dual point of eg has no list of labellings"),
        ("solver=bcfw_nols solver.step=away", "solver.step", "expected fw, for method=bcfw_nols"),
        ("path.lambda=3", "path.lambda", "is not read with path.rule=two_sided; give path=single"),
        ("path.tolerance=0.01", "path.tolerance", "is not read with path.rule=two_sided"),
        (
            "+path.kind=grid",
            "path.kind",
            "is no key any more. For path.kind=regpath write nothing; for the others path=heur",
        ),
        ("path=heuristic path.rule=one_sided", "path.rule", "or path=heuristic, or path.descend=… for the steps"),
        ("path=grid path.rule=paper", "path.rule", "path=grid sets it; leave out path.rule=paper or path=grid"),
        ("path=heuristic path.descend=two_sided", "path.descend", "one of one_sided, paper"),
        ("dataset=sequences_csv", "dataset.file", "must be given"),
    ],
)
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
        ("path.ep=1", "path.ep: unknown key (did you mean eps?); there are: descend, end, eps, "),
        ("prdict", "prdict: no such command (did you mean predict?); there are check, "),
        ("+experiment=nonsense", "experiment: there is no 'nonsense'; there are: " + ", ".join(EXPERIMENTS)),
        ("path.epsilon=1", "path.epsilon: unknown key (did you mean eps?); there are: descend, end, eps, kappa"),
        ("dataset.epsilon=1", "dataset.epsilon: unknown key; there are: colour_samples"),
        ("solver=sgd", "bcpfw_gap_cache"),
        ("path.eps=-1", "path.eps: expected a number > 0"),
        ("dataset=ocr path=heuristic path.rule=one_sided", "path.rule: path=heuristic sets it; leave out "),
    ],
)
def test_command__bad_configuration_is_one_line_and_exit_code_2(tmp_path: Path, override: str, says: str) -> None:
    command = [sys.executable, "-m", "pipeline", *override.split()]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_help__is_short_names_every_choice_and_does_without_hydra(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "pipeline", "--help", "path.eps=1"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    lines = [line.strip("* ") for line in done.stdout.splitlines()]
    assert len(lines) < 100
    names = {word.strip(",") for line in lines for word in line.split()}
    assert {file.stem for group in GROUPS for file in (CONF / group).glob("*.yaml")} <= names
    assert "path.eps=0.1" in done.stdout
    for name, keys in KEYS.items():
        group = f"{name.split('/')[0]}." if "/" in name else ""
        for key in keys:
            assert any(line.startswith(f"{group}{key}=") and len(line.split()) > 1 for line in lines), key
    imported = [line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()]
    assert "gapwise.pipeline.entry" in imported
    assert not {name.split(".")[0] for name in imported} & {"hydra", "omegaconf", "numpy"}
    assert not [name for name in imported if name.startswith(("gapwise.stages", "gapwise.storage"))]


@pytest.mark.parametrize("group", GROUPS)
def test_help__on_a_group_explains_every_choice_and_key(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert help_on(["--help", group]) == 0
    lines = [line.strip("* ") for line in capsys.readouterr().out.splitlines()]
    for file in (CONF / group).glob("*.yaml"):
        assert any(re.fullmatch(rf"{file.stem} +{re.escape(summary(file))}", line) for line in lines), file
        if group != "experiment":
            shown = {f"{group}.{key.removeprefix(group + '.')}={value}" for key, value, _ in comments(file)}
            assert [word for word in shown if not any(line.startswith(f"{word} ") for line in lines)] == []


def test_help__on_a_command_is_the_commands_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        help_on(["--help", "predict"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("usage: gapwise predict ")


def test_help__on_a_mistyped_word_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert help_on(["--help", "solvr"]) == 2
    assert "--help solvr: no such group, choice or command (did you mean solver?)" in capsys.readouterr().err
    assert help_on(["--help", "sequences_cvs"]) == 2
    assert "(did you mean sequences_csv?)" in capsys.readouterr().err


def test_help__on_a_choice_explains_all_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert help_on(["--help", "sequences_csv"]) == 0
    lines = [line.split("  ", 2)[1] for line in capsys.readouterr().out.splitlines() if line.startswith("  dataset.")]
    explained = [f"dataset.{key}={value}" for key, value, _ in comments(CONF / "dataset" / "sequences_csv.yaml")]
    assert [line.split(" ")[0] for line in lines] == [word.split(" ")[0] for word in explained]
    assert any(word.startswith("dataset.constraints=") for word in explained)


def test_help__cuts_no_sentence_at_an_abbreviation() -> None:
    cut = [
        file.stem
        for group in GROUPS
        for file in (CONF / group).glob("*.yaml")
        if summary(file).endswith((" al", "App", "Alg"))
    ]
    assert cut == []
    assert summary(CONF / "solver" / "eg.yaml") == "Collins et al. 2008: online exponentiated gradient on the dual"


def test_help__shows_the_values_that_are_composed() -> None:
    cfg = composed()
    for name, keys in KEYS.items():
        group = name.split("/")[0] if "/" in name else None
        shown = {key: value for key, value, _ in comments(CONF / name)}
        for key in keys:
            raw = OmegaConf.create(f"x: {shown[key]}").x if "${" not in shown[key] else None
            value = OmegaConf.select(cfg if group is None else cfg[group], key)
            assert raw is None or raw == value, key


def test_key__ignores_where_and_how_long_but_not_what() -> None:
    key = read(composed()).run_key({})
    same = (
        "compute=serial",
        "tracking=none",
        "checkpoint.every_seconds=1",
        "run.root=elsewhere",
        "solver.max_seconds=9",
        "figures.formats=[pdf]",
    )
    for override in same:
        assert read(composed(override)).run_key({}) == key, override
    for override in ("seed=1", "path.eps=0.2", "solver=bcfw", "dataset.seed=1"):
        assert read(composed(override)).run_key({}) != key, override
    assert read(composed()).run_key({"files": 2}) != key


def test_features_key__is_shared_by_solvers() -> None:
    key = read(composed()).features_key({})
    assert read(composed("solver=bcfw", "path.eps=0.2", "seed=1")).features_key({}) == key
    assert read(composed("dataset.seed=1")).features_key({}) != key


NAMES = [
    "trän.txt",
    "train (1).txt",
    "a=b.txt",
    "~/x",
    "it's.txt",
    "#1 & 2;!",
    "[1].txt",
    "{x}",
    "f(1)",
    "日本",
    'a "q" b',
    "\\ü\\",
    "é, ü",
]


@pytest.mark.parametrize("name", NAMES)
def test_words__may_have_any_file_names(name: str) -> None:
    parse, parts = OverridesParser.create().parse_override, [part.strip() for part in name.split(",")]
    assert parse(readable(f"+dataset.file={name}")).value() == name
    assert parse(readable(f"dataset.file=[{name},b.txt]")).value() == [*parts, "b.txt"]
    words = parse(readable(f"dataset.file={name},b.txt", sweeps=True)).sweep_string_iterator()
    assert [parse(f"dataset.file={word}").value() for word in words] == [*parts, "b.txt"]


@pytest.mark.parametrize(
    "word",
    ["seed=1,2", "path.lambdas=[1,2]", "dataset.label_weights={O: 1}", "a='x y'", "~dataset.x", "--cfg", "--config-dir=ü",
     "solver=bcfw", "a=range(1,3)", "a=${oc.env:HOME}/x", "dataset.file=train-*.txt"],
)  # fmt: skip
def test_words__that_hydra_reads_stay_as_they_are(word: str) -> None:
    assert [readable(word, sweeps) for sweeps in (False, True)] == [word, word]


def test_words__with_a_comma_may_name_a_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a,b.txt").touch()
    assert readable("dataset.file=a,b.txt") == "dataset.file='a,b.txt'"
    assert readable("dataset.file=a,b.txt", sweeps=True) == "dataset.file=a,b.txt"
    assert readable("dataset.file=c,d.txt") == "dataset.file=c,d.txt"


def test_home__is_meant_by_a_tilde_in_every_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("Ada B\n")
    (tmp_path / "template").write_text("U:%x[0,0]\n")
    files = {"file": ["~/a.txt", Path("~/b.txt")], "test_file": "~/b*", "template": "~/template", "constraints": "bio"}
    reader = open_dataset("sequences_csv", files)
    assert {*reader.files().values()} == {tmp_path / name for name in ("a.txt", "b.txt", "template")}
    for name in ("predict", "evaluate", "explain"):
        parser = ArgumentParser()
        command(name).arguments(parser)
        assert parser.parse_args(["run", "~/a.txt", "b"]).inputs == [str(tmp_path / "a.txt"), "b"]
    server = open_dataset("oracle_server", {"command": "x", "files": ["~/a.txt"]})
    assert server.arguments["files"] == [str(tmp_path / "a.txt")]
    assert store_uri(TrackingOptions(uri="~/mlruns")) == str(tmp_path / "mlruns")
    assert on_this_machine("~/runs") == str(tmp_path / "runs")


def test_run_root__may_be_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPWISE_CACHE", str(tmp_path))
    assert on_this_machine("s3://bucket/runs") == str(tmp_path)  # Hydra writes of a multirun
    assert on_this_machine("runs") == "runs"
    RunOptions(root="s3://bucket/runs").check()
    with pytest.raises(ConfigError, match=r"run\.root: nosuch://x: cannot be opened"):
        RunOptions(root="nosuch://x").check()
