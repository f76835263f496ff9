"""Libraries that tests compile are kept for the next run of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.compiled import KIND, c_compiler, keep, keep_emulated
from tests.kernels import written
from tilewright.measure.cpu.compilation import Compilations
from tilewright.measure.cuda.emulator import toolchain
from tilewright.measure.cuda.emulator.toolchain import CompileError
from tilewright.measure.host.cache import cached_kinds, clear
from tilewright.spaces.kernel import Launch

LAUNCH = Launch((1, 1, 1), (32, 1, 1))


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_library_is_made_once_of_the_same(tmp_path):
    made = []
    library = tmp_path / "made.so"

    def make() -> None:
        made.append(len(made))
        library.write_text(f"number {len(made)}")

    for given, content in (("a", 1), ("a", 1), ("b", 2), ("a", 1)):
        assert keep(library, (c_compiler(), given), make).read_text() == f"number {content}"
    assert made == [0, 1]


def test_what_fails_is_not_kept(tmp_path):
    def fail() -> None:
        raise ValueError("not this time")

    for _ in range(2):
        with pytest.raises(ValueError, match="not this time"):
            keep(tmp_path / "made.so", "given", fail)


def test_a_library_that_is_loaded_stays_what_it_is(tmp_path):
    library = tmp_path / "made.so"
    for given in "ab":
        keep(library, given, partial(library.write_text, given))
    with open(library) as loaded:
        assert keep(library, "a", None).read_text() == "a"
        assert loaded.read() == "b"


def test_what_is_kept_is_shown_and_cleared(tmp_path):
    library = tmp_path / "made.so"
    keep(library, "given", partial(library.write_text, "made"))
    assert {each.kind: each.files for each in cached_kinds()}[KIND] == 1
    clear()
    assert not sum(each.files for each in cached_kinds())


def test_a_kernel_is_compiled_again_with_other_flags(tmp_path, monkeypatch):
    kernel = written("cuda", "k", 'extern "C" __global__ void k() {}', launch=LAUNCH)
    for number, flags in enumerate([("-std=c++20", "-w"), ("-std=c++20", "-w", "-g0")], 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.setattr(toolchain, "_STANDARD", flags)
        keep_emulated([kernel], folder, Compilations())
        assert {each.kind: each.files for each in cached_kinds()}[KIND] == number


def test_a_kernel_for_the_emulator_is_compiled_once(tmp_path, monkeypatch):
    right, wrong = (
        written("cuda", "k", f'extern "C" __global__ void k() {{ {text} }}', launch=LAUNCH)
        for text in ("", "wrong")
    )
    compilations = Compilations()
    with pytest.raises(CompileError):
        keep_emulated([wrong], tmp_path, compilations)
    first = keep_emulated([right], tmp_path, compilations).read_bytes()
    compilations.close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert keep_emulated([right], elsewhere, compilations).read_bytes() == first
    with pytest.raises(CompileError, match="cancelled"):
        keep_emulated([wrong], elsewhere, compilations)
