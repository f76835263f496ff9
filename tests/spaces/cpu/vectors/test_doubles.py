"""The functions of float64 kernels against what they mean."""

import ctypes
import subprocess

import numpy as np
import pytest

from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.target import FLAGS
from tilewright.spaces.cpu.vectors.doubles import FUNCTIONS as KNOWN
from tilewright.spaces.cpu.vectors.doubles import prelude, why_no_function
from tilewright.spaces.language.functions import FUNCTIONS

NAMES = sorted(name for name in KNOWN & set(FUNCTIONS) if FUNCTIONS[name].arity == 1)
LANES = 4
_LOOP = """\
void {name}(const double *x, double *y, long n) {{
  for (long i = 0; i < n; i += TW_LANES)
    tw_store_float64(y + i, tw_{name}(tw_load_float64(x + i)));
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doubles")
    source, made = folder / "functions.c", folder / "functions.so"
    source.write_text(
        prelude("generic", LANES) + "".join(_LOOP.format(name=name) for name in NAMES)
    )
    command = [find_compiler().path, *FLAGS, "-w", "-shared", "-fPIC", str(source), "-o", str(made)]
    subprocess.run([*command, "-lm"], check=True, timeout=120)
    return ctypes.CDLL(str(made))


@pytest.mark.parametrize("name", NAMES)
def test_functions_have_the_digits_of_float64(library, name):
    x = np.concatenate([np.linspace(-30, 30, 4001), [0.0, -0.0, 1e-300, np.inf, -np.inf, np.nan]])
    x = np.resize(x, -(-len(x) // LANES) * LANES)
    y = np.empty_like(x)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y)]
    getattr(library, name)(*pointers, ctypes.c_long(len(x)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(y, FUNCTIONS[name].reference(x), rtol=1e-12, atol=1e-15)


def test_casts_to_less_than_float32_are_unknown():
    functions = ["exp", "float16", "float32", "bfloat16"]
    reason = "bfloat16 is no function of float64 kernels"
    assert why_no_function("float64", functions) == reason
    assert why_no_function("float64", ["exp", "float32"]) is None
    assert why_no_function("float32", functions) is None
