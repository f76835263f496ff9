"""The operators ``torch.ops.tilewright``, by which compiled graphs call kernels.

A graph holds the key of a workload (:func:`operator_functions.key_of`), never a schedule: the
process that runs it asks its database for a kernel at the first call, for as many threads as torch
uses then. ``run`` gives one tensor, and has variants that write ``out``; ``run_several`` gives
those of a workload with several outputs. Operands are the workload's inputs, dense or strided as
its text declares them: a list, or plain tensors (``run.of2(a, b, key)``), as Inductor wants them
where it plans the memory of ``out``. A call with operands that do not fit raises
:class:`RuntimeError`. Importing this module defines the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.scheduler.torch import operator_native
from tilewright.scheduler.torch.operator_functions import functions, workload_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import calling_of

MOST_PLAIN = 16
"""Operands that are plain tensors, at most; more of them are a list."""

_torch: Any = torch  # some of its functions have no types
_library = _torch.library.Library("tilewright", "DEF")


def overload(count: int) -> Any:
    """The operator of so many plain operands; of a list where there are none or too many."""
    name = f"of{count}" if 1 <= count <= MOST_PLAIN else "default"
    return getattr(torch.ops.tilewright.run, name)


def _install() -> bool:
    """Define the operators; whether the CPU's are those in C++."""
    _define("run_several", "Tensor[] operands", "Tensor[]", _fake_several)
    _define("run", "Tensor[] operands", "Tensor", _fake)
    _define("run.out", "Tensor[] operands", "", _fake_out)
    for count in range(1, MOST_PLAIN + 1):
        operands = ", ".join(f"Tensor x{place}" for place in range(count))
        _define(f"run.of{count}", operands, "Tensor", _plain(_fake))
        _define(f"run.of{count}_out", operands, "", _plain(_fake_out))
    in_cpp = operator_native.register(_resolve, MOST_PLAIN)
    for device in ("CUDA",) if in_cpp else ("CUDA", "CPU"):
        _library.impl("run", _run, device)
        _library.impl("run.out", _run_out, device)
        for count in range(1, MOST_PLAIN + 1):
            _library.impl(f"run.of{count}", _plain(_run), device)
            _library.impl(f"run.of{count}_out", _plain(_run_out), device)
    for device in ("CUDA", "CPU"):
        _library.impl("run_several", _run_several, device)
    return in_cpp


def _define(name: str, operands: str, result: str, fake: Callable[..., Any]) -> None:
    """Define an operator, or one that writes ``out`` where it has no ``result``."""
    exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
    tags = [exact]
    if not result and hasattr(torch.Tag, "out"):  # by which Inductor finds the variant
        tags.append(torch.Tag.out)
    out = "" if result else ", *, Tensor(a!) out"
    _library.define(f"{name}({operands}, str key{out}) -> {result or 'Tensor(a!)'}", tags=tags)
    _torch.library.register_fake(f"tilewright::{name}", fake, lib=_library)
    if result:
        _torch.library.register_autograd(f"tilewright::{name}", _backward, lib=_library)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of plain operands and a key, by one of a list."""

    def called(*given: Any, **named: Any) -> Any:
        return function(given[:-1], given[-1], **named)

    return called


def put(key: str, kind: str, threads: int, function: Any) -> None:
    """Let calls of a key run this function from now on."""
    functions.put(key, kind, threads, function)
    if kind == "cpu" and IN_CPP:
        operator_native.put(key, threads, function)


def _resolve(key: str, threads: int) -> None:
    """Hand C++ the function of a key that it has not met with so many threads."""
    operator_native.put(key, threads, functions.get(key, "cpu", threads))


# -- in Python -----------------------------------------------------------------------------------


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
"""True if the operators of the CPU are those in C++."""
