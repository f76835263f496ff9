"""A stand-in for a kernel, which keeps what it is called with."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import torch

from tilewright.scheduler.functions.arrays import IndexPort, Port
from tilewright.scheduler.functions.caller import admit_tensors, caller
from tilewright.spaces.language.program import Entries, Operand
from tilewright.spaces.workloads.array import Array

needs_exchange = pytest.mark.skipif(
    not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="torch is older than 2.10"
)
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Kernel:
    """Stands in for a kernel of ``arrays``: keeps what it is called with."""

    def __init__(
        self, *arrays: Array, outputs: int = 1, scratch: int = 0, last: int | None = None
    ) -> None:
        admit_tensors()
        self.calls: list[tuple[list[int], int | None, int | None]] = []
        self.seen: list[tuple] = []
        self.made: list[np.ndarray] = []
        self._count = len(arrays)
        self._entry = ENTRY(self._run)
        self.entered = lambda: None
        inputs = [IndexPort(a, last) for a in arrays[:-outputs]]
        ports = [*inputs, *(Port(a, output=True) for a in arrays[-outputs:])]
        self.call = caller(
            ctypes.cast(self._entry, ctypes.c_void_p).value,
            77,
            ports[:-outputs],
            ports[-outputs:],
            (lambda: self._new(scratch)) if scratch else None,
            [],
            self._closely,
        )

    def _run(self, buffers, workspace, runtime):
        pointers = ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p))
        self.calls.append((pointers[: self._count], workspace, runtime))
        self.entered()

    def _new(self, size):
        self.made.append(np.zeros(size + 64, np.uint8))
        return self.made[-1]

    def _closely(self, *given, **named):
        self.seen.append((given, named))
        return "seen"


def array(name: str, *shape: int, dtype: str = "float32", order=(0, 1), leading=None) -> Array:
    return Array(name, dtype, shape, order[: len(shape)], leading)


def indices(*shape: int, below: int, dtype: str = "int32", rising=False, **given) -> Operand:
    order = given.pop("order", tuple(range(len(shape))))
    return Operand("t", dtype, shape, order, **given, drawn=Entries(below, rising))


def transposition(**options) -> Kernel:
    return Kernel(array("x", 6, 4), array("y", 4, 6), **options)


def both(test):
    """Run a test with NumPy's arrays and with torch's."""
    kinds = [np.asarray, pytest.param(torch.from_numpy, marks=needs_exchange)]
    return pytest.mark.parametrize("kind", kinds)(test)


def address(found) -> int:
    return found.data_ptr() if isinstance(found, torch.Tensor) else found.ctypes.data


FLOATS = np.zeros((6, 4), np.float32)
UNFIT = {
    "dtype": FLOATS.astype(np.float64),
    "dtype of as many bytes": FLOATS.astype(np.int32),
    "byte order": FLOATS.astype(">f4"),
    "shape": FLOATS[:5],
    "rank": FLOATS.reshape(6, 4, 1),
    "order": np.asfortranarray(FLOATS),
    "view": np.zeros((6, 8), np.float32)[:, ::2],
    "rows apart": np.zeros((12, 4), np.float32)[::2],
    "alignment": np.zeros(97, np.uint8)[1:].view(np.float32).reshape(6, 4),
    "masked": np.ma.masked_array(FLOATS),
    "subclass": FLOATS.view(type("Sub", (np.ndarray,), {})),
    "list": FLOATS.tolist(),
    "nothing": None,
    "tensor dtype": torch.zeros(6, 4, dtype=torch.float64),
    "tensor of as many bytes": torch.zeros(6, 4, dtype=torch.int32),
    "tensor shape": torch.zeros(6, 5),
    "tensor rank": torch.zeros(6, 4, 1),
    "tensor order": torch.zeros(4, 6).T,
    "tensor rows": torch.zeros(12, 4)[::2],
    "tensor alignment": torch.zeros(97, dtype=torch.uint8).numpy()[1:],
    "gradient": torch.zeros(6, 4, requires_grad=True),
    "parameter": torch.nn.Parameter(torch.zeros(6, 4)),
    "negated": torch._neg_view(torch.zeros(6, 4)),
    "meta": torch.zeros(6, 4, device="meta"),
    "sparse": torch.zeros(6, 4).to_sparse(),
    "mkldnn": torch.zeros(6, 4).to_mkldnn(),
    "no storage": torch._efficientzerotensor(6, 4),
    "tensor subclass": torch.zeros(6, 4).as_subclass(type("Own", (torch.Tensor,), {})),
}
