"""Hand-written CUDA kernels as Kernel objects, and how tests run them on the emulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulated, Emulator
from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.workloads.matmul import Operand

EAGER = INTERLEAVINGS[0]


def operand(name: str, dtype: str, shape: Sequence[int]) -> Operand:
    """A row-major array."""
    axes = tuple(f"{name}{i}" for i in range(len(shape)))
    return Operand(name, dtype, tuple(shape), tuple(range(len(shape))), axes=axes)


def operand_of(name: str, array: np.ndarray) -> Operand:
    return operand(name, array.dtype.name, array.shape)


def kernel(
    entry: str,
    body: str,
    inputs: Mapping[str, np.ndarray],
    output: Operand,
    *,
    threads: int = 32,
    blocks: int = 1,
    cluster: int = 1,
    shared: int = 0,
    workspace: int = 0,
    workspace_zeroed: bool = False,
    maps: Mapping[str, TensorMapSpec] | None = None,
    outside: str = "",
) -> Kernel:
    """A kernel of ``body``, whose parameters follow from its operands and tensor maps."""
    maps = maps or {}
    given = arguments([operand_of(name, array) for name, array in inputs.items()], [output])
    signature = parameters(given, workspace > 0, tuple(maps))
    source = (
        f'{outside}\nextern "C" __global__ void __launch_bounds__({threads}, 1) {entry}'
        f"({signature}) {{\n{body}\n}}\n"
    )
    sizes = ((blocks, 1, 1), (threads, 1, 1), (cluster, 1, 1), shared)
    launch = Launch(*sizes, tensor_maps=tuple(maps.values()))
    zeroed = workspace if workspace_zeroed else 0
    call = Call(entry, given, workspace, zeroed, (launch,))
    return Kernel(Source("cuda", "", source), call)


def outcomes(
    emulator: Emulator, made: Kernel, inputs: Mapping[str, np.ndarray]
) -> dict[str, Emulated]:
    """What each interleaving gives, by its name."""
    return {str(i): emulator.run(made, inputs, i) for i in INTERLEAVINGS}


def output_of(result: Emulated) -> np.ndarray:
    """The output of a run that must have gone well."""
    assert result.error_kind is None, result.error_text
    assert result.output is not None
    return result.output


def small_integers(seed: int, shape: Sequence[int], dtype: np.dtype | type) -> np.ndarray:
    """Whole numbers that every format holds exactly, and whose sums of products float16 does."""
    return np.random.default_rng(seed).integers(-3, 4, size=shape).astype(dtype)
