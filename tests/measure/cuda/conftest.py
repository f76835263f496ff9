"""What the tests of the emulated GPU share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.measure.cuda import emulated_device


@pytest.fixture(scope="session")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("libraries"))


@pytest.fixture(scope="module")
def libraries(_folder: str) -> Iterator[None]:
    """A folder for what is compiled for the emulated device, which all its processes share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(emulated_device.LIBRARIES, _folder)
        yield
