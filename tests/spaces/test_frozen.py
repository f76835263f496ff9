"""Texts, calls, quantities and machine code of all templates stay what they are."""

from __future__ import annotations

import json

import pytest

from tests.spaces import frozen


@pytest.mark.parametrize("name", frozen.TARGETS)
def test_texts_and_quantities_are_what_they_were(name):
    known = json.loads(frozen.TEXTS.read_text())[name]
    found = frozen.digests(frozen.TARGETS[name])
    assert found.keys() == known.keys()
    changed = {
        f"{template}: {work}: {what}"
        for template, works in found.items()
        for work, digests in works.items()
        for what, digest in digests.items()
        if known[template].get(work, {}).get(what) != digest
    }
    assert not changed, "renew by `python -m tests.spaces.frozen`, if they are to change"
    assert all(works.keys() == known[template].keys() for template, works in found.items())


def test_each_template_is_frozen():
    served = {
        (target.kind, name)
        for target in frozen.TARGETS.values()
        for name, own in frozen.spaces(target)
        if own
    }
    assert served == {
        (target.kind, name)
        for target in frozen.TARGETS.values()
        for name, _ in frozen.spaces(target)
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", frozen.TARGETS)
def test_machine_code_is_what_it_was(name):
    known, target = json.loads(frozen.MACHINE_CODE.read_text())[name], frozen.TARGETS[name]
    if known["compiler"] != frozen.compiler(target):
        pytest.skip(f"the machine code is of {known['compiler']}")
    assert frozen.machine_code(target) == known["digests"]
