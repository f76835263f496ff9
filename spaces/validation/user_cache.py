"""The folder of the user's cache, which all kinds of cached files share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tilewright.spaces.errors import InputError


def user_cache() -> Path:
    """Return where all kinds have their folders; :class:`InputError` for a user without a home."""
    import platformdirs  # only where a cache is used

    root = None
    with suppress(RuntimeError):  # older versions of platformdirs leave ``~`` as it is
        root = platformdirs.user_cache_path("tilewright")
    if root is None or not root.is_absolute():
        raise InputError("there is no home folder for a cache; XDG_CACHE_HOME names a folder")
    return root
