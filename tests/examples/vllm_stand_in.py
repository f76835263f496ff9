"""What a provider meets of ``vllm.ir`` (vLLM 0.33): operators, their implementations, priorities.

vLLM is too large to be installed for tests. Where it is, they use it instead of this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.library import Library, infer_schema

LIBRARY = Library("vllm_ir", "FRAGMENT")


@dataclass(frozen=True)
class Implementation:
    provider: str
    impl_fn: Callable[..., Any]
    supports_args: Callable[..., bool]


class IrOp:
    """An operator of torch's, computed by the first implementation that serves the arguments."""

    def __init__(self, native: Callable[..., Any]) -> None:
        self._signature, self._schema = (
            inspect.signature(native),
            infer_schema(native, mutates_args=[]),
        )
        self._first: list[Implementation] = []
        self.impls = {"native": Implementation("native", native, lambda *_: True)}
        name = native.__name__
        LIBRARY.define(name + self._schema)
        LIBRARY.impl(name, self._run, "CompositeExplicitAutograd")
        self.torch_op = getattr(torch.ops.vllm_ir, name).default

    def register_impl(
        self, provider: str, *, supports_args: Callable[..., bool]
    ) -> Callable[[Callable[..., Any]], None]:
        """Schemas are equal, and ``supports_args`` has the same names and defaults."""

        def register(function: Callable[..., Any]) -> None:
            assert provider not in self.impls
            assert infer_schema(function, mutates_args=[]) == self._schema
            ours, theirs = (
                [(p.name, p.default) for p in signature.parameters.values()]
                for signature in (inspect.signature(supports_args), self._signature)
            )
            assert ours == theirs
            self.impls[provider] = Implementation(provider, function, supports_args)

        return register

    @contextmanager
    def set_priority(self, providers: list[str]) -> Iterator[None]:
        self._first = [self.impls[provider] for provider in [*providers, "native"]]
        yield
        self._first = []

    def dispatch(self, *given: Any) -> Implementation:
        bound = self._signature.bind(*given)
        bound.apply_defaults()
        return next(each for each in self._first if each.supports_args(*bound.args))

    def _run(self, *given: Any) -> Any:
        return self.dispatch(*given).impl_fn(*given)

    def __call__(self, *given: Any) -> Any:
        return self.torch_op(*given)


def _normed(x: Tensor, weight: Tensor | None, epsilon: float, size: int | None) -> Tensor:
    scale = x[..., :size].square().mean(-1, keepdim=True).add(epsilon).rsqrt()
    return x * scale * (1 if weight is None else weight)


def rms_norm(
    x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> Tensor:
    return _normed(x.float(), weight, epsilon, variance_size).to(x.dtype)


def fused_add_rms_norm(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    added = x.float() + x_residual.float()
    return _normed(added, weight, epsilon, variance_size).to(x.dtype), added.to(x.dtype)


def module() -> SimpleNamespace:
    """Return what ``from vllm import ir`` gives."""
    made = {each.__name__: IrOp(each) for each in (rms_norm, fused_add_rms_norm)}
    return SimpleNamespace(ops=SimpleNamespace(**made))
