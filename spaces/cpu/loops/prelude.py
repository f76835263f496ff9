"""The C types of elements, and definitions that kernels of loops share."""

from __future__ import annotations

from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.loops.nest import ElementAccess
from tilewright.spaces.loops.numbers import definitions, library_definitions

C_TYPES = {
    **TABLE_TYPES,
    "float64": "double",
    "float32": "float",
    "tfloat32": "float",
    "float16": "unsigned short",
    "bfloat16": "unsigned short",
    "float8_e4m3fn": "unsigned char",
    "float8_e5m2": "unsigned char",
    "double": "double",
    "i64": "i64",
}
"""The C types of elements, by the names of their types, and by the types of the workspace."""
ACCESS = ElementAccess(
    load=lambda kind, place: f"*({place})",
    store=lambda kind, place, value: f"*({place}) = ({C_TYPES[kind]})({value});",
    infinity="__builtin_inf()",
)
_FUNCTION = "static inline __attribute__((unused))"
HELPERS = f"""\
#ifndef TW_LOOPS
#define TW_LOOPS
typedef long i64;
typedef unsigned long u64;
{definitions(_FUNCTION, "__builtin_", ACCESS.infinity)}#endif
"""
"""C definitions that all kernels of a translation unit share. They are guarded, for a kernel that
is a part of another one has that one's prelude."""
LIBRARY = {
    name: f"#ifndef TW_LOOPS_{name}\n#define TW_LOOPS_{name}\n{text}#endif\n"
    for name, text in library_definitions(_FUNCTION, "__builtin_").items()
}
"""The same, guarded, for each function of C's library that kernels may call."""
