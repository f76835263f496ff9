"""Libraries that only some commands need, and a plain installation does not bring."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tilewright.spaces.errors import InputError


def extra(module: str, name: str, purpose: str) -> ModuleType:
    """Return ``module``, which the extra called ``name`` installs, loaded now.

    :class:`InputError` with the line that installs it, where it is not there.
    """
    try:
        return import_module(module)
    except ImportError:
        library = module.partition(".")[0]
        raise InputError(f"{purpose} needs {library}: pip install 'tilewright[{name}]'") from None
