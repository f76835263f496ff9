"""The templates of pages: Jinja2, which escapes all that comes from a database."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.extras import extra

if TYPE_CHECKING:
    from jinja2 import Template

FOLDER = Path(__file__).with_name("templates")


@cache
def template(name: str) -> Template:
    """Return the template in this file."""
    jinja2 = extra("jinja2", "report", "a report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def trusted(text: str) -> Any:
    """Mark text of our own, or that is escaped already, as HTML."""
    return extra("markupsafe", "report", "a report").Markup(text)
