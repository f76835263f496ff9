"""What the tests of the emulated GPU share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compiled import keep_emulated
from tests.measure.cuda import emulated_device
from tilewright.measure.cuda import child
from tilewright.measure.cuda.emulator import emulator, toolchain


@pytest.fixture(scope="package", autouse=True)
def _quick_compilation() -> Iterator[None]:
    """Kernels here are many and their problems small; in other processes, and elsewhere, they are
    compiled as usual. What an earlier run compiled is kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toolchain, "OPTIMIZATION", "-O0")
        patch.setattr(emulator, "compile_library", keep_emulated)
        yield


@pytest.fixture(scope="package", autouse=True)
def _patience() -> Iterator[None]:
    """A busy machine takes long to compile what a child begins with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "STARTING_SECONDS", 280.0)
        yield


@pytest.fixture(scope="session")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("libraries"))


@pytest.fixture(scope="module")
def libraries(_folder: str) -> Iterator[None]:
    """A folder for what is compiled for the emulated device, which all its processes share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(emulated_device.LIBRARIES, _folder)
        yield
