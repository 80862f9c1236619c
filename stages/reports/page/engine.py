"""The template engine of all pages: files of `templates`, filled by jinja2, which escapes every text that is not HTML."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

ENGINE = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENGINE.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}


def fill(template: str, **values: object) -> Markup:
    """The file ``templates/<template>.html`` with its values; a name that is missing is an error."""
    return Markup(ENGINE.get_template(f"{template}.html").render(**values))


@cache
def macro(name: str) -> Callable[..., Markup]:
    """A macro of ``templates/parts.html``."""
    return cast("Callable[..., Markup]", getattr(ENGINE.get_template("parts.html").module, name))
