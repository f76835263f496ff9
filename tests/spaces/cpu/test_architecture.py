"""The architecture that kernels are made for: this machine's, or the one that is asked for."""

from __future__ import annotations

import pytest

from tests.foreign_isa import NEEDED, lacking
from tilewright.spaces.cpu.compiler import ARCHITECTURE
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.errors import InputError

AVX2 = "processor : 0\nflags\t\t: fpu sse2 fma avx2 bmi2\n"


@pytest.mark.skipif(detect_cpu().architecture != "x86_64", reason="names of x86")
@pytest.mark.parametrize(
    ("name", "isa", "registers"), [("haswell", "avx2", 16), ("skylake-avx512", "avx512", 32)]
)
def test_another_architecture_is_detected_as_if_it_were_this_one(monkeypatch, name, isa, registers):
    monkeypatch.setenv(ARCHITECTURE, name)
    target = detect_cpu()
    assert (target.isa, target.vector_registers) == (isa, registers)
    assert target.flags[-1] == f"-march={name}"
    monkeypatch.delenv(ARCHITECTURE)
    assert detect_cpu().fingerprint != target.fingerprint


def test_one_that_the_compiler_does_not_know_is_refused(monkeypatch):
    monkeypatch.setenv(ARCHITECTURE, "pony")
    with pytest.raises(InputError, match="TILEWRIGHT_ARCH='pony' is none that the C compiler"):
        detect_cpu()


def test_what_a_machine_lacks_of_an_instruction_set():
    assert lacking("avx512", AVX2) == {"avx512f", "avx512bw", "avx512vl"}
    assert lacking("avx2", AVX2) == lacking("neon", AVX2) == lacking("avx512", "") == set()
    assert lacking("avx2", "flags : sse2\n") == NEEDED["avx2"]
