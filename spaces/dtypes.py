"""Element types: their name, size, values and NumPy dtype."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
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

    Arrays of one that is ``coded`` are packed (:mod:`spaces.low_bit`): several of its elements
    share a byte, or no library has it. In NumPy its values are held in a wider dtype.
    """

    name: str
    bits: int
    accumulator: str
    epsilon: float
    coded: bool = False

    @property
    def bytes(self) -> int:
        """Bytes of an element. Raises :class:`ValueError` where it has none of its own: ask the
        array then."""
        if self.bits % 8:
            raise ValueError(f"an element of {self.name} has no bytes of its own; ask the array")
        return self.bits // 8

    @cached_property
    def values(self) -> np.ndarray:
        """The value of each bit pattern, in float64, of a type of up to 8 bits."""
        from tilewright.spaces.low_bit.values import values_of

        return values_of(self.name)

    @cached_property
    def numpy(self) -> np.dtype:
        """The NumPy dtype; types that NumPy lacks come from ``ml_dtypes``. That of a coded type has
        more bits, and all its values."""
        import numpy as np

        if self.coded:
            kinds = {"u": np.uint8, "i": np.int8, "f": np.float32}
            return np.dtype(kinds[self.name[0]])
        if self.name in FROM_ML_DTYPES:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, self.name))
        return np.dtype("float32" if self.name == "tfloat32" else self.name)

    def cast(self, values: np.ndarray) -> np.ndarray:
        """Return ``values`` in this type, C-contiguous; tfloat32 rounds to nearest, ties away, and
        a coded float to a nearest number."""
        import numpy as np

        if self.coded and not self.is_integer:
            from tilewright.spaces.low_bit.codes import nearest_values

            return nearest_values(np.asarray(values, np.float64), self.name)
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
        if self.name == "bool":
            return 0, 1
        if self.name.startswith("uint"):
            return 0, 2**self.bits - 1
        return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1


DTYPES = {
    d.name: d
    for d in (
        DType("float64", 64, "float64", 2.0**-52),
        DType("float32", 32, "float32", 2.0**-23),
        DType("tfloat32", 32, "float32", 2.0**-10),
        DType("float16", 16, "float32", 2.0**-10),
        DType("bfloat16", 16, "float32", 2.0**-7),
        DType("float8_e4m3fn", 8, "float32", 2.0**-3),
        DType("float8_e5m2", 8, "float32", 2.0**-2),
        DType("int8", 8, "int32", 0.0),
        DType("int32", 32, "int32", 0.0),
        DType("int64", 64, "int64", 0.0),
        DType("uint8", 8, "int32", 0.0),
        DType("uint16", 16, "int32", 0.0),
        DType("bool", 8, "int32", 0.0),
    )
}
"""The element types of arrays, by name."""
INDICES_ALONE = ("uint16",)
"""The types of tables of indices, which no kernel reads numbers of."""
FROM_ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
"""The types that NumPy lacks and ``ml_dtypes`` has."""


@lru_cache(maxsize=256)
def _coded(name: str) -> DType | None:
    """Return the type of up to 8 bits whose arrays are packed, if ``name`` spells one."""
    from tilewright.spaces.low_bit.values import INTEGERS, POWERS, split_of

    if name in INTEGERS:
        return DType(name, INTEGERS[name], "int32", 0.0, coded=True)
    if name == POWERS:
        return DType(name, 8, "float32", 1.0, coded=True)
    split = split_of(name)
    if split is None:
        return None
    return DType(name, 1 + sum(split), "float32", 2.0 ** -split[1], coded=True)


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
    **dict.fromkeys(("u16", "ushort"), "uint16"),
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
        if isinstance(name, str) and (found := _coded(name)):
            return found
        raise InputError(f"unknown dtype {shown(name)}; {_known(name)}") from None


def _known(name: object) -> str:
    """Return the nearest dtype, or those that there are, in words."""
    if isinstance(name, str) and re.fullmatch(r"u?int\d+", name):
        return "known: uint1 to uint8, int1 to int8, uint16, int32, int64"
    if isinstance(name, str) and re.fullmatch(r"float\d_e\dm\d", name) and name not in ALSO_CALLED:
        return "known: floatB_eEmM where B = 1 + E + M is at most 8, such as float4_e2m1"
    near = isinstance(name, str) and (ALSO_CALLED.get(name) or nearest(name, DTYPES))
    return f"did you mean {near}?" if near else f"known: {', '.join(DTYPES)}"
