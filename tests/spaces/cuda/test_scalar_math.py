"""CUDA's mathematics: compiled by NVRTC for the device, compiled and run by g++ on the host."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

from tests.spaces.cpu.vectors.test_vector_math import pairs
from tilewright.spaces.cuda.scalar_math import prelude
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.functions import FUNCTIONS

UNARY = sorted(name for name, function in FUNCTIONS.items() if function.arity == 1)


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("scalar")
    source = "#include <cmath>\n#define TW_INLINE static inline\n" + prelude(FUNCTIONS)
    for name, function in FUNCTIONS.items():
        value = ", ".join(("a[i]", "b[i]", "a[i]")[: function.arity])
        source += (
            f'extern "C" void apply_{name}(const float *a, const float *b, float *c, long n) '
            f"{{ for (long i = 0; i < n; i++) c[i] = tw_{name}({value}); }}\n"
        )
    (folder / "scalar.cpp").write_text(source)
    output = folder / "scalar.so"
    command = [compiler, "-O1", "-std=c++17", "-shared", "-fPIC", "-Wall", "-Wextra"]
    command += ["-Wno-unused-parameter", "-Werror", str(folder / "scalar.cpp"), "-o", str(output)]
    subprocess.run(command, check=True, timeout=120)
    return ctypes.CDLL(str(output))


def call(library: ctypes.CDLL, name: str, *arguments: np.ndarray) -> np.ndarray:
    result = np.empty_like(arguments[0])
    arrays = (arguments[0], arguments[-1], result)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    getattr(library, f"apply_{name}")(*pointers, ctypes.c_long(result.size))
    return result


def grid() -> np.ndarray:
    generator = np.random.default_rng(1)
    bits = generator.integers(0, 2**32, 50_000, dtype=np.uint32).view(np.float32)
    edges = np.array([0, -0.0, np.inf, -np.inf, 3e38, -3e38, 65504, 65519, 65520, 88.72], "f4")
    return np.concatenate([np.linspace(-110, 110, 100_001, dtype=np.float32), bits, edges])


@pytest.mark.parametrize("name", UNARY)
def test_on_the_host_the_error_is_within_its_bound(library: ctypes.CDLL, name: str) -> None:
    x = grid()
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].reference(x.astype(np.float64))
        rounded = exact.astype(np.float32)
        result = call(library, name, x).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    finite = np.isfinite(result) & np.isfinite(rounded)
    relative, absolute = FUNCTIONS[name].error
    error = np.abs(result[finite] - exact[finite])
    assert (error <= relative * np.abs(exact[finite]) + absolute).all()
    infinite = ~finite & ~np.isnan(exact)
    np.testing.assert_array_equal(result[infinite], rounded[infinite])


@pytest.mark.parametrize("name", ["pow", "atan2", "fmod"])
def test_error_of_functions_of_two_is_within_its_bound(library: ctypes.CDLL, name: str) -> None:
    a, b = pairs()
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].reference(a.astype(np.float64), b.astype(np.float64))
    result = call(library, name, a, b).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    finite = np.isfinite(result) & np.isfinite(exact)
    relative, absolute = FUNCTIONS[name].error
    error = np.abs(result[finite] - exact[finite])
    assert (error <= relative * np.abs(exact[finite]) + absolute).all()


def test_random_numbers_have_the_bits_of_the_reference(library: ctypes.CDLL) -> None:
    a, b = pairs()
    wanted = FUNCTIONS["random"].reference(a, b, a).astype(np.float32)
    np.testing.assert_array_equal(call(library, "random", a, b), wanted)


@pytest.mark.parametrize(("name", "numpy"), [("min", np.minimum), ("max", np.maximum)])
def test_extremes_are_exact_and_propagate_nan(library: ctypes.CDLL, name: str, numpy) -> None:
    x = grid()
    y = np.random.default_rng(2).permutation(x)
    np.testing.assert_array_equal(call(library, name, x, y), numpy(x, y))


def test_device_code_compiles_for_hopper_without_a_driver() -> None:
    core = pytest.importorskip("cuda.core")
    pytest.importorskip("cuda.bindings.nvrtc")
    calls = [
        f"tw_{name}({', '.join(('x', 'y', 'x')[: function.arity])})"
        for name, function in FUNCTIONS.items()
    ]
    source = "#define TW_INLINE __device__ __forceinline__\n" + prelude(FUNCTIONS)
    source += (
        'extern "C" __global__ void subject(float *p) {\n'
        "  float x = p[threadIdx.x], y = p[threadIdx.x + 32];\n  p[threadIdx.x] = "
        + " + ".join(calls)
        + ";\n}\n"
    )
    options = core.ProgramOptions(name="subject", arch="sm_90a", std="c++17")
    program = core.Program(source, "c++", options)
    try:
        code = bytes(program.compile("cubin").code)
    finally:
        program.close()
    assert code.startswith(b"\x7fELF")
    assert b"subject" in code


def test_only_what_is_asked_for_is_defined() -> None:
    text = prelude(["relu", "exp"])
    assert re.findall(r"tw_(\w+)\(float \w+\) {", text) == ["inverse_root"] * 2 + ["exp", "relu"]
    assert "#include" not in prelude(FUNCTIONS)
    assert prelude([]) == ""
    assert prelude(["gelu", "abs"]) == prelude({"abs", "gelu"})


def test_unknown_functions_are_refused() -> None:
    with pytest.raises(InputError, match="unknown function 'sinh'"):
        prelude(["sinh"])
