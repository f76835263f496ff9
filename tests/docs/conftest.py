"""The built site, once for all tests of a process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs.site import Site
from tests.pages import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Site:
    """The site as it is published; Sphinx may not warn of anything."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", ROOT / "docs", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Site(folder)
