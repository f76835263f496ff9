"""Vector code that no test's machine may have the instructions to run in a kernel."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from tilewright.spaces.cpu.isa import GENERIC
from tilewright.spaces.cpu.vectors.simd import prelude

INTERLEAVE = """
void interleave(const unsigned short *a, const unsigned short *b, float *low, float *high) {
  vw first = tw_load_words(a), second = tw_load_words(b);
  tw_store_float32(low, tw_low_pairs(first, second));
  tw_store_float32(high, tw_high_pairs(first, second));
}
"""


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_pairs_are_made_of_the_halves_of_two_rows(lanes, tmp_path):
    source, library = tmp_path / "pairs.c", tmp_path / "pairs.so"
    source.write_text(prelude(GENERIC.name, lanes, bf16_dot=True) + INTERLEAVE)
    command = ["gcc", "-O1", "-w", "-shared", "-fPIC", "-o", library, source, "-lm"]
    subprocess.run(command, check=True)
    rows = np.arange(4 * lanes, dtype=np.uint16).reshape(2, 2 * lanes)
    found = np.zeros((2, 2 * lanes), dtype=np.uint16)
    pointers = (ctypes.c_void_p(row.ctypes.data) for row in (*rows, *found))
    ctypes.CDLL(str(library)).interleave(*pointers)
    assert found.ravel().tolist() == rows.T.ravel().tolist()
