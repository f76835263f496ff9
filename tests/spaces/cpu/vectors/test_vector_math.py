"""The generated C, compiled and run over dense grids, against SciPy in float64."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from tests.spaces.cpu.edges import TRAPS
from tests.spaces.cpu.fenced import apart
from tests.spaces.cpu.vectors.generated import FIRST, SECOND, UNARY, build, call
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.isa import KNOWN, extremes
from tilewright.spaces.language.functions import FUNCTIONS

ODD = ("tanh", "erf")
# Lanes, and whether multiply-adds are rounded once.
VARIANTS = [(4, True), (8, True), (16, True), (8, False)]


VALUES = {
    name: f"tw_{name}({', '.join((FIRST, SECOND, FIRST)[: function.arity])})"
    for name, function in FUNCTIONS.items()
}


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda v: f"{v[0]}-{'fma' if v[1] else 'no'}")
def library(request, tmp_path_factory):
    lanes, fused = request.param
    flags = [] if fused else ["-U__FP_FAST_FMAF"]
    return build(tmp_path_factory.mktemp("math"), lanes, flags, VALUES, FUNCTIONS)


@pytest.fixture(scope="module")
def trapped(tmp_path_factory):
    """The same, which ends the process where code has no meaning in C."""
    flags = [*TRAPS, "-fsanitize=float-cast-overflow"]
    return build(tmp_path_factory.mktemp("trapped"), 8, flags, VALUES, FUNCTIONS)


def grid() -> np.ndarray:
    generator = np.random.default_rng(1)
    magnitudes = np.exp(generator.uniform(np.log(1e-37), np.log(1e38), 50_000))
    pieces = [np.linspace(-s, s, 100_001) for s in (1, 10, 110)]
    return np.concatenate([*pieces, magnitudes, -magnitudes]).astype(np.float32)


GRID = grid()


def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all sizes, whole ones, and all pairs of edges, without zeros as divisors that have
    a sign."""
    generator = np.random.default_rng(2)
    sizes = np.exp(generator.uniform(-20, 20, 60_000)) * generator.choice([-1, 1], 60_000)
    near = generator.uniform(-12, 12, 60_000)
    whole = generator.integers(-30, 30, 60_000)
    edges = [0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, 1e-40, 3e38, np.inf, -np.inf, np.nan, 16777217.0]
    first, second = (each.ravel() for each in np.meshgrid(edges, [*edges, -2.0, -3.0, -0.0]))
    a = np.concatenate([sizes, np.abs(sizes), near, sizes, first])
    b = np.concatenate([near, near, whole, whole, second])
    return a.astype(np.float32), b.astype(np.float32)


@pytest.mark.parametrize("name", UNARY)
def test_error_is_within_its_bound(library: ctypes.CDLL, name: str) -> None:
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].reference(GRID.astype(np.float64))
    result = call(library, name, GRID).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    finite = np.isfinite(result) & np.isfinite(exact)
    relative, absolute = FUNCTIONS[name].error
    error = np.abs(result[finite] - exact[finite])
    bound = relative * np.abs(exact[finite]) + absolute
    worst = np.argmax(error - bound)
    assert error[worst] <= bound[worst], f"at {GRID[finite][worst]!r}"
    # Infinite where the exact value is, or rounds so.
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    overflow = ~finite & ~np.isnan(exact)
    np.testing.assert_array_equal(result[overflow], rounded[overflow])


@pytest.mark.parametrize("name", ["pow", "atan2", "fmod"])
def test_error_of_functions_of_two_is_within_its_bound(library: ctypes.CDLL, name: str) -> None:
    a, b = pairs()
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[name].reference(a.astype(np.float64), b.astype(np.float64))
        rounded = exact.astype(np.float32)
    result = call(library, name, a, b).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    finite = np.isfinite(result) & np.isfinite(rounded)
    relative, absolute = FUNCTIONS[name].error
    error = np.abs(result[finite] - exact[finite])
    assert (error <= relative * np.abs(exact[finite]) + absolute).all()
    overflow = ~finite & ~np.isnan(exact)
    np.testing.assert_array_equal(result[overflow], rounded[overflow])


def test_random_numbers_have_the_bits_of_the_reference(library: ctypes.CDLL) -> None:
    a, b = pairs()
    wanted = FUNCTIONS["random"].reference(a, b, a).astype(np.float32)
    np.testing.assert_array_equal(call(library, "random", a, b), wanted)


def test_sines_and_cosines_of_multiples_of_a_quarter(library: ctypes.CDLL) -> None:
    """The nearest floats to multiples, up to where the library takes over and beyond; where one of
    the two is least, nothing but the rest of the multiple is left of it."""
    multiples = np.concatenate([np.arange(-3000, 3000), np.geomspace(3e3, 2e38, 5000)])
    x = (multiples * (np.pi / 2)).astype(np.float32)
    x = np.concatenate([x, np.float32(2**20) + np.arange(-8, 8, dtype=np.float32)])
    for name in ("sin", "cos"):
        exact = FUNCTIONS[name].reference(x.astype(np.float64))
        np.testing.assert_allclose(call(library, name, x), exact, 4e-7, 2e-45)


def test_exp_is_within_two_units_in_the_last_place(library: ctypes.CDLL) -> None:
    x = np.linspace(-86.9, 88.7, 500_001).astype(np.float32)
    exact = np.exp(x.astype(np.float64))
    units = np.abs(call(library, "exp", x) - exact) / np.spacing(exact.astype(np.float32))
    assert units.max() < 2
    assert call(library, "exp", np.zeros(1, np.float32))[0] == 1


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh"])
def test_gelu_is_within_a_millionth(library: ctypes.CDLL, name: str) -> None:
    x = np.linspace(-30, 30, 500_001).astype(np.float32)
    with np.errstate(over="ignore"):
        exact = FUNCTIONS[name].reference(x.astype(np.float64))
    error = np.abs(call(library, name, x) - exact)
    assert (error / np.maximum(1, np.abs(x))).max() < 1e-6


@pytest.mark.parametrize(
    ("name", "limits", "slack"),
    [
        ("exp", (0, np.inf), 0),
        ("exp2", (0, np.inf), 0),
        ("log", (np.nan, np.inf), 0),
        ("tanh", (-1, 1), 0),
        ("erf", (-1, 1), 0),
        ("sigmoid", (0, 1), 0),
        ("relu", (0, np.inf), 0),
        ("gelu", (0, np.inf), 1e-20),
        ("gelu_tanh", (0, np.inf), 1e-20),
        ("silu", (0, np.inf), 0),
        ("rsqrt", (np.nan, 0), 0),
        ("abs", (np.inf, np.inf), 0),
    ],
)
def test_limits(library: ctypes.CDLL, name: str, limits: tuple[float, float], slack: float) -> None:
    large = np.float32(3e38)
    result = call(library, name, np.array([-np.inf, np.inf], np.float32))
    np.testing.assert_allclose(result, limits, rtol=0, atol=slack)
    if name not in ("rsqrt", "abs", "log"):
        beyond = call(library, name, np.array([-large, large]))
        expected = [limits[0], limits[1] if name in (*ODD, "sigmoid", "exp", "exp2") else large]
        np.testing.assert_allclose(beyond, expected, rtol=0, atol=slack)


def test_log_of_zero_and_of_subnormal_numbers(library: ctypes.CDLL) -> None:
    x = np.array([0, -0.0, 1e-45, 1e-40, 1e-38, 1], np.float32)
    with np.errstate(divide="ignore"):
        exact = np.log(x.astype(np.float64))
    np.testing.assert_allclose(call(library, "log", x), exact, rtol=4e-7)


@pytest.mark.parametrize("name", [*ODD, "sigmoid"])
def test_values_stay_in_range(library: ctypes.CDLL, name: str) -> None:
    result = call(library, name, GRID)
    assert result.max() == 1
    assert result.min() == (-1 if name in ODD else 0)


@pytest.mark.parametrize("name", ODD)
def test_odd_functions_are_odd(library: ctypes.CDLL, name: str) -> None:
    np.testing.assert_array_equal(call(library, name, -GRID), -call(library, name, GRID))


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_nan_propagates(library: ctypes.CDLL, name: str) -> None:
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], np.uint32)
    numbers = np.full(len(nans), 2, np.float32)
    assert np.isnan(call(library, name, nans.view(np.float32), numbers)).all()
    if FUNCTIONS[name].arity > 1:
        assert np.isnan(call(library, name, numbers, nans.view(np.float32))).all()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_code_has_a_meaning_for_every_number(trapped: ctypes.CDLL, name: str) -> None:
    """Both signs, every exponent, and mantissas at their ends and at random are run through it."""
    mantissas = np.random.default_rng(4).integers(0, 2**23, 12)
    mantissas = np.concatenate([mantissas, [0, 1, 2**22, 2**23 - 1]]).astype(np.uint32)
    x = (np.arange(2**9, dtype=np.uint32)[:, None] << 23 | mantissas).ravel().view(np.float32)
    y, result = np.random.default_rng(5).permutation(x), np.empty_like(x)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, result)]
    assert apart(getattr(trapped, name), *pointers, ctypes.c_long(x.size)) == ""


@pytest.mark.parametrize(("name", "numpy"), [("min", np.minimum), ("max", np.maximum)])
def test_extremes_are_exact(library: ctypes.CDLL, name: str, numpy) -> None:
    other = np.random.default_rng(2).permutation(GRID)
    np.testing.assert_array_equal(call(library, name, GRID, other), numpy(GRID, other))


def test_extremes_by_instructions_give_the_second_value_if_either_is_nan(tmp_path) -> None:
    """For every instruction set that this machine runs and that has them."""
    macros = find_compiler().macros
    values = np.array([1, 2, -0.5, np.inf, -np.inf, np.nan, 3, np.nan], np.float32)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    for isa in (isa for isa in KNOWN if isa.macros <= macros and extremes(isa.name)):
        (tmp_path / isa.name).mkdir()
        lanes, given = isa.vector_bytes // 4, extremes(isa.name)
        calls = {name: f"tw_{name}({FIRST}, {SECOND})" for name in given}
        library = build(tmp_path / isa.name, lanes, [], calls, ["max", "min"], given)
        np.testing.assert_array_equal(call(library, "lesser", a, b), np.where(a < b, a, b))
        np.testing.assert_array_equal(call(library, "greater", a, b), np.where(a > b, a, b))


@pytest.mark.parametrize(
    ("name", "dtype"), [("bfloat16", ml_dtypes.bfloat16), ("float16", np.float16)]
)
def test_casts_are_exact(library: ctypes.CDLL, name: str, dtype) -> None:
    """On random bits of every exponent, and on all midpoints between two neighbours."""
    bits = np.random.default_rng(3).integers(0, 2**32, 200_000, dtype=np.uint32)
    with np.errstate(all="ignore"):
        every = np.arange(2**16, dtype=np.uint16).view(dtype).astype(np.float64)
    every = np.unique(every[np.isfinite(every)])
    midpoints = ((every[1:] + every[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(midpoints, np.float32(s), dtype=np.float32) for s in (-np.inf, np.inf)]
    x = np.concatenate([bits.view(np.float32), midpoints, *near])
    with np.errstate(all="ignore"):
        exact = x.astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(call(library, name, x), exact)
