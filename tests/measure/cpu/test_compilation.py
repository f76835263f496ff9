"""Compilers under a limit of time."""

from __future__ import annotations

import pytest

from tilewright.measure.cpu.compilation import Compilations


@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.timeout(60)
def test_a_compiler_that_waits_for_ever_is_ended(tmp_path, supervised):
    outcome = Compilations(supervised).run(["sleep", "1000"], tmp_path, limit=0.5)
    assert (outcome.ok, outcome.timed_out) == (False, True)
    assert outcome.text == "no end within 0.5 s"
