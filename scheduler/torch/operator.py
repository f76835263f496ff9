"""The operators ``torch.ops.tilewright``, by which compiled graphs call kernels.

A graph holds the key of a workload (:func:`operator_functions.key_of`), never a schedule: the
process that runs it asks its database for a kernel at the first call, for as many threads as torch
uses then. ``run`` gives one tensor, and has a variant that writes ``out``; ``run_several`` gives
those of a workload with several outputs. Operands are the workload's inputs, dense or strided as
its text declares them. A call with operands that do not fit raises :class:`RuntimeError`. Importing
this module defines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.scheduler.torch import operator_native
from tilewright.scheduler.torch.operator_functions import functions, workload_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import calling_of

SCHEMAS = {
    "run": "(Tensor[] operands, str key) -> Tensor",
    "run.out": "(Tensor[] operands, str key, *, Tensor(a!) out) -> Tensor(a!)",
    "run_several": "(Tensor[] operands, str key) -> Tensor[]",
}
_torch: Any = torch  # some of its functions have no types
_library = _torch.library.Library("tilewright", "DEF")


def _install() -> bool:
    """Define the operators; whether the CPU's are those in C++."""
    exact = torch.Tag.needs_exact_strides
    out = getattr(torch.Tag, "out", None)  # by which Inductor finds the variant, from torch 2.12 on
    for name, schema in SCHEMAS.items():
        is_out = name.endswith(".out") and out is not None
        _library.define(name + schema, tags=(exact, out) if is_out else (exact,))
    for name, kernel in (("run", _run), ("run.out", _run_out), ("run_several", _run_several)):
        _library.impl(name, kernel, "CUDA")
    _library.impl("run_several", _run_several, "CPU")
    in_c = operator_native.register(_resolve)
    if not in_c:
        _library.impl("run", _run, "CPU")
        _library.impl("run.out", _run_out, "CPU")
    for name, fake in (("run", _fake), ("run.out", _fake_out), ("run_several", _fake_several)):
        _torch.library.register_fake(f"tilewright::{name}", fake, lib=_library)
    for name in ("run", "run_several"):
        _torch.library.register_autograd(f"tilewright::{name}", _backward, lib=_library)
    return in_c


def put(key: str, kind: str, threads: int, function: Any) -> None:
    """Let calls of a key run this function from now on."""
    functions.put(key, kind, threads, function)
    if kind == "cpu" and IN_CPP:
        operator_native.put(key, threads, function)


def _resolve(key: str, threads: int) -> None:
    """Hand C++ the function of a key that it has not met with so many threads."""
    operator_native.put(key, threads, functions.get(key, "cpu", threads))


def _function(operands: Sequence[Tensor], key: str) -> Any:
    kind = operands[0].device.type
    return functions.get(key, kind, torch.get_num_threads() if kind == "cpu" else 0)


def _run(operands: Sequence[Tensor], key: str) -> Tensor:
    return _called(operands, key)


def _run_several(operands: Sequence[Tensor], key: str) -> list[Tensor]:
    return list(_called(operands, key))


def _run_out(operands: Sequence[Tensor], key: str, *, out: Tensor) -> Tensor:
    _called(operands, key, out=out)
    return out


def _called(operands: Sequence[Tensor], key: str, out: Tensor | None = None) -> Any:
    try:
        with torch.no_grad():
            return _function(operands, key)(*operands, out=out)
    except InputError as error:
        raise RuntimeError(f"tilewright: {error}") from None


# -- without values ------------------------------------------------------------------------------


def _fake(operands: Sequence[Tensor], key: str) -> Tensor:
    (made,) = _fake_outputs(operands, key)
    return made


def _fake_several(operands: Sequence[Tensor], key: str) -> list[Tensor]:
    return _fake_outputs(operands, key)


def _fake_out(operands: Sequence[Tensor], key: str, *, out: Tensor) -> Tensor:
    _check(out, calling_of(workload_of(key)).outputs[0])
    return out


def _fake_outputs(operands: Sequence[Tensor], key: str) -> list[Tensor]:
    """Tensors with the exact strides of the outputs; sizes of operands may be symbolic, and are
    then bound to those of the workload."""
    calling = calling_of(workload_of(key))
    wanted = len(calling.inputs)
    _torch._check(
        len(operands) == wanted,
        lambda: f"tilewright: {len(operands)} operands are given; allowed: {wanted}",
    )
    for operand, array in zip(operands, calling.inputs, strict=True):
        _check(operand, array)
    return [
        operands[0].new_empty_strided(array.shape, array.strides, dtype=_dtype(array))
        for array in calling.outputs
    ]


def _check(given: Tensor, array: Array) -> None:
    """Check the type and shape of an operand; :class:`RuntimeError` if they do not fit."""

    def why() -> str:
        found = f"{given.dtype} of shape {tuple(given.shape)}"
        return f"tilewright: {array.name} is {found}; allowed: {array.dtype} of shape {array.shape}"

    _torch._check(given.dtype == _dtype(array) and given.ndim == len(array.shape), why)
    for extent, wanted in zip(given.shape, array.shape, strict=True):
        _torch._check(extent == wanted, why)


def _dtype(array: Array) -> torch.dtype:
    found: torch.dtype = getattr(torch, array.dtype)
    return found


def _backward(ctx: Any, *gradients: Any) -> Any:
    """Say that kernels have no gradients: compiled models take torch's own backward instead."""
    raise RuntimeError(
        "tilewright: kernels have no gradients; compile the model, which has torch's own backward, "
        "or call under torch.no_grad()"
    )


IN_CPP = _install()
"""Whether the operators of the CPU are those in C++."""
