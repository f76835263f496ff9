"""Calls of libraries and compilers that a result is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

Call = Callable[[], Any]


def usable(makers: Mapping[str, Callable[[], Call]]) -> tuple[dict[str, Call], dict[str, str]]:
    """Return the calls that can be made and then run, and the reasons why others do not, by
    name."""
    calls: dict[str, Call] = {}
    unavailable: dict[str, str] = {}
    for name, make in makers.items():
        try:
            call = make()
            call()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            calls[name] = call
        except Exception as error:  # a rival that fails is no reason to stop
            unavailable[name] = f"{error}\n".splitlines()[0][:200] or type(error).__name__
    return calls, unavailable


def compiled(
    function: Callable[..., Any], tensors: Mapping[str, torch.Tensor], mode: str | None = None
) -> Call:
    """Return a function of tensors by name, by ``torch.compile`` for their sizes alone."""
    torch._dynamo.reset()  # sizes seen before would make these dynamic
    found = torch.compile(function, mode=mode, dynamic=False)
    return lambda: found(**tensors)


def gpu_copy(size: int) -> Call:
    """Return a copy that reads half of ``size`` bytes and writes as many."""
    source = torch.ones(size // 2, dtype=torch.uint8, device="cuda")
    to = torch.empty_like(source)
    return lambda: to.copy_(source)
