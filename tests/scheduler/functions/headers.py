"""The headers of Python, which what is built in C needs."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

HEADER = Path(sysconfig.get_path("include"), "Python.h")
needs_header = pytest.mark.skipif(not HEADER.exists(), reason="there are no headers of Python")
