"""Calls of CPU kernels, without an interpreter between a caller and the kernel.

A kernel of small arrays takes less than a microsecond; to check two arrays in Python and to call it
through ``ctypes`` takes three (NumPy) or four (torch) more. A ``Caller`` of ``caller.c`` asks the
same of arrays as their ports do, in C: NumPy's by its C API, torch's by DLPack's exchange of
tensors between C libraries (``__dlpack_c_exchange_api__`` of dlpack.h 1.3), and looks at indices.
It takes arrays by position, plain ones that fit; all others, and whatever it cannot know, it hands
to a function that looks closely, which says what is wrong with them.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.scheduler.functions import dlpack
from tilewright.scheduler.functions.arrays import Port
from tilewright.scheduler.functions.extension import extension

SOURCE = Path(__file__).with_suffix(".c")
MOST_ARRAYS = 32
"""Arrays of a kernel that ``caller.c`` has room for."""
_CODES = {name: kind for kind, name in dlpack.KINDS.items()}
_UNKNOWN = (-1, -1)
_ANY = (-1, False, -1)

Call = Callable[..., Any]


def caller(
    entry: int,
    runtime: int,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    new_workspace: Callable[[], np.ndarray] | None,
    idle: list[np.ndarray],
    closely: Call,
    extent: int = 0,
) -> Call:
    """Return a function of arrays for the ``inputs`` and of ``out``, that runs the kernel whose
    address is ``entry``; ``closely`` itself if there is nothing faster. Each call at a time has
    scratch memory of its own, an array of bytes by ``new_workspace``, of which the first at a
    multiple of 64 bytes is used; None if the kernel needs none. ``idle`` keeps those that no call
    uses. ``extent`` is that of an open axis."""
    ports = (*inputs, *outputs)
    served = len(ports) <= MOST_ARRAYS and all(map(_in_sequence, ports))
    module = compiled_module() if served else None
    if module is None:
        return closely
    dtypes = tuple(port.operand.element.numpy for port in ports)
    demands = b"".join(map(_demand, ports))
    makers = (outputs[0].empty_array, outputs[0].empty_tensor)
    call: Call = module.Caller(
        entry, runtime, len(inputs), dtypes, demands, *makers, new_workspace, idle, extent, closely
    )
    return call


@dataclass(frozen=True)
class CallParts:
    """Everything that C code needs to call a kernel.

    ``entry`` and ``runtime`` are addresses. ``order`` has, of each input of the kernel, the number
    of the given array that it is. ``demands`` are packed as ``caller.h`` reads them, of the given
    arrays and then of the outputs, and ``dtypes`` name their element types.
    """

    entry: int
    runtime: int
    workspace_bytes: int
    order: tuple[int, ...]
    demands: bytes
    dtypes: tuple[str, ...]


def packed_demands(ports: Sequence[Port]) -> bytes | None:
    """Return the requirements on arrays as ``caller.h`` reads them; None if it cannot check one."""
    return b"".join(map(_demand, ports)) if all(map(_in_sequence, ports)) else None


def _in_sequence(port: Port) -> bool:
    """Return True if ``caller.h`` can check this array's indices: dense, and row-major if
    sorted."""
    operand, entries = port.operand, port.entries
    if entries is None:
        return True
    straight = operand.order == tuple(range(len(operand.shape))) or not entries.sorted
    return straight and operand.span_bytes == operand.bytes


def _demand(port: Port) -> bytes:
    """Pack the requirements on an array as the struct ``demand`` of ``caller.h``."""
    operand = port.operand
    kind = _CODES.get(operand.dtype, _UNKNOWN)
    sizes = (operand.element.bytes, port.bytes)
    entries = port.entries
    last = -1 if port.last is None else port.last
    limits = (entries.below - 1, entries.sorted, last) if entries else _ANY
    numbers = (*kind, *sizes, *limits, len(operand.shape), *operand.shape, *operand.strides)
    return struct.pack(f"{len(numbers)}q", *numbers)


@cache
def compiled_module() -> Any:
    """Return the module of ``caller.c``; None where it cannot be built."""
    return extension(SOURCE, [np.get_include()], np.__version__)


@cache
def admit_tensors() -> bool:
    """Let callers take torch's tensors from now on; whether they can. Needs torch to be loaded."""
    torch, module = sys.modules["torch"], compiled_module()
    exchange = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if module is None or exchange is None:
        return False
    kinds = (torch.Tensor, torch.nn.Parameter)
    asked = (torch.Tensor.is_neg, torch.Tensor.requires_grad, torch.is_grad_enabled)
    return bool(module.tensors(exchange, *kinds, *asked))
