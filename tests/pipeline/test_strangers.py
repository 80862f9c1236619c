"""Somebody else's model or run: no command and no function of the library runs what only its files name."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numcodecs
import numpy as np
import pytest
import python_task
from reseal import reseal, reseal_facts
from waiting import python

import gapwise
from gapwise.pipeline.cli import carry_out, known
from gapwise.stages.model.from_run import model_of
from gapwise.stages.problems.user_code import UntrustedError, only
from gapwise.storage.backend import UrlPath, location_in
from gapwise.storage.files import DamagedError, read_json, write_json
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.integrity import sealed

WORDS = "P\tw=a\tw=b\nQ\tw=b\n\nQ\tw=c\n\nP\tw=a\nP\tw=c\nQ\tw=b\n\nQ\tw=b\nP\tw=d\n"
HOSTILE: dict[str, Callable[[Path], dict[str, Any]]] = {
    "a module as an oracle": lambda marker: {
        "dataset": "python_oracle", "structure": "python_oracle", "oracle": "touching:X", "source": "", "arguments": {},
    },
    "a module behind our own structure": lambda marker: {
        "dataset": "python_structure", "module": "touching:X", "source": "", "arguments": {},
    },
}  # fmt: skip
"""What the facts of features say instead of the truth; each would make `marker`."""


@pytest.fixture
def honest(chain) -> Path:
    """A run of ours, complete."""
    return chain.run


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that hostile code makes, and a module `touching` that makes it when it is imported."""
    file = tmp_path / "marker"
    (tmp_path / "touching.py").write_text(f"import pathlib\npathlib.Path({str(file)!r}).touch()\n")
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("touching", None)
    return file


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest, honest: Path, tmp_path: Path, marker: Path) -> Path:
    """The run with other facts of its features, every checksum made again."""
    root = tmp_path / "runs"
    shutil.copytree(honest.parent, root)
    (meta,) = root.glob("features/*/meta.json")
    write_json(meta, sealed({**read_json(meta), **HOSTILE[request.param](marker)}))
    reseal(root)
    return root / honest.name


Words = list[list[object]]


def every_command(what: Path, out: Path) -> dict[str, Words]:
    """All commands, with words that make each open `what`, a run or a model."""
    text = what.parent.parent / "new.txt"
    forms = [[what, "--format", form, "-o", out / form] for form in ("gapwise", "mlflow")]
    more = (["--margins"], ["--calibrate", "isotonic"], ["--lambda", 1, "-o", out / "labels.npz"])
    return {
        "check": [[what], [what, "n=1"]],
        "evaluate": [[what, text]],
        "explain": [[what, "test"], [what], [what, "--json"]],
        "export": forms,
        "gc": [["--root", what.parent], [what], [what, "--yes"]],
        "ls": [["--root", what.parent], ["--root", what.parent, "--json"], [what], [what, "--json"]],
        "predict": [[what, text], *([what, "test", *words] for words in more)],
        "report": [[what], [what, "-o", out / "report.html"]],
        "sync": [[what], [what, "--uri", f"sqlite:///{out}/mlflow.db"]],
    }


NEEDED = ("evaluate", "explain", "export", "predict")
CODES = {name: (0, 1) if name in NEEDED else (2,) if name == "check" else (0,) for name in known()}
"""How commands end on a run whose code they do not run: not all need it. `check` takes no files, and `gc` removes them."""


@pytest.mark.parametrize(
    ("hostile", "opened"),
    [("a module as an oracle", "model"), ("a module behind our own structure", "run")],
    indirect=["hostile"],
)
def test_commands__run_nothing_that_files_name(opened, hostile, marker, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.txt").write_text(WORDS)
    what, out = hostile, tmp_path / "out"
    if opened == "model":
        what = tmp_path / "models" / "model"
        assert carry_out(["export", str(hostile), "-o", str(what)]) == 0
    words_of = every_command(what, out)
    assert sorted(words_of) == known(), "a command that this test does not try"
    for name in sorted(words_of, key=lambda name: name == "gc"):
        for words in words_of[name]:
            capsys.readouterr()
            code, err = carry_out([name, *map(str, words)]), capsys.readouterr().err
            assert not marker.exists(), (name, words, err)
            assert "Traceback" not in err
            assert code == 0 or "error: " in err, (name, words)
            assert code in (CODES[name] if opened == "run" else (0, 1, 2)), (name, words, err)
    assert "touching" not in sys.modules


def test_commands__say_what_they_do_not_run(hostile, marker, tmp_path, refused):
    told = refused("predict", hostile, "test", "-o", tmp_path / "out")
    assert "is named by these files alone" in told
    assert "--trust" in told
    assert "touch" in told
    assert gapwise.open_path(hostile).weights_at(1.0).size
    carry_out(["export", str(hostile), "-o", str(tmp_path / "gapwise")])
    model = gapwise.load_model(tmp_path / "gapwise")
    with pytest.raises(UntrustedError, match="trust=True"):
        model.answer("test")
    assert not marker.exists()
    assert "touching" not in sys.modules


def test_console_script__finds_modules_of_the_current_folder_for_a_run(marker, tmp_path):
    (tmp_path / "mine.py").write_text("from python_task import Pairs\n")
    (tmp_path / "zarr.py").write_text(f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n")
    code = "import sys; sys.path[:] = filter(None, sys.path); from gapwise.pipeline.entry import script; script()"
    words = ["dataset=python_oracle", "dataset.oracle=mine:Pairs", "run.until=featurize", "tracking=none"]
    python("-c", code, *words, "compute=serial", cwd=tmp_path, GAPWISE_RUNS=str(tmp_path / "own"))
    assert not marker.exists(), "zarr is the installed one"


@pytest.mark.parametrize("how", ["--trust", "trust", "oracle"])
def test_predict__runs_what_the_user_trusts_or_names(how, hostile, marker, tmp_path, capsys):
    carry_out(["export", str(hostile), "-o", str(tmp_path / "model")])
    if how == "--trust":
        assert carry_out(["predict", str(tmp_path / "model"), "test", "--trust"]) == 1
    else:
        named = gapwise.load_model(tmp_path / "model").code
        model = gapwise.load_model(tmp_path / "model", **({"trust": True} if how == "trust" else {"oracle": named}))
        with pytest.raises((ValueError, UntrustedError)):  # it answers nothing
            model.answer("test")
    assert marker.exists()


def test_load_model__predicts_with_the_class_that_is_given(honest, tmp_path, marker):
    facts = HOSTILE["a module as an oracle"](marker)
    carry_out(["export", str(honest), "-o", str(tmp_path / "model")])
    file = tmp_path / "model" / "model.json"
    stored = read_json(file)
    np.save(tmp_path / "model" / "weights.npy", np.arange(7.0))
    features = {**stored["features"], **facts, "d": 7, "dataset": "python_oracle", "label_names": []}
    reseal_facts(file, features=features)
    predicted = gapwise.load_model(tmp_path / "model", oracle=python_task.Pairs).answer({"split": "fresh", "n": 3})
    asked = python_task.Pairs("fresh", n=3)
    assert [predicted.named(i) for i in range(3)] == [asked.decode(i, np.arange(7.0)).tolist() for i in range(3)]
    with pytest.raises(ValueError, match="sequences_csv has no code of your own"):
        model_of(honest, oracle=python_task.Pairs)


def test_sync__takes_no_server_and_no_environment_from_a_run(honest, tmp_path, monkeypatch, capsys):
    shutil.copytree(honest, tmp_path / honest.name)
    run, own, opened = tmp_path / honest.name, f"sqlite:///{tmp_path / 'mlflow.db'}", []
    monkeypatch.setenv("GAPWISE_RUNS", str(tmp_path))
    monkeypatch.delenv("DVC_ROOT", raising=False)
    monkeypatch.setattr(
        "gapwise.pipeline.tracking.mlflow.Tracker",
        lambda options, directory: SimpleNamespace(sync=lambda status: opened.append(options.uri)),
    )
    (config,) = run.glob("invocations/*/.hydra/config.yaml")
    for uri in ("http://127.0.0.1:1", "mysql+touching://h/d", "databricks", f"sqlite:///{tmp_path / 'theirs.db'}"):
        write_json(run / "tracking.json", {"uri": uri})
        config.write_text(f"tracking: {{uri: '{uri}'}}\n")
        assert carry_out(["sync", str(run)]) == 0
        assert capsys.readouterr().out.endswith(f"shown in {own} as FINISHED\n")
    assert {*opened} == {own}


def test_features__are_not_opened_at_a_url_that_a_run_names(honest, tmp_path, refused):
    shutil.copytree(honest, tmp_path / honest.name)
    file = tmp_path / honest.name / "manifest.json"
    manifest = read_json(file)
    manifest["stages"]["featurize"]["path"] = "reference://::file:///stranger.json"
    write_json(file, sealed(manifest))
    told = refused("export", file.parent, "-o", tmp_path / "model")
    assert "names reference://::file:///stranger.json, which is not opened" in told
    assert location_in("memory://a/features", UrlPath("memory://b/run")) == UrlPath("memory://a/features")
    for words in ("memory://a::file://b", "http://a"):
        with pytest.raises(ValueError, match="not opened"):
            location_in(words, UrlPath("memory://b/run"))


def test_open_path__reads_no_pickled_objects(tmp_path, marker, monkeypatch):
    path = tmp_path / "run" / "path.zarr"
    (path / "lambda").mkdir(parents=True)
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    (path / ".zattrs").write_text(json.dumps({"format_version": FORMAT_VERSION}))
    (path / "lambda" / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["breakpoint"]}')
    array = {"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|O", "order": "C", "fill_value": None}
    array |= {"compressor": {"id": "pickle"}, "filters": [{"id": "vlen-utf8"}]}
    (path / "lambda" / ".zarray").write_text(json.dumps(array))
    (path / "lambda" / "0").write_bytes(b"cpathlib\nPath\n(S'%s'\ntR." % bytes(marker))
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)  # as older versions do
    decoded = []
    monkeypatch.setattr(numcodecs.Pickle, "decode", lambda self, buf, out=None: decoded.append(bytes(buf)))
    with pytest.raises((ValueError, OSError)):
        gapwise.open_path(tmp_path / "run")
    from gapwise.storage.layout import read_group

    with pytest.raises(DamagedError):
        read_group(path)
    assert decoded == []


def test_only__holds_for_the_block_and_nested(marker):
    from gapwise.stages.problems.user_code import user_module

    with only(["touching:X"]):
        with only(), pytest.raises(UntrustedError, match="import the module 'touching'"):
            user_module("touching:X")
        assert not marker.exists()
        user_module("touching:X")
    assert marker.exists()


def test_outputs__replace_nothing_without_force_and_never_write_through_a_link(honest, tmp_path, capsys, refused):
    (tmp_path / "new.txt").write_text(WORDS)
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "nowhere").symlink_to(tmp_path / "not there")
    predict = ["predict", honest, tmp_path / "new.txt", "-o"]
    for name, what in (("link", "is a symbolic link"), ("nowhere", "is a symbolic link"), ("target", "exists")):
        for command in (predict, ["export", honest, "-o"]):
            told = refused(*command, tmp_path / name)
            assert f"{tmp_path / name}: {what}; nothing is overwritten. Give another place, or --force" in told
    assert "is neither a file nor a folder" in refused(*predict, "/dev/null", "--force")
    for name in ("link", "nowhere"):
        assert carry_out([str(word) for word in (*predict, tmp_path / name, "--force")]) == 0
        assert not (tmp_path / name).is_symlink()
    assert (tmp_path / "target").read_text() == "mine"
    assert not (tmp_path / "not there").exists()
    for form in ("gapwise", "mlflow"):
        link, words = tmp_path / f"{form}-link", ["export", str(honest), "--format", form, "-o"]
        link.symlink_to(tmp_path / "target")
        assert carry_out([*words, str(link), "--force"]) == 0
        assert (tmp_path / "target").read_text() == "mine"
        capsys.readouterr()
        assert "exists; nothing is overwritten" in refused(*words, link)
        assert carry_out([*words, str(link), "--force"]) == 0


def test_predict__compares_a_model_with_its_run_where_that_is_at_hand(honest, tmp_path, capsys, caplog, refused):
    root = tmp_path / "runs"
    shutil.copytree(honest.parent, root)
    model, run = tmp_path / "model", root / honest.name
    assert carry_out(["export", str(run), "-o", str(model)]) == 0
    (tmp_path / "new.txt").write_text(WORDS)
    predict = ["predict", str(model), str(tmp_path / "new.txt"), "--root"]
    assert carry_out([*predict, str(root)]) == 0
    assert not caplog.records
    stored = read_json(model / "model.json")
    changes = {"lambda": 7.0, "certificate": {**stored["certificate"], "eps": 0.0}}
    changes["features"] = {**stored["features"], "labels": 1}
    for what, changed in changes.items():
        write_json(model / "model.json", sealed({**stored, what: changed}))
        capsys.readouterr()
        assert f"its {what} is not what {run} gives" in refused(*predict, root)
    weights = np.load(model / "weights.npy")
    np.save(model / "weights.npy", 2.0 * weights)
    reseal_facts(model / "model.json", **stored)
    assert f"its weights is not what {run} gives" in refused(*predict, root)
    with pytest.raises(DamagedError, match="its weights"):
        gapwise.load_model(model, run=run)
    assert carry_out([*predict, str(tmp_path / "elsewhere")]) == 0, "the run is not at hand"
    reseal_facts(model / "model.json", origin={**stored["origin"], "digest": "0"})
    assert carry_out([*predict, str(root)]) == 0
    assert "has changed since, or is another one" in caplog.text
