"""The functions of one number that kernels of loops call, against NumPy and ml_dtypes."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.loops.prelude import HELPERS, LIBRARY
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.loops.numbers import FORMATS, written

WRAPPERS = "\n".join(
    [
        "typedef double (*real1)(double); typedef double (*real2)(double, double);",
        "#define EACH(f, n, x, y) for (long i = 0; i < n; i++) y[i] = f(x[i])",
        *(
            f"void {f}(long n, const double *x, double *y) {{ EACH(tw_real_{f}, n, x, y); }}"
            for f, known in FUNCTIONS.items()
            if known.arity == 1
        ),
        *(
            f"void {kind}_{f}(long n, const {c} *a, const {c} *b, {c} *y) "
            f"{{ for (long i = 0; i < n; i++) y[i] = tw_{kind}_{f}(a[i], b[i]); }}"
            for kind, c in (("real", "double"), ("whole", "long"))
            for f in ("quotient", "remainder", "min", "max")
        ),
        *(
            f"void {f}(long n, const double *a, const double *b, double *y) "
            f"{{ for (long i = 0; i < n; i++) y[i] = tw_real_{f}(a[i], b[i]); }}"
            for f, known in FUNCTIONS.items()
            if known.arity == 2 and known.library
        ),
        *(
            f"void {n}_back(long n, const double *x, double *y) {{ for (long i = 0; i < n; i++) "
            f"y[i] = {f.decoded(f.encoded('x[i]'))}; }}\n"
            f"void {n}_bits(long n, const double *x, double *y) {{ for (long i = 0; i < n; i++) "
            f"y[i] = {f.decoded('(unsigned)x[i]')}; }}"
            for n, f in FORMATS.items()
        ),
        "void to_int8(long n, const double *x, double *y) "
        f"{{ for (long i = 0; i < n; i++) y[i] = {written('x[i]', False, 'int8')}; }}",
        "double added(long n, const double *x) { double s = 0, l = 0; "
        "for (long i = 0; i < n; i++) tw_real_add(&s, &l, x[i]); return tw_real_total(s, l); }",
    ]
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "n.c").write_text(HELPERS + "".join(LIBRARY.values()) + WRAPPERS)
    command = [find_compiler().path, "-O2", "-w", "-fPIC", "-shared", str(folder / "n.c")]
    subprocess.run([*command, "-o", str(folder / "n.so"), "-lm"], check=True)
    return ctypes.CDLL(str(folder / "n.so"))


def called(library: ctypes.CDLL, name: str, *arrays: np.ndarray) -> np.ndarray:
    result = np.empty_like(arrays[0])
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (*arrays, result))
    getattr(library, name)(ctypes.c_long(result.size), *pointers)
    return result


EDGES = [0.0, 0.5, 1.5, 2.5, -0.5, -1e-9, 1e-300, 3e38, -3.5e38, 1e300, np.inf, -np.inf, np.nan]


def numbers(seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    spread = generator.standard_normal(4000) * np.exp(generator.uniform(-60, 60, 4000))
    return np.concatenate([EDGES, spread, generator.standard_normal(4000)])


@pytest.mark.parametrize("name", [n for n, f in FUNCTIONS.items() if f.arity == 1])
def test_functions_are_their_references(library, name):
    x = numbers()
    with np.errstate(all="ignore"):
        expected = np.asarray(FUNCTIONS[name].reference(x), np.float64)
    np.testing.assert_allclose(called(library, name, x), expected, 1e-13, 1e-300)


@pytest.mark.parametrize("name", ["pow", "atan2", "fmod"])
def test_functions_of_two_are_their_references(library, name):
    x = numbers()
    y = np.random.default_rng(1).permutation(x)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name].reference(x, y)
    np.testing.assert_allclose(called(library, name, x, y), expected, 1e-13, 1e-300)


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_of_few_bits_are_those_of_ml_dtypes(library, name):
    kind = dtype(name).numpy
    bits = np.arange(2 ** (8 * kind.itemsize))
    unsigned = np.uint8 if kind.itemsize == 1 else np.uint16
    with np.errstate(all="ignore"):
        expected = bits.astype(unsigned).view(kind).astype(np.float64)
    found = called(library, f"{name}_bits", bits.astype(np.float64))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_rounded_as_ml_dtypes_does(library, name):
    """Between all neighbours, at ties, and beyond the largest: float8 saturates."""
    import ml_dtypes

    kind = dtype(name).numpy
    unsigned = np.uint8 if kind.itemsize == 1 else np.uint16
    every = np.arange(2 ** (8 * kind.itemsize)).astype(unsigned).view(kind)
    with np.errstate(all="ignore"):
        every = every.astype(np.float64)
    known = np.unique(every[np.isfinite(every)])
    x = np.concatenate([numbers(), known, (known[1:] + known[:-1]) / 2])
    largest = float(ml_dtypes.finfo(kind).max)
    with np.errstate(all="ignore"):
        narrow = x.astype(np.float32)
        limited = np.clip(narrow, -largest, largest) if "8_" in name else narrow
        expected = limited.astype(kind).astype(np.float64)
    np.testing.assert_array_equal(called(library, f"{name}_back", x), expected)


@pytest.mark.parametrize("kind", ["whole", "real"])
@pytest.mark.parametrize("name", ["quotient", "remainder", "min", "max"])
def test_operations_of_two_numbers_are_numpys(library, kind, name):
    generator = np.random.default_rng(1)
    near = np.arange(-9, 10)
    most = [2**62, -(2**63), 2**63 - 1, 16000001, 2**53 - 1]
    a = np.concatenate(
        [np.repeat(near, 19), np.repeat(most, 5), generator.integers(-1e12, 1e12, 99)]
    )
    b = np.concatenate(
        [np.tile(near, 19), [-1, 1, 7, -7, 0] * 5, generator.integers(-1e6, 1e6, 99)]
    )
    if kind == "real":
        a, b = np.clip(a, -(2**53), 2**53).astype(np.float64), b.astype(np.float64)
    known: dict[str, Callable[..., np.ndarray]] = {
        "quotient": np.floor_divide, "remainder": np.remainder, "min": np.minimum, "max": np.maximum
    }  # fmt: skip
    with np.errstate(all="ignore"):
        expected = known[name](a, b)
    np.testing.assert_array_equal(called(library, f"{kind}_{name}", a, b), expected)


def test_real_numbers_become_the_nearest_whole_ones_within_limits(library):
    x = np.array(
        [-1e9, -128.6, -128.4, -0.5, 0.4, 0.6, 126.7, 127.6, 1e30, np.inf, -np.inf, np.nan]
    )
    expected = [-128, -128, -128, 0, 0, 1, 127, 127, 127, 127, -128, 0]
    np.testing.assert_array_equal(called(library, "to_int8", x), expected)


def test_long_sums_lose_nothing(library):
    library.added.restype = ctypes.c_double
    for x in (np.full(10**6, 0.1), np.array([1e16] + [1.0] * 999 + [-1e16])):
        exact = float(sum(map(int, x))) if x[1] == 1.0 else 1e5
        found = library.added(ctypes.c_long(x.size), ctypes.c_void_p(x.ctypes.data))
        assert found == pytest.approx(exact, rel=1e-15)
    for x, expected in ((np.array([np.inf, 1.0]), np.inf), (np.array([1.0, -np.inf, 2]), -np.inf)):
        assert library.added(ctypes.c_long(x.size), ctypes.c_void_p(x.ctypes.data)) == expected
