"""What docstrings and comments name of the packages is there, under that name."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("spaces", "measure", "costmodel", "scheduler")
REFERENCE = re.compile(rf"`~?((?:{'|'.join(PACKAGES)})(?:\.\w+)+)`")
"""As Sphinx's roles and plain code are marked, ``spaces.space.space`` among them."""


@cache
def names(module: Path) -> frozenset[str]:
    """What a module and its classes define or import."""
    found = set[str]()
    for node in ast.walk(ast.parse(module.read_text())):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name):
                found.add(name)
            case ast.Import(names=given) | ast.ImportFrom(names=given):
                found |= {alias.asname or alias.name for alias in given}
    return frozenset(found)


def is_there(reference: str) -> bool:
    """Whether a dotted name is a package, a module, or something of one."""
    *parts, last = reference.split(".")
    whole = ROOT.joinpath(*parts, last)
    if whole.is_dir() or whole.with_suffix(".py").exists():
        return True
    if not parts:
        return False
    outer = ROOT.joinpath(*parts)
    modules = [outer.with_suffix(".py"), outer / "__init__.py"]
    found = next((module for module in modules if module.exists()), None)
    return last in names(found) if found else is_there(".".join(parts))


def test_every_reference_leads_somewhere():
    sources = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = {
        (str(path.relative_to(ROOT)), reference)
        for path in sources
        for reference in REFERENCE.findall(path.read_text())
        if not reference.endswith(".py")  # a file of somebody else's
    }
    assert len(found) > 100
    assert not {(path, reference) for path, reference in found if not is_there(reference)}


def test_what_is_gone_is_not_found():
    assert is_there("spaces.target.Target.fingerprint")
    assert not is_there("spaces.target.Nothing")
    assert not is_there("spaces.nowhere")
