"""Element types: their name, size, NumPy dtype and C spelling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.nearest import nearest

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class DType:
    """One element type.

    ``accumulator`` names the dtype that sums of products of this type are kept in.
    ``epsilon`` is the spacing of 1.0: the unit of the tolerance of a verification.

    ``tfloat32`` is float32 in memory of which multiplications read 10 bits of fraction, as
    tensor cores do (CUDA C++ Programming Guide, "Alternate Floating Point"). It is a dtype of
    its own because whoever says float32 means all its bits.
    """

    name: str
    bytes: int
    accumulator: str
    epsilon: float

    @cached_property
    def numpy(self) -> np.dtype:
        """The NumPy dtype; types that NumPy lacks come from ``ml_dtypes``."""
        import numpy as np

        if self.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.name))
        return np.dtype("float32" if self.name == "tfloat32" else self.name)

    def cast(self, values: np.ndarray) -> np.ndarray:
        """Return ``values`` in this type, C-contiguous; tfloat32 rounds to nearest, ties away."""
        import numpy as np

        cast = np.asarray(values, self.numpy, order="C")
        if self.name != "tfloat32":
            return cast
        bits = (cast.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
        return np.where(np.isfinite(cast), bits.view(np.float32), cast)

    @property
    def is_integer(self) -> bool:
        """Tell whether values are integers, so that results are compared exactly. Those of bool are
        0 and 1."""
        return self.epsilon == 0.0

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of a type of integers."""
        bits = 8 * self.bytes
        if self.name == "bool":
            return 0, 1
        return (
            (0, 2**bits - 1) if self.name == "uint8" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )


DTYPES = {
    d.name: d
    for d in (
        DType("float64", 8, "float64", 2.0**-52),
        DType("float32", 4, "float32", 2.0**-23),
        DType("tfloat32", 4, "float32", 2.0**-10),
        DType("float16", 2, "float32", 2.0**-10),
        DType("bfloat16", 2, "float32", 2.0**-7),
        DType("float8_e4m3fn", 1, "float32", 2.0**-3),
        DType("float8_e5m2", 1, "float32", 2.0**-2),
        DType("int8", 1, "int32", 0.0),
        DType("int32", 4, "int32", 0.0),
        DType("int64", 8, "int64", 0.0),
        DType("uint8", 1, "int32", 0.0),
        DType("bool", 1, "int32", 0.0),
    )
}


ALSO_CALLED = {
    **dict.fromkeys(("fp64", "f64", "double"), "float64"),
    **dict.fromkeys(("fp32", "f32", "float", "single"), "float32"),
    **dict.fromkeys(("tf32",), "tfloat32"),
    **dict.fromkeys(("fp16", "f16", "half"), "float16"),
    **dict.fromkeys(("bf16", "bfloat"), "bfloat16"),
    **dict.fromkeys(("fp8", "float8", "e4m3", "e4m3fn", "float8_e4m3"), "float8_e4m3fn"),
    **dict.fromkeys(("e5m2",), "float8_e5m2"),
    **dict.fromkeys(("int", "i32"), "int32"),
    **dict.fromkeys(("long", "i64"), "int64"),
    **dict.fromkeys(("i8", "char"), "int8"),
    **dict.fromkeys(("u8", "byte"), "uint8"),
    **dict.fromkeys(("boolean", "mask"), "bool"),
}
"""Names that dtypes have elsewhere, with our names or the nearest ones."""
EXACT = 2**24
"""Whole numbers up to which float32 has all."""
EXACT_WIDE = 2**53
"""Whole numbers up to which float64 has all."""


def dtype(name: str) -> DType:
    """Return the element type called ``name``; :class:`InputError` if there is none."""
    try:
        return DTYPES[name]
    except (KeyError, TypeError):
        near = isinstance(name, str) and (ALSO_CALLED.get(name) or nearest(name, DTYPES))
        known = f"did you mean {near}?" if near else f"known: {', '.join(DTYPES)}"
        raise InputError(f"unknown dtype {shown(name)}; {known}") from None
