"""Versions that templates declare in their source are those that they have."""

from __future__ import annotations

import pytest

from tilewright.spaces.backends import backend
from tilewright.spaces.declared_versions import declared_versions, is_of_earlier_version


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_what_is_declared_is_so(kind):
    templates = backend(kind).part("templates")
    loaded = {name: template.version for name, template in templates.items()}
    declared = declared_versions(kind)
    assert len(declared) > len(loaded) // 2
    assert declared == {name: loaded[name] for name in declared}


def test_an_earlier_version_is_another_one_of_a_known_template():
    now = declared_versions("cpu")["contraction"]
    assert is_of_earlier_version("contraction.1", "cpu")
    assert not is_of_earlier_version(f"contraction.{now}", "cpu")
    assert not is_of_earlier_version("mine.1", "cpu")
    assert not is_of_earlier_version("contraction.1", "cuda")
