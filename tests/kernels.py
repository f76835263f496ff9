"""Kernels that tests write, and lowered ones that they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spaces.kernel import Call, Kernel, Launch, Source, arguments
from spaces.workloads.array import Array


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
    """The kernel with another body, in which its entry may have another name."""
    source = replace(kernel.source, body=body)
    return Kernel(source, replace(kernel.call, entry=entry or kernel.call.entry))
