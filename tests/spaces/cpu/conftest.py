"""Says when tests optimize the kernels that they compile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spaces.cpu.native import TURNS


@pytest.fixture(scope="module", autouse=True)
def _turns_of_a_file() -> None:
    TURNS.begin()


@pytest.fixture(autouse=True)
def _all_where_tests_are_slow(request: pytest.FixtureRequest) -> Iterator[None]:
    TURNS.every = request.node.get_closest_marker("slow") is not None
    yield
    TURNS.every = False
