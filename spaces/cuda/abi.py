"""The calling convention of generated CUDA kernels: the order of their arguments.

The entry of every kernel is::

    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    ENTRY(const T *input0, const T *input1, ...,      // Call.arguments, in order;
          const T *epilogue_input0, ...,              // const are those that it only reads
          T *output0, ...,
          unsigned char *workspace,                   // only if Call.workspace_bytes > 0
          const __grid_constant__ TensorMap map0, ... // Launch.tensor_maps, in order
          int open_extent)                            // only if there is a Call.open_axis

Every operand comes as a pointer to its first element, scalars and operands that only TMA reads
included, so that the order never depends on how a kernel moves its data. Extents and strides are
constants of the source. Pointers are 16-byte aligned at least (the runner's are 256); tensor maps
are made from :class:`~spaces.cuda.tensor_map.TensorMapSpec` by whoever launches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tilewright.spaces.algebra.index import Index, extent
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.kernel import Argument, Role
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.workloads.array import Array

C_TYPES = {
    "float64": "double",
    "float32": "float",
    "tfloat32": "float",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int8": "i8",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "bool": "u8",
}
"""The C type of each dtype in generated kernels; ``spaces/cuda/intrinsics`` defines the types."""
FLOATS = ("float32", "float16", "bfloat16")
"""Dtypes of elements that become float32 in registers, on every GPU."""


OPEN_EXTENT = "open_extent"
"""The C name of the extent of a call's open axis."""


def open_count(each: int, integer: str = "int") -> str:
    """Return the C text of how many things a call has, ``each`` at each point of its open axis, of
    the C type ``integer``."""
    points = f"({integer}){OPEN_EXTENT}" if integer != "int" else OPEN_EXTENT
    return points if each == 1 else f"{points} * {each}"


def open_tiles(tile: int, most: int, each: int = 1) -> Index:
    """Return how many tiles of ``tile`` things a call has, of at most ``most`` things, ``each`` at
    each point of its open axis."""
    return (extent(OPEN_EXTENT, 1, most // each) * each + (tile - 1)) // tile


LARGEST = 2**31
"""The number of an array's elements from which on 32 bits no longer index them."""


def index_type(arrays: Iterable[Array]) -> str:
    """Return the C type of indices into dense ``arrays``: 32 bits where they suffice."""
    return "i64" if any(array.size >= LARGEST for array in arrays) else "int"


def function(name: str, bounds: int | str, given: str, lines: Sequence[str]) -> list[str]:
    """Return the lines of a kernel function with launch bounds and the parameters ``given``."""
    head = f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({given}) {{'
    return [head, *indented(lines), "}"]


def entry(
    name: str,
    threads: int,
    arguments: Sequence[Argument],
    write: Callable[[Body], None],
    workspace: bool = False,
    is_open: bool = False,
) -> str:
    """Return the text of a kernel whose statements ``write`` writes.

    Its ``arguments`` are called ``x0``, ``x1``, ...; there may be a ``workspace``, and
    :data:`OPEN_EXTENT` if it ``is_open``.
    """
    named = [replace(a, array=replace(a.array, name=f"x{i}")) for i, a in enumerate(arguments)]
    further = ["workspace"] * workspace + [OPEN_EXTENT] * is_open
    body = Body(given=(*(a.array.name for a in named), *further))
    write(body)
    lines, given = CUDA.lines(body.statements), parameters(named, workspace, is_open=is_open)
    return "\n".join(function(name, threads, given, lines)) + "\n"


def parameters(
    arguments: Iterable[Argument],
    workspace: bool = False,
    maps: Sequence[str] = (),
    is_open: bool = False,
) -> str:
    """Return the C parameter list of an entry.

    It has ``arguments`` by their arrays' names, then ``workspace`` if there is one, then the tensor
    maps under the names ``maps``, then :data:`OPEN_EXTENT` if the kernel ``is_open``.
    """
    texts = [_parameter(argument) for argument in arguments]
    if workspace:
        texts.append("u8 *__restrict__ workspace")
    texts += [f"const __grid_constant__ TensorMap {name}" for name in maps]
    if is_open:
        texts.append(f"int {OPEN_EXTENT}")
    return ", ".join(texts)


def _parameter(argument: Argument) -> str:
    constant = "const " if argument.role is Role.IN else ""
    return f"{constant}{C_TYPES[argument.array.stored.dtype]} *__restrict__ {argument.array.name}"
