"""Kernels that tests write, and lowered ones that they change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.workloads.array import Array


def written(
    language: str,
    entry: str,
    body: str,
    arrays: Sequence[Array] = (),
    launch: Launch | None = None,
    *,
    prelude: str = "",
    outputs: int = 1,
    workspace_bytes: int = 0,
    workspace_zeroed: int = 0,
) -> Kernel:
    """A kernel of so much text, which writes the last ``outputs`` of ``arrays``."""
    first = len(arrays) - outputs
    given = arguments(arrays[: max(first, 0)], arrays[max(first, 0) :])
    launches = () if launch is None else (launch,)
    call = Call(entry, given, workspace_bytes, workspace_zeroed, launches)
    return Kernel(Source(language, prelude, body), call)


def rewritten(kernel: Kernel, body: str, entry: str | None = None) -> Kernel:
    """The kernel with another body; its entry may have another name, which the names of functions
    that it launches begin with."""
    old, new = kernel.call.entry, entry or kernel.call.entry
    launches = tuple(
        replace(each, entry=each.entry and each.entry.replace(old, new))
        for each in kernel.call.launches
    )
    source = replace(kernel.source, body=body.replace(old, new))
    return Kernel(source, replace(kernel.call, entry=new, launches=launches))


def planted(
    kernel: Kernel, pattern: str, replacement: str, entry: str | None = None, count: int = 1
) -> Kernel:
    """The kernel with a bug: the first ``count`` matches of ``pattern`` replaced (0: all), of which
    there must be any. Its entry may have another name, so that both can be in one library."""
    body = re.sub(pattern, replacement, kernel.source.body, count=count)
    assert re.search(pattern, kernel.source.body), f"{pattern} is not in the kernel"
    assert body != kernel.source.body, f"{pattern} is replaced by itself"
    return rewritten(kernel, body, entry)
