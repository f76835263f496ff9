"""How a generated CUDA kernel is called: the one place that says in which order its arguments go.

The entry of every kernel is::

    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    ENTRY(const T *input0, const T *input1, ...,      // Kernel.arguments but the last
          const T *epilogue_input0, ...,
          T *output,                                  // the last of Kernel.arguments
          unsigned char *workspace,                   // only if Kernel.workspace_bytes > 0
          const __grid_constant__ TensorMap map0, ...)// Kernel.metadata["tensor_maps"], in order

Every operand comes as a pointer to its first element, scalars and operands that only TMA reads
included, so that the order never depends on how a kernel moves its data. Extents and strides are
constants of the source. Pointers are 16-byte aligned at least (the runner's are 256); tensor maps
are made from :class:`~spaces.cuda.tensor_map.TensorMapSpec` by whoever launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from spaces.cuda.tensor_map import TensorMapSpec
from spaces.kernel import Kernel
from spaces.workloads.array import Array

TENSOR_MAPS = "tensor_maps"
"""Key of ``Kernel.metadata`` under which the tuple of :class:`TensorMapSpec` stands."""

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
}
"""Spelling in generated kernels of each dtype; ``spaces/cuda/intrinsics`` defines the types."""


def tensor_maps(kernel: Kernel) -> tuple[TensorMapSpec, ...]:
    """The tensor maps a kernel takes, in the order of its last parameters."""
    return cast("tuple[TensorMapSpec, ...]", kernel.metadata.get(TENSOR_MAPS, ()))


def parameters(
    operands: Sequence[Array], workspace: bool = False, maps: Sequence[str] = (), outputs: int = 1
) -> str:
    """The C parameter list of an entry: ``operands`` by their names (so many ``outputs`` last),
    then ``workspace`` if there is one, then the tensor maps under the names ``maps``."""
    texts = [f"const {C_TYPES[o.dtype]} *__restrict__ {o.name}" for o in operands[:-outputs]]
    texts += [f"{C_TYPES[o.dtype]} *__restrict__ {o.name}" for o in operands[-outputs:]]
    if workspace:
        texts.append("u8 *__restrict__ workspace")
    texts += [f"const __grid_constant__ TensorMap {name}" for name in maps]
    return ", ".join(texts)
