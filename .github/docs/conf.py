"""Configuration of the site: ``python -m sphinx -W --keep-going -b html .github/docs OUT``."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import configuration  # noqa: E402
import drawings  # noqa: E402

project, author, release = "Gapwise", "The Gapwise developers", "0.1.0"
project_copyright = "The Gapwise developers"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_nb"]
exclude_patterns = ["_build", "_generated/*.inc.md", "text"]
templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "Gapwise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {
    page: [] for page in ("index", "install", "coming_from", "primer", "configuration", "solver", "reference")
}
html_theme_options = {
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
}
default_role = "code"
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
suppress_warnings = ["config.cache"]


def write_generated(_app: Sphinx) -> None:
    """Pages and drawings that code makes, before Sphinx reads the sources."""
    folder = HERE / "_generated"
    folder.mkdir(exist_ok=True)
    (folder / "configuration.inc.md").write_text(configuration.page(), encoding="utf-8")
    practice = (HERE.parent / "results" / "PRACTICE.md").read_text(encoding="utf-8").partition("\n## ")[0]
    table = [line for line in practice.splitlines() if line.startswith("|")]
    (folder / "practice.inc.md").write_text("\n".join(table), encoding="utf-8")
    drawings.primer(folder)


def skip(_app: Sphinx, _what: str, name: str, _member: object, skipped: bool, _options: object) -> bool:
    """Leave out the methods that scikit-learn makes for the routing of metadata."""
    return skipped or (name.startswith("set_") and name.endswith("_request"))


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", write_generated)
    app.connect("autodoc-skip-member", skip)
