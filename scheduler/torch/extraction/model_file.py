"""The function of a file that makes a model, as ``MODEL.py:function`` names it.

The file is code of the user's, and runs because the user names it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilewright.scheduler.torch.extraction.blame import failed
from tilewright.spaces.errors import InputError, shown

EXAMPLE = "MODEL.py:function"


def model_function(name: str) -> Callable[..., Any]:
    """Load the function; :class:`InputError` for no such file or function, or code that fails."""
    file, colon, wanted = name.rpartition(":")
    if not colon or not wanted.isidentifier():
        raise InputError(f"{shown(name)} names no function; allowed: {EXAMPLE}")
    path = Path(file)
    if not path.is_file():
        raise InputError(f"there is no file {shown(file)}; allowed: {EXAMPLE}")
    found = getattr(_module(path), wanted, None)
    if not callable(found):
        raise InputError(f"{path.name} has no function {shown(wanted)}; allowed: {EXAMPLE}")
    return found


def _module(path: Path) -> Any:
    """Return the module of a file, whose folder is one of those that it may import from."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path.name} is no file of Python; allowed: {EXAMPLE}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # anything that the file's code may raise
        raise failed(error) from error
    return module
