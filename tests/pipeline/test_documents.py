"""What the READMEs promise exists: commands compose, links resolve, functions are where they are said to be."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from gapwise.pipeline.config.settings import read
from gapwise.pipeline.data import source_of
from gapwise.pipeline.run import locations

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "stages/README.md", "storage/README.md", "pipeline/README.md")]
PAGES += [ROOT / "tests" / folder / "README.md" for folder in ("benchmarks", "examples")]
PAGES += [ROOT / "tests" / "benchmarks" / "NOTES.md"]
SITE = sorted(page for page in (ROOT / ".github" / "docs").rglob("*.md") if not page.name.endswith(".inc.md"))
PAGES += SITE
DOCUMENTS = [*PAGES, ROOT / "CHANGELOG.md", ROOT / ".github" / "SECURITY.md"]
COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:python -m pipeline|gapwise(?= \+?\w+=)) (.*)$", re.MULTILINE)
CITED = re.compile(r"`([\w/]+\.py): ([\w, ]+)`")


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8").replace("\\\n", " ")


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def defined(file: Path) -> set[str]:
    """Names of functions, methods and classes in a file."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(ast.parse(text(file))) if isinstance(node, kinds)}


def test_readme__is_short_and_begins_with_the_two_commands() -> None:
    readme = text(ROOT / "README.md")
    commands = re.findall(r"^pip install .*$", readme, re.MULTILINE)
    assert len(readme.splitlines()) <= 120
    assert commands[0] == "pip install -e . && python -m pipeline +experiment=regpath_horseseg"
    assert commands[1] == 'pip install -e ".[test]" && python -m pytest'


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links__lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text(page).replace("\n", " ")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists() or "_generated" in target, target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands__compose(page: Path) -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        for command in COMMAND.findall(text(page)):
            words = [word.replace("…", "x") for word in shlex.split(command.split(" | ")[0], comments=True)]
            overrides = [only_one(word) for word in words if "=" in word and word != "+experiment=x"]
            assert compose("config", overrides), command


def test_readme__shows_the_name_that_its_run_has() -> None:
    """The key covers the sources of the reader, so that an edit of these changes the name."""
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        settings = read(compose("config", ["+experiment=regpath_horseseg"]))
    directory, _, _ = locations(settings, source_of(settings))
    assert re.findall(r"^run: runs/(.*)$", text(ROOT / "README.md"), re.MULTILINE) == [directory.path.name]


def only_one(override: str) -> str:
    """The first of a sweep's values."""
    name, _, value = override.partition("=")
    return override if value.startswith("[") else f"{name}={value.split(',')[0]}"


def test_stages__is_for_maintainers_and_fits() -> None:
    lines = text(ROOT / "stages" / "README.md").splitlines()
    assert len(lines) < 800
    assert not [line for line in lines if line.startswith("| `dataset.") or line.startswith("| `solver.")]


def test_benchmarks__are_one_page_of_200_lines_whose_tables_name_their_commands() -> None:
    page = text(ROOT / "tests" / "benchmarks" / "README.md")
    assert len(page.splitlines()) <= 200
    for section in page.split("\n## ")[1:-1]:  # the last one lists the commands
        before = section.split("\n|")[0]
        assert re.search(r"\bbench_\w+\.py|-m pipeline", before), section.splitlines()[0]
        assert "*Verdict*" in section, section.splitlines()[0]


def test_stages__cites_functions_that_exist() -> None:
    cited = CITED.findall(text(ROOT / "stages" / "README.md"))
    assert cited
    for file, names in cited:
        missing = set(names.split(", ")) - defined(ROOT / "stages" / file)
        assert not missing, f"{file} does not define {', '.join(sorted(missing))}"


def test_documents__cite_nothing_that_a_reader_does_not_have() -> None:
    for page in DOCUMENTS:
        assert not re.search(r"\bDESIGN\b|/work/", text(page)), page
