"""Matrices that tests of matrix instructions multiply."""

from __future__ import annotations

import numpy as np

from tests.measure.cuda.cuda_kernels import small_integers
from tilewright.spaces.dtypes import dtype

NAMES = {
    "f32": "float32",
    "tf32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "s8": "int8",
    "s32": "int32",
}
C_TYPE = {"f32": "float", "s32": "i32", "f16": "u32"}


def numbers(kind: str, seed: int, shape: tuple[int, int]) -> np.ndarray:
    return small_integers(seed, shape, dtype(NAMES[kind]).numpy)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)
