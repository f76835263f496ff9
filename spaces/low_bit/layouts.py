"""Codes of weights as other projects store them: GPTQ, AWQ and Marlin. All are exact.

Each function takes what a checkpoint has, as a NumPy array or a torch tensor of int32, and returns
codes ``[rows, depth]`` as uint8, which :func:`tilewright.pack` takes.

- ``gptq``: words ``[depth * bits / 32, rows]``; the codes of a row are one string of bits, the
  lowest first.
- ``awq``: words ``[depth, rows / 8]`` of 4 bits; rows 0, 2, 4, 6, 1, 3, 5, 7 from bit 0 up.
- ``marlin``: words ``[depth / 16, 16 * rows * bits / 32]`` of 4 or 8 bits, in the order of its
  tensor cores' fragments (IST-DASLab/marlin, and vLLM's of 8 bits).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.low_bit.codes import dtype_name
from tilewright.spaces.workloads.packing import PLAIN

AWQ_ROWS = (0, 2, 4, 6, 1, 3, 5, 7)
"""The row of each code of a word, from the lowest bit up."""
LAYOUTS = (PLAIN, "gptq", "awq", "marlin")


def codes_in(weight: Any, layout: str, bits: int) -> Any:
    """Return the codes ``[rows, depth]`` of what a checkpoint has in a ``layout``."""
    if layout not in LAYOUTS or layout == PLAIN:
        raise InputError(f"unknown layout {shown(layout)}; allowed: {', '.join(LAYOUTS)}")
    if dtype_name(weight) != "int32" or len(weight.shape) != 2:
        found = f"{dtype_name(weight)}{list(weight.shape)}"
        raise InputError(f"{found} in the layout {layout}; allowed: an int32 matrix")
    if not isinstance(weight, np.ndarray):
        import torch

        found = codes_in(weight.detach().cpu().numpy(), layout, bits)
        return torch.from_numpy(found).to(weight.device)
    made = {"gptq": _gptq, "awq": _awq, "marlin": _marlin}[layout]
    return np.ascontiguousarray(made(weight.view(np.uint32), bits))


def zeros_in(zeros: Any, layout: str, bits: int, plus: int = 0) -> Any:
    """Return the zero points ``[groups, rows]`` of GPTQ's or AWQ's ``qzeros`` as uint8, ``plus``
    what files leave out: 1 in GPTQ's, 0 in those of its second version and in AWQ's."""
    if layout not in ("gptq", "awq"):
        raise InputError(f"no zero points in the layout {shown(layout)}; allowed: gptq, awq")
    if not isinstance(zeros, np.ndarray):
        import torch

        found = zeros_in(zeros.detach().cpu().numpy(), layout, bits, plus)
        return torch.from_numpy(found).to(zeros.device)
    words = zeros.view(np.uint32)
    codes = _strings(words, bits) if layout == "gptq" else _awq(words, bits).T
    return np.ascontiguousarray(codes + np.uint8(plus))


def _strings(words: np.ndarray, bits: int) -> np.ndarray:
    """Return the codes of strings of bits, one along each line of words ``[lines, words]``."""
    lines, count = words.shape
    if count * 32 % bits:
        raise InputError(f"{count} words of codes of {bits} bits; allowed: whole codes")
    octets = np.ascontiguousarray(words).astype("<u4").view(np.uint8)
    string = np.unpackbits(octets, axis=1, bitorder="little").reshape(lines, -1, bits)
    return np.packbits(string, axis=2, bitorder="little")[:, :, 0]


def _gptq(words: np.ndarray, bits: int) -> np.ndarray:
    return _strings(words.T, bits)


def _awq(words: np.ndarray, bits: int) -> np.ndarray:
    if bits != 4:
        raise InputError(f"{bits} bits in the layout awq; allowed: 4")
    depth, count = words.shape
    codes = np.empty((count, 8, depth), np.uint8)
    for place, row in enumerate(AWQ_ROWS):
        codes[:, row] = (words.T >> np.uint32(4 * place)) & 15
    return codes.reshape(8 * count, depth)


def _marlin(words: np.ndarray, bits: int) -> np.ndarray:
    if bits not in (4, 8):
        raise InputError(f"{bits} bits in the layout marlin; allowed: 4, 8")
    each = 32 // bits
    steps, rows = words.shape[0], words.shape[1] * each // 16
    if rows % 64:
        raise InputError(f"{rows} rows in the layout marlin; allowed: multiples of 64")
    codes = np.empty((steps, rows * 16), np.uint8)
    for place in range(each):
        codes[:, place::each] = (words >> np.uint32(bits * place)) & (2**bits - 1)
    order = _fragments(bits)
    tiles = np.empty((codes.size // len(order), len(order)), np.uint8)
    tiles[:, order] = codes.reshape(-1, len(order))
    return tiles.reshape(steps, rows // 16, 16, 16).transpose(1, 3, 0, 2).reshape(rows, -1)


@lru_cache(maxsize=2)
def _fragments(bits: int) -> np.ndarray:
    """Return the place in 64 rows of 16 of the depth of each code as Marlin stores them: what the
    lanes of a warp hold of four fragments, and the order within a word."""
    found: list[int] = []
    for lane in range(32):
        column, first = lane // 4, 2 * (lane % 4)
        depths = (first, first + 1, first + 8, first + 9)
        own = [16 * depth + column + 8 * block for block in (0, 1) for depth in depths]
        found += [place + 256 * tile for tile in range(4) for place in own]
    within: Sequence[int] = AWQ_ROWS if bits == 4 else (0, 2, 1, 3)
    return np.array(found).reshape(-1, len(within))[:, within].ravel()
