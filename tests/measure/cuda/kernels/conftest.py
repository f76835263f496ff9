"""The emulator that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tilewright.measure.cuda.emulator import Emulator


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running
