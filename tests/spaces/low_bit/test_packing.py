"""Packed codes: their order, round trips, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.errors import InputError
from tilewright.spaces.low_bit.order import slots, tile_bytes, word_groups
from tilewright.spaces.low_bit.packing import TRAILER, pack_codes, unpack_codes
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.array import Array

WIDTHS = range(1, 9)


def bit_of(packed: np.ndarray, rows: int, bits: int, row: int, depth: int, bit: int) -> int:
    """Read one bit of a code as the page on packed weights says where it is."""
    tile = (depth // 64 * -(-rows // 16) + row // 16) * tile_bytes(bits)
    half, g = row % 16 // 8, row % 8
    step, t, code = depth % 64 // 8, depth % 8 // 2, depth % 2
    piece = next(p for p in slots(bits)[step][half] if p.bit <= bit < p.bit + p.bits)
    first, count = next((f, n) for f, n in word_groups(bits) if f <= piece.word < f + n)
    lane = 4 * g + t
    word = 32 * first + lane * count + piece.word - first
    place = piece.place + bit - piece.bit + 16 * code
    return int(packed[tile + 4 * word + place // 8]) >> place % 8 & 1


@pytest.mark.parametrize("bits", WIDTHS)
def test_each_bit_is_where_the_order_says(bits):
    generator = np.random.default_rng(bits)
    codes = generator.integers(0, 2**bits, (37, 130)).astype(np.uint8)
    packed = pack_codes(codes, f"uint{bits}")
    for row, depth in generator.integers(0, (37, 130), (200, 2)):
        found = sum(bit_of(packed, 37, bits, row, depth, bit) << bit for bit in range(bits))
        assert found == codes[row, depth]


@pytest.mark.parametrize("bits", WIDTHS)
def test_every_bit_of_a_tile_is_used_once(bits):
    pieces = [piece for step in slots(bits) for slot in step for piece in slot]
    used = [(p.word, p.place + n) for p in pieces for n in range(p.bits)]
    assert sorted(used) == [(word, place) for word in range(bits) for place in range(16)]


@pytest.mark.parametrize("bits", WIDTHS)
def test_random_shapes_come_back(bits):
    generator = np.random.default_rng(bits)
    for kind in (f"uint{bits}", f"int{bits}"):
        shape = tuple(generator.integers(1, 150, 2))
        values = generator.choice(dtype(kind).values, shape).astype(int)
        packed = tilewright.pack(values, kind)
        assert (tilewright.unpack(packed, *shape, kind) == values).all()
        codes = generator.integers(0, 2**bits, (3, *shape)).astype(np.uint8)
        assert (unpack_codes(pack_codes(codes, kind), codes.shape, kind) == codes).all()


@pytest.mark.parametrize("name", ["uint4", "int3", "float4_e2m1", "float8_e4m3fn"])
def test_torch_packs_the_same_bytes(name):
    torch = pytest.importorskip("torch")
    codes = np.random.default_rng(0).integers(0, 2 ** dtype(name).bits, (40, 72)).astype(np.uint8)
    packed = tilewright.pack(codes, name)
    found = tilewright.pack(torch.from_numpy(codes), name)
    assert found.dtype is torch.uint8
    assert (found.numpy() == packed).all()
    values = tilewright.unpack(found, 40, 72, name)
    known = tilewright.unpack(packed, 40, 72, name).astype(np.float64)
    np.testing.assert_array_equal(values.to(torch.float64).numpy(), known)
    assert (tilewright.pack(values, name) == found).all()


def test_tiles_of_one_depth_are_neighbours_and_filled_up():
    packed = tilewright.pack(np.full((17, 65), 3, np.uint8), "uint2")
    tiles = packed[:-TRAILER].reshape(2, 2, tile_bytes(2))
    assert np.unpackbits(tiles[0, 0]).sum() == 2 * 16 * 64
    assert np.unpackbits(tiles[0, 1]).sum() == 2 * 64
    assert np.unpackbits(tiles[1, 0]).sum() == 2 * 16


def test_the_bytes_are_the_same_for_any_number_of_rows():
    text = "q: uint4[n, k](packed); y[m, n] = sum[k](a[m, k] * (q[n, k] - 8))"
    few, many = (workload(text, m=m, n=64, k=128).inputs[0] for m in (1, 4096))
    assert few == many == Array("q", "uint8", (64 * 128 // 2 + TRAILER,), (0,))


def test_other_bytes_are_refused():
    packed = tilewright.pack(np.zeros((32, 64), np.uint8), "uint4")
    with pytest.raises(InputError, match=r"uint8\[1087\] for packed uint4\[32, 64\]; allowed"):
        tilewright.unpack(packed[:-1], 32, 64, "uint4")
    with pytest.raises(InputError, match=r"bytes of uint4\[1, 32, 64\] in the order tiles16x64.1"):
        tilewright.unpack(packed, 32, 64, "int4")
    with pytest.raises(InputError, match=r"allowed: uint4\[1, 16, 128\]"):
        tilewright.unpack(packed, 16, 128, "uint4")
    broken = packed.copy()
    broken[-TRAILER:] = 0
    with pytest.raises(InputError, match="packed bytes of no known order"):
        tilewright.unpack(broken, 32, 64, "uint4")
    with pytest.raises(InputError, match="no packed order of the shape"):
        tilewright.pack(np.zeros(4, np.uint8), "uint4")
    with pytest.raises(InputError, match="codes of 'float16'; allowed: dtypes of 1 to 8 bits"):
        tilewright.pack(np.zeros((4, 4)), "float16")
    with pytest.raises(InputError, match="the layout 'awq' without a dtype"):
        tilewright.pack(np.zeros((4, 4), "f4"), layout="awq")
    with pytest.raises(
        InputError, match="unknown layout 'gguf'; allowed: plain, gptq, awq, marlin"
    ):
        tilewright.pack(np.zeros((4, 4), "i4"), "uint4", layout="gguf")


def test_an_array_of_codes_must_be_packed():
    with pytest.raises(InputError, match=r"q is uint4, of which arrays are packed; allowed: q: "):
        workload("q: uint4[n, k]; y[n] = sum[k](a[k] * q[n, k])", n=16, k=64)
    with pytest.raises(InputError, match="A is int3, of which arrays are packed"):
        workload("matmul m=4 n=4 k=4 dtype=int3")
