"""The operator's CPU kernel in C++, where it can be built: an operator's call in Python takes some
8 us more than its kernel, of which C++ needs 1 to 2.

``native.cpp`` holds plans: the addresses and demands of kernels by key and number of
threads. A key that it does not know it asks Python for, once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tilewright.scheduler.functions import caller
from tilewright.scheduler.functions.extension import extension
from tilewright.spaces.errors import InputError

SOURCE = Path(__file__).with_suffix(".cpp")
LIBRARY = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"


@cache
def native() -> Any:
    """Return the module of ``native.cpp``; None where it cannot be built."""
    if not LIBRARY.exists():
        return None
    header = caller.SOURCE.with_suffix(".h")
    return extension(SOURCE, beside=[header])


def register(resolve: Callable[[str, int], None], most: int) -> int:
    """Register the operators of C++ for the CPU, those of up to ``most`` plain operands among them.
    ``resolve`` is called with a key and a number of threads whose plan is missing, and is to
    :func:`put` it. Gives 0 if that failed, as in a torch that lacks a function which is
    called, 1 if calls go through Python where autograd meets them, and 2 if only those do that may
    want gradients."""
    module = native()
    if module is None:
        return 0
    key = getattr(torch._C.DispatchKey, "AutogradFunctionality", None)
    return int(module.registered(str(LIBRARY), resolve, most, -1 if key is None else int(key)))


def put_operator(key: str, threads: int, name: str) -> None:
    """Let another operator of ours compute a key until a function is :func:`put`."""
    native().put_operator(key, threads, f"tilewright::{name}")


def put(key: str, threads: int, function: Any) -> None:
    """Let the operator call this function of a CPU; :class:`InputError` if C++ cannot check its
    arrays."""
    parts = function.parts
    if parts is None:
        raise InputError(f"{function.workload} has sorted indices in another order than row-major")
    native().put(
        key,
        threads,
        parts.entry,
        parts.runtime,
        parts.workspace_bytes,
        parts.order,
        parts.demands,
        parts.dtypes,
    )
