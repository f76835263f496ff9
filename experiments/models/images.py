"""Operators of images with channels last: convolutions with what follows them, pooling, means.

Each has a ``workload``, and functions of torch's on tensors by the names of its operands:
``rivals`` compute the same, ``alone`` is a library's call without what follows, and ``others`` are
the same in another layout. ``weights`` counts an operator's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from spaces.operators import workload
from spaces.workloads.contraction import Contraction
from spaces.workloads.workload import Workload

ACTIVATIONS = {"": "{}", "relu": "relu({})", "relu6": "min(max({}, 0), 6)"}
"""What follows a sum, as the text of a program."""
Call = Callable[[], Any]
Tensors = Mapping[str, Any]
Rivals = Mapping[str, Callable[..., Any]]


def windows(size: int, window: int, stride: int, padding: int) -> int:
    """How many windows there are along an image."""
    return (size + 2 * padding - window) // stride + 1


@dataclass(frozen=True)
class Convolution:
    """``batch`` images of ``size`` squared with ``channels`` to ``outputs`` channels by windows of
    height and width ``window``, then a bias, perhaps a residual, and one of :data:`ACTIVATIONS`."""

    batch: int
    channels: int
    size: int
    outputs: int
    window: tuple[int, int]
    stride: int
    padding: tuple[int, int]
    activation: str
    dtype: str
    residual: bool = False
    groups: int = 1

    @property
    def name(self) -> str:
        """Such as ``64 3x3 at 56 to 64, relu``."""
        step = f"/{self.stride}" if self.stride > 1 else ""
        window = f"{self.channels} {self.window[0]}x{self.window[1]}{step} at {self.size}"
        kind = "depthwise " if self.groups > 1 else ""
        follows = [word for word in ("residual" * self.residual, self.activation) if word]
        return ", ".join([f"{kind}{window} to {self.outputs}", *follows])

    @property
    def weights(self) -> int:
        """Of the filter; its bias stands for a normalisation's two vectors."""
        return self.outputs * (self.channels // self.groups * prod(self.window) + 2)

    @property
    def to(self) -> tuple[int, int]:
        """Height and width of the output."""
        return tuple(
            windows(self.size, r, self.stride, a)
            for r, a in zip(self.window, self.padding, strict=True)
        )  # type: ignore[return-value]

    @cached_property
    def workload(self) -> Workload:
        """What is computed; a product of matrices if the window is 1x1 and the stride 1."""
        channel = "c" if self.groups == 1 else "o"
        row, column = (
            f"{self.stride} * {place} + {tap} - {padding}"
            for place, tap, padding in zip("pq", "rs", self.padding, strict=True)
        )
        read = f"image[n, {row}, {column}, {channel}]"
        read = f"inside({read}, 0)" if any(self.padding) else read
        taps = "c, r, s" if self.groups == 1 else "r, s"
        tap = "o, r, s, c" if self.groups == 1 else "o, r, s"
        added = " + residual[n, p, q, o]" * self.residual
        sums = f"sum[{taps}]({read} * filter[{tap}]) + bias[o]{added}"
        shape = f"n, {self.size}, {self.size}, {self.channels}"
        text = (
            f"image: {self.dtype}[{shape}]; filter: {self.dtype}; "
            f"y[n, p, q, o] = {ACTIVATIONS[self.activation].format(sums)}"
        )
        (p, q), (r, s) = self.to, self.window
        extents = {"n": self.batch, "o": self.outputs, "p": p, "q": q, "r": r, "s": s}
        extents |= {"c": self.channels} if self.groups == 1 else {}
        return workload(text, dtype=self.dtype, **extents)

    @property
    def rivals(self) -> Rivals:
        """The same by torch."""
        return {"eager": self._eager}

    def _eager(self, **tensors: Any) -> Any:
        import torch

        image, filters = (x.permute(0, 3, 1, 2) for x in self._arrays(tensors))
        found = self._convolved(image, filters, tensors["bias"])
        if self.residual:
            found = found + tensors["residual"].reshape(self._shape).permute(0, 3, 1, 2)
        if self.activation:
            found = getattr(torch.nn.functional, self.activation)(found)
        return found.permute(0, 2, 3, 1).reshape(self.workload.outputs[0].shape)

    def alone(self, tensors: Tensors) -> Call:
        """The convolution alone, without what follows it."""
        image, filters = (x.permute(0, 3, 1, 2) for x in self._arrays(tensors))
        return lambda: self._convolved(image, filters, None)

    def others(self, tensors: Tensors) -> Mapping[str, Call]:
        """The same of images with channels first."""
        import torch

        def first(tensor: Any) -> Any:
            return tensor.permute(0, 3, 1, 2).contiguous()

        image, filters = map(first, self._arrays(tensors))
        beside = first(tensors["residual"].reshape(self._shape)) if self.residual else None

        def call() -> Any:
            found = self._convolved(image, filters, tensors["bias"])
            found = found if beside is None else found + beside
            apply = getattr(torch.nn.functional, self.activation, None) if self.activation else None
            return apply(found) if apply else found

        return {"eager NCHW": call}

    def _convolved(self, image: Any, filters: Any, bias: Any) -> Any:
        import torch

        apply = torch.nn.functional.conv2d
        return apply(image, filters, bias, self.stride, self.padding, groups=self.groups)

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.batch, *self.to, self.outputs)

    def _arrays(self, tensors: Tensors) -> tuple[Any, Any]:
        """Image and filter, of a product of matrices too, with channels last."""
        image, lies = (
            (self.batch, self.size, self.size, self.channels),
            (self.outputs, *self.window),
        )
        if isinstance(self.workload, Contraction):
            return tensors["A"].reshape(image), tensors["B"].t().reshape(*lies, self.channels)
        return tensors["image"], tensors["filter"].reshape(*lies, -1)


@dataclass(frozen=True)
class Pooling:
    """The greatest values (``max``) or means (``avg``) of windows of ``window`` squared."""

    batch: int
    channels: int
    size: int
    window: int
    stride: int
    padding: int
    kind: str
    dtype: str
    weights = 0

    @property
    def name(self) -> str:
        """Such as ``max pool 64 3x3/2 at 112``."""
        step = f"/{self.stride}" if self.stride > 1 else ""
        return f"{self.kind} pool {self.channels} {self.window}x{self.window}{step} at {self.size}"

    @cached_property
    def workload(self) -> Workload:
        """What is computed; zeros outside of an image are part of a mean."""
        row, column = (f"{self.stride} * {i} + {tap} - {self.padding}" for i, tap in ("pr", "qs"))
        read, outside = f"x[n, {row}, {column}, c]", "-inf" if self.kind == "max" else "0"
        read = f"inside({read}, {outside})" if self.padding else read
        value = f"max[r, s]({read})" if self.kind == "max" else f"sum[r, s]({read}) / size(r, s)"
        shape = f"n, {self.size}, {self.size}, c"
        text = f"x: {self.dtype}[{shape}]; y: {self.dtype}; y[n, p, q, c] = {value}"
        to = windows(self.size, self.window, self.stride, self.padding)
        extents = {"n": self.batch, "c": self.channels, "p": to, "q": to}
        return workload(text, **extents, r=self.window, s=self.window)

    @property
    def rivals(self) -> Rivals:
        """The same by torch."""
        return {"eager": lambda x: self._pooled(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)}

    def alone(self, tensors: Tensors) -> None:
        """Nothing follows it."""

    def others(self, tensors: Tensors) -> Mapping[str, Call]:
        """The same of images with channels first."""
        image = tensors["x"].permute(0, 3, 1, 2).contiguous()
        return {"eager NCHW": lambda: self._pooled(image)}

    def _pooled(self, image: Any) -> Any:
        import torch

        apply = getattr(torch.nn.functional, f"{self.kind}_pool2d")
        return apply(image, self.window, self.stride, self.padding)


@dataclass(frozen=True)
class Means:
    """The mean of each channel of images of ``size`` squared."""

    batch: int
    channels: int
    size: int
    dtype: str
    weights = 0

    @property
    def name(self) -> str:
        """Such as ``means of 2048 at 7``."""
        return f"means of {self.channels} at {self.size}"

    @cached_property
    def workload(self) -> Workload:
        """What is computed."""
        text = f"x: {self.dtype}; y: {self.dtype}; y[n, c] = sum[h, w](x[n, h, w, c]) / size(h, w)"
        return workload(text, n=self.batch, c=self.channels, h=self.size, w=self.size)

    @property
    def rivals(self) -> Rivals:
        """The same by torch."""
        return {"eager": lambda x: x.mean((1, 2))}

    def alone(self, tensors: Tensors) -> None:
        """Nothing follows it."""

    def others(self, tensors: Tensors) -> Mapping[str, Call]:
        """No layout is any better."""
        return {}
