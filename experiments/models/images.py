"""Operators of images with channels last: convolutions with what follows them, pooling, means.

Each has a ``workload``, and functions of torch's on tensors by the names of its operands:
``rivals`` compute the same, ``alone`` is a library's call without what follows, and ``others`` are
the same in another layout. ``weights`` counts an operator's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

ACTIVATIONS = {"": "{}", "relu": "relu({})", "relu6": "min(max({}, 0), 6)"}
"""Epilogues, as texts of programs over a sum."""
Call = Callable[[], Any]
Tensors = Mapping[str, Any]
Rivals = Mapping[str, Callable[..., Any]]


def windows(size: int, window: int, stride: int, padding: int) -> int:
    """Return how many windows there are along an image."""
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
        """A name such as ``64 3x3 at 56 to 64, relu``."""
        step = f"/{self.stride}" if self.stride > 1 else ""
        window = f"{self.channels} {self.window[0]}x{self.window[1]}{step} at {self.size}"
        kind = "depthwise " if self.groups > 1 else ""
        follows = [word for word in ("residual" * self.residual, self.activation) if word]
        return ", ".join([f"{kind}{window} to {self.outputs}", *follows])

    @property
    def weights(self) -> int:
        """The filter's number of weights; its bias stands for a normalisation's two vectors."""
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
        """The workload: a product of matrices if the window is 1x1 and the stride 1."""
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
        """The same by torch, of images with channels last; whatever is no tensor is a constant, as
        compilers like it."""
        shape, lying = self.workload.outputs[0].shape, (self.batch, *self.to, self.outputs)
        arrays, convolved, activated = self._arrays, self._convolved, self._activated

        def eager(**tensors: Any) -> Any:
            image, filters = arrays(tensors)
            found = convolved(
                image.permute(0, 3, 1, 2), filters.permute(0, 3, 1, 2), tensors["bias"]
            )
            if "residual" in tensors:
                found = found + tensors["residual"].reshape(lying).permute(0, 3, 1, 2)
            return activated(found).permute(0, 2, 3, 1).reshape(shape)

        return {"eager": eager}

    def alone(self, tensors: Tensors) -> Call:
        """Return the convolution alone, without what follows it."""
        image, filters = (x.permute(0, 3, 1, 2) for x in self._arrays(tensors))
        convolved = self._convolved
        return lambda: convolved(image, filters, None)

    def others(self, tensors: Tensors) -> Mapping[str, Call]:
        """Return the same of images with channels first."""
        lying = (self.batch, *self.to, self.outputs)
        given = dict(zip(("image", "filter"), self._arrays(tensors), strict=True))
        if self.residual:
            given["residual"] = tensors["residual"].reshape(lying)
        first = {name: x.permute(0, 3, 1, 2).contiguous() for name, x in given.items()}
        convolved, activated = self._convolved, self._activated

        def call() -> Any:
            found = convolved(first["image"], first["filter"], tensors["bias"])
            return activated(found + first["residual"] if "residual" in first else found)

        return {"eager NCHW": call}

    @property
    def _convolved(self) -> Callable[..., Any]:
        """Torch's convolution of an image, a filter and a bias, channels being first."""
        import torch

        apply = torch.nn.functional.conv2d
        return partial(_convolution, apply, self.stride, self.padding, self.groups)

    @property
    def _activated(self) -> Callable[[Any], Any]:
        import torch

        return getattr(torch.nn.functional, self.activation) if self.activation else _same

    @property
    def _arrays(self) -> Callable[[Tensors], tuple[Any, Any]]:
        """Image and filter, of a product of matrices too, with channels last."""
        image = (self.batch, self.size, self.size, self.channels)
        lying = (self.outputs, *self.window)

        def of_product(tensors: Tensors) -> tuple[Any, Any]:
            return tensors["A"].reshape(image), tensors["B"].t().reshape(*lying, image[-1])

        def of_windows(tensors: Tensors) -> tuple[Any, Any]:
            return tensors["image"], tensors["filter"].reshape(*lying, -1)

        return of_product if self.workload.matmul else of_windows


def _convolution(
    apply: Any, stride: int, padding: Any, groups: int, image: Any, filters: Any, bias: Any
) -> Any:
    return apply(image, filters, bias, stride, padding, groups=groups)


def _same(found: Any) -> Any:
    return found


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
        """A name such as ``max pool 64 3x3/2 at 112``."""
        step = f"/{self.stride}" if self.stride > 1 else ""
        return f"{self.kind} pool {self.channels} {self.window}x{self.window}{step} at {self.size}"

    @cached_property
    def workload(self) -> Workload:
        """The workload; zeros outside of an image are part of a mean."""
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
        pooled = self._pooled
        return {"eager": lambda x: pooled(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)}

    def alone(self, tensors: Tensors) -> None:
        """Return the operator itself, which nothing follows."""

    def others(self, tensors: Tensors) -> Mapping[str, Call]:
        """Return the same of images with channels first."""
        image, pooled = tensors["x"].permute(0, 3, 1, 2).contiguous(), self._pooled
        return {"eager NCHW": lambda: pooled(image)}

    @property
    def _pooled(self) -> Callable[[Any], Any]:
        import torch

        apply = getattr(torch.nn.functional, f"{self.kind}_pool2d")
        given = {"kernel_size": self.window, "stride": self.stride, "padding": self.padding}
        return partial(apply, **given)


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
        """A name such as ``means of 2048 at 7``."""
        return f"means of {self.channels} at {self.size}"

    @cached_property
    def workload(self) -> Workload:
        """The workload of the mean over each image."""
        text = f"x: {self.dtype}; y: {self.dtype}; y[n, c] = sum[h, w](x[n, h, w, c]) / size(h, w)"
        return workload(text, n=self.batch, c=self.channels, h=self.size, w=self.size)

    @property
    def rivals(self) -> Rivals:
        """The same by torch."""
        return {"eager": lambda x: x.mean((1, 2))}

    def alone(self, tensors: Tensors) -> None:
        """Return the operator itself, which nothing follows."""

    def others(self, tensors: Tensors) -> Mapping[str, Call]:
        """No layout is any better."""
        return {}
