"""Generated vector functions, compiled and loaded."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from tests.compiled import c_compiler, keep
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.isa import fma
from tilewright.spaces.cpu.target import FLAGS, MEANING
from tilewright.spaces.cpu.vectors.vector_math import prelude
from tilewright.spaces.language.functions import FUNCTIONS

UNARY = sorted(name for name in FUNCTIONS if FUNCTIONS[name].arity == 1)
FIRST = "*(const any *)(a + i)"
SECOND = "*(const any *)(b + i)"
_LOOP = """\
void {name}(const float *a, const float *b, float *c, long n) {{
  for (long i = 0; i < n; i += TW_LANES)
    *(any *)(c + i) = {value};
}}
"""


def text_of(functions, lanes: int, given=None, isa: str = "generic") -> str:
    """The C of functions, and of what they stand behind."""
    types = f"typedef float vf __attribute__((vector_size({4 * lanes})));\n"
    return types + fma(isa) + prelude(functions, lanes, given)


def build(
    folder: Path, lanes: int, flags: list[str], values: dict[str, str], functions, given=None
) -> ctypes.CDLL:
    compiler = find_compiler()
    source = text_of(functions, lanes, given)
    source += "typedef vf any __attribute__((aligned(4), may_alias));\n"
    source += "".join(_LOOP.format(name=name, value=value) for name, value in values.items())
    (folder / "functions.c").write_text(source)
    options = [*FLAGS, *MEANING, *filter(None, [compiler.native]), *flags, "-shared", "-fPIC", "-w"]
    output = folder / "functions.so"
    command = [compiler.path, *options, str(folder / "functions.c"), "-o", str(output)]
    given = (c_compiler(), options, source)
    keep(output, given, lambda: subprocess.run(command, check=True, timeout=120))
    return ctypes.CDLL(str(output))


def call(library: ctypes.CDLL, name: str, *arguments: np.ndarray) -> np.ndarray:
    count = arguments[0].size
    padded = np.ones((2, -(-count // 16) * 16), np.float32)
    for row, argument in zip(padded, arguments, strict=False):
        row[:count] = argument
    result = np.empty_like(padded[0])
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*padded, result)]
    getattr(library, name)(*pointers, ctypes.c_long(result.size))
    return result[:count]
