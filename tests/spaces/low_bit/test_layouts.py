"""Codes in the layouts of GPTQ, AWQ and Marlin, packed by the loops of their own projects."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tilewright.spaces.errors import InputError
from tilewright.spaces.low_bit.layouts import codes_in, zeros_in


def drawn(rows: int, depth: int, bits: int) -> np.ndarray:
    return np.random.default_rng(bits).integers(0, 2**bits, (rows, depth)).astype(np.uint32)


def string_of_bits(codes: np.ndarray, bits: int) -> np.ndarray:
    """Words of each row's codes, the lowest bits first: GPTQ's along the depth."""
    lines = []
    for row in codes:
        number = sum(int(code) << bits * place for place, code in enumerate(row))
        words = codes.shape[1] * bits // 32
        lines.append([number >> 32 * word & 0xFFFFFFFF for word in range(words)])
    return np.array(lines, np.uint32)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 8])
def test_gptq(bits):
    codes = drawn(16, 64, bits)
    words = np.ascontiguousarray(string_of_bits(codes, bits).T).view(np.int32)
    assert (codes_in(words, "gptq", bits) == codes).all()
    packed = tilewright.pack(words, f"uint{bits}", layout="gptq")
    assert (packed == tilewright.pack(codes.astype(np.uint8), f"uint{bits}")).all()


def test_gptq_of_3_bits_as_its_loop_packs_them():
    codes = drawn(8, 64, 3).T
    words, place, row = np.zeros((6, 8), np.uint32), 0, 0
    while row < len(words):
        for n in range(10):
            words[row] |= codes[place + n] << np.uint32(3 * n)
        words[row] |= codes[place + 10] << np.uint32(30)
        words[row + 1] |= codes[place + 10] >> np.uint32(2) & 1
        for n in range(10):
            words[row + 1] |= codes[place + 11 + n] << np.uint32(3 * n + 1)
        words[row + 1] |= codes[place + 21] << np.uint32(31)
        words[row + 2] |= codes[place + 21] >> np.uint32(1) & 3
        for n in range(10):
            words[row + 2] |= codes[place + 22 + n] << np.uint32(3 * n + 2)
        place, row = place + 32, row + 3
    assert (codes_in(words.view(np.int32), "gptq", 3) == codes.T).all()


def awq_words(codes: np.ndarray) -> np.ndarray:
    """AWQ's words ``[depth, rows / 8]`` of codes ``[depth, rows]``."""
    words = np.zeros((len(codes), codes.shape[1] // 8), np.uint32)
    for column in range(words.shape[1]):
        for place, row in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
            words[:, column] |= codes[:, column * 8 + row] << np.uint32(4 * place)
    return words.view(np.int32)


def test_awq():
    codes = drawn(24, 64, 4)
    assert (codes_in(awq_words(codes.T), "awq", 4) == codes).all()


@pytest.mark.parametrize("bits", [4, 8])
def test_marlin(bits):
    codes = drawn(128, 64, bits)
    order = []
    for lane in range(32):
        own = []
        for block in (0, 1):
            first = 2 * (lane % 4)
            rows = (first, first + 1, first + 8, first + 9)
            own += [16 * row + lane // 4 + 8 * block for row in rows]
        order += [place + 256 * tile for tile in range(4) for place in own]
    inner = [0, 2, 4, 6, 1, 3, 5, 7] if bits == 4 else [0, 2, 1, 3]
    permutation = np.array(order).reshape(-1, len(inner))[:, inner].ravel()
    tiles = codes.T.reshape(4, 16, 8, 16).transpose(0, 2, 1, 3).reshape(4, -1)
    tiles = tiles.reshape(-1, len(permutation))[:, permutation].reshape(tiles.shape)
    each = 32 // bits
    words = np.zeros((4, tiles.shape[1] // each), np.uint32)
    for place in range(each):
        words |= tiles[:, place::each] << np.uint32(bits * place)
    assert (codes_in(words.view(np.int32), "marlin", bits) == codes).all()


def test_torch_tensors_are_taken():
    torch = pytest.importorskip("torch")
    codes = drawn(24, 64, 4)
    words = torch.from_numpy(awq_words(codes.T))
    found = tilewright.pack(words, "uint4", layout="awq")
    assert (found.numpy() == tilewright.pack(codes.astype(np.uint8), "uint4")).all()


def test_zero_points():
    zeros = drawn(64, 3, 4).T % 15  # groups, rows
    gptq = string_of_bits(zeros, 4).view(np.int32)
    assert (zeros_in(gptq, "gptq", 4, plus=1) == zeros + 1).all()
    assert (zeros_in(awq_words(zeros), "awq", 4) == zeros).all()


def test_what_is_none_of_them_is_refused():
    words = np.zeros((3, 7), np.int32)
    for weight, layout, bits, said in (
        (words.astype("f4"), "gptq", 4, r"float32\[3, 7\] in the layout gptq; allowed: an int32"),
        (words, "awq", 3, "3 bits in the layout awq; allowed: 4"),
        (words, "marlin", 4, "3 rows in the layout marlin; allowed: multiples of 64"),
        (words[:1], "gptq", 3, "1 words of codes of 3 bits; allowed: whole codes"),
        (words, "plain", 3, "unknown layout"),
    ):
        with pytest.raises(InputError, match=said):
            codes_in(weight, layout, bits)
    with pytest.raises(InputError, match="no zero points in the layout 'marlin'"):
        zeros_in(words, "marlin", 4)
