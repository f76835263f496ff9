"""Settings of Sphinx. ``make docs`` builds the site into ``docs/_build``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]

import generated  # noqa: E402  (beside this file)

import tilewright  # noqa: E402

project = "Tilewright"
author = "The Tilewright developers"
copyright = "The Tilewright developers"
version = release = tilewright.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "requirements.txt"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"Tilewright {version}"


def setup(app: Any) -> None:
    """Write the generated pages before Sphinx reads its sources."""
    for name in ("accepted", "refused"):  # programs of the language
        app.add_lexer(name, TextLexer)
    app.connect("builder-inited", lambda app: generated.write(HERE / "reference"))
