"""Versions of templates as their source declares them: a command that only names records has no
time to load all templates, with NumPy."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_NAME = re.compile(r'^    name: ClassVar\[str\] = "(\w+)"', re.M)
_VERSION = re.compile(r"^    version: ClassVar\[int\] = (\d+)", re.M)


def is_of_earlier_version(versioned: str, kind: str) -> bool:
    """Tell whether a name such as ``contraction.2`` is a template of this kind of target in another
    version than its present one. False for templates that are not declared here.
    """
    name, _, version = versioned.rpartition(".")
    present = declared_versions(kind).get(name)
    return present is not None and version != str(present)


@cache
def declared_versions(kind: str) -> dict[str, int]:
    """Return the version of each template for a kind of target, of those that declare their
    names."""
    found: dict[str, int] = {}
    for path in Path(__file__).parent.glob(f"{kind}/*/template.py"):
        text = path.read_text()
        shared = _VERSION.search(text)
        for one in text.split("\nclass "):
            version = _VERSION.search(one) or shared
            found |= dict.fromkeys(_NAME.findall(one), int(version[1]) if version else 1)
    return found
