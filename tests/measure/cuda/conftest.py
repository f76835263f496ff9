"""What the tests of the emulated GPU share."""

from __future__ import annotations

import pytest

from tests.measure.cuda import emulated_device


@pytest.fixture(scope="session")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def libraries(_folder: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder for what is compiled for the emulated device, which all its processes share."""
    monkeypatch.setenv(emulated_device.LIBRARIES, _folder)
    return _folder
