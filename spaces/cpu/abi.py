"""The calling convention of CPU kernels: the C declarations that kernels and their callers
share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from tilewright.spaces.cpu.vectors import doubles, moves, simd
from tilewright.spaces.kernel import Call, Kernel, Source, arguments
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Workload

ARRAY_TYPES = moves.TABLE_TYPES | doubles.C_TYPES | simd.C_TYPES
"""The C types of arrays' elements, by the names of their types."""

ABI_PRELUDE = """\
typedef struct tw_pool tw_pool;
typedef struct {
  void (*parallel)(tw_pool *pool, int workers, void (*task)(void *context, int worker),
                   void *context);
  tw_pool *pool;
} tw_runtime;
typedef struct { void *const *buffers; void *workspace; } tw_call;
static inline long tw_least(long a, long b) { return a < b ? a : b; }
"""
"""The C text that every kernel starts with.

A kernel is

    void ENTRY(void *const *buffers, void *workspace, const tw_runtime *runtime);

``buffers`` are in the order of ``Call.arguments`` and aligned to their element at least; one more
points to the extent of ``Call.open_axis``, if there is one. ``workspace`` is aligned to 64 bytes.
``runtime->parallel(runtime->pool, workers, task, context)`` calls ``task(context, w)`` for every
``w < workers`` and returns when all have run. They run at the same time on as many threads as are
free, so that no worker may wait for another. A kernel of one thread never touches ``runtime``.
``tw_call`` is what a kernel hands to its own workers.
"""

MOST = """\
static inline long tw_most(long a, long b) { return a > b ? a : b; }
"""
"""The C text of kernels that also need the larger of two numbers."""

PAGE = 4096
"""Bytes of a page of memory: arrays and workers' parts of a workspace begin at whole pages."""
LINE_BYTES = 64
"""Bytes of a cache line."""
FLOAT = 4
"""Bytes of float32, the type of most registers and of all scratch memory."""
LINE = LINE_BYTES // FLOAT
"""Floats of a cache line."""


class Code(Protocol):
    """The text that a template has written for one schedule."""

    @property
    def entry(self) -> str:
        """The name of the function that is called."""

    @property
    def source(self) -> str:
        """The C text of all functions, without the text that kernels share."""

    @property
    def workspace_bytes(self) -> int:
        """Bytes that a call needs beside the arrays."""


def c_kernel(workload: Workload, prelude: str, code: Code) -> Kernel:
    """Return the kernel of a workload's arrays, its inputs first, with this text."""
    given = arguments(workload.inputs, workload.outputs)
    call = Call(code.entry, given, code.workspace_bytes)
    return Kernel(Source("c", prelude, code.source), call)


def open_extent(arrays: Sequence[Array]) -> str:
    """Return the C expression of the extent that a call gives behind its arrays; for functions of
    workers."""
    return f"*(const long *)call->buffers[{len(arrays)}]"


def open_share(items: str, workers: int) -> list[str]:
    """Return the C lines that compute a worker's share of a call's items, from ``begin`` to before
    ``end``; ``items`` is the C expression of their number."""
    return [
        f"const long items = {items};",
        f"const long share = (items + {workers - 1}) / {workers};",
        "const long begin = worker * share, end = tw_least(items, begin + share);",
    ]


def buffer_variables(
    arrays: Sequence[Array],
    names: Mapping[str, str],
    written: Collection[str],
    restrict: str = "",
    types: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Declare C pointers to the buffers of ``call``, which are those of ``arrays`` in order.

    ``names`` maps the arrays' names to variables. Arrays that are not in ``written`` are constant.
    ``types`` has the C types of elements that are not those of their arrays.
    """
    lines = []
    for number, array in enumerate(arrays):
        constant = "" if array.name in written else "const "
        c_type = types.get(array.name) or ARRAY_TYPES[array.dtype]
        pointer = f"{constant}{c_type} *{restrict}{names[array.name]}"
        lines.append(f"{pointer} = call->buffers[{number}];")
    return lines


def worker_function(name: str, lines: Sequence[str]) -> list[str]:
    """Return the C function ``name`` that a ``worker`` runs in a ``call`` of the kernel."""
    head = [f"static void {name}(void *context, int worker) {{", "  const tw_call *call = context;"]
    return [*head, *[f"  {line}" for line in lines], "}"]


def entry_function(entry: str, passes: Mapping[str, int]) -> list[str]:
    """Return the C function of the kernel itself: it runs the functions in ``passes`` one after the
    other, each by so many workers."""
    runs = (_run(function, workers) for function, workers in passes.items())
    return [
        f"void {entry}(",
        "    void *const *buffers, void *workspace, const tw_runtime *runtime) {",
        "  tw_call call = {buffers, workspace};",
        *(f"  {run}" for run in runs),
        "}",
    ]


def _run(function: str, workers: int) -> str:
    if workers == 1:
        return f"{function}(&call, 0);"
    return f"runtime->parallel(runtime->pool, {workers}, {function}, &call);"
