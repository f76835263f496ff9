"""Depthwise convolutions, pooling and sums of columns: what is compared, and what torch does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from experiments.operators.families.case import Case
from experiments.operators.families.layers import image_and_filter

DEPTHWISE_LAYERS = (
    (32, 112, 1), (96, 112, 2), (144, 56, 1), (144, 56, 2), (192, 28, 1), (192, 28, 2),
    (384, 14, 1), (576, 14, 1), (576, 14, 2), (960, 7, 1),
)  # fmt: skip
"""The distinct ones of MobileNetV2 (Sandler et al. 2018, table 2): channels, size and stride."""

POOL_LAST = (
    "x: {}[n, 112, 112, c]; "
    "y[n, p, q, c] = max[r, s](inside(x[n, 2 * p + r - 1, 2 * q + s - 1, c], -inf))"
)
"""ResNet's, of images with channels last, of a dtype."""
MEANS = "y[n, c] = sum[h, w](x[n, h, w, c]) / size(h, w)"
COLUMNS = "y[c] = sum[r](x[r, c])"


def depthwise(
    channels: int, size: int, stride: int, *, n: int, layout: str, dtype: str = "float32"
) -> Case:
    """Return a window of 3x3 for each channel."""
    words = {"n": n, "c": channels, "h": size, "w": size, "o": channels, "r": 3, "s": 3}
    words |= {"stride": stride, "padding": 1, "groups": channels}
    step = f"/{stride}" if stride > 1 else ""
    title = f"depthwise {n} x {channels} at {size}{step} {layout} {dtype}"
    return Case("conv2d", (*words.items(), ("layout", layout), ("dtype", dtype)), title)


def pool_last(n: int, c: int, dtype: str) -> Case:
    """Return ResNet's pooling with channels last."""
    words = {"n": n, "c": c, "p": 56, "q": 56, "r": 3, "s": 3}
    title = f"max_pool2d {n} x {c} at 112/2 NHWC {dtype}"
    return Case(POOL_LAST.format(dtype), (*words.items(), ("dtype", dtype)), title)


def pool_first(n: int, c: int, dtype: str) -> Case:
    """Return ResNet's pooling with channels first."""
    words = {"n": n, "c": c, "h": 112, "w": 112, "r": 3, "stride": 2, "padding": 1}
    title = f"max_pool2d {n} x {c} at 112/2 NCHW {dtype}"
    return Case("max_pool2d", (*words.items(), ("dtype", dtype)), title)


def means(n: int, size: int, c: int, dtype: str) -> Case:
    """Return the mean of each channel."""
    words = {"n": n, "h": size, "w": size, "c": c}
    return Case(MEANS, (*words.items(), ("dtype", dtype)), f"means {n}x{size}x{size}x{c} {dtype}")


def columns(r: int, c: int, dtype: str) -> Case:
    """Return the sum of each column."""
    return Case(COLUMNS, (("r", r), ("c", c), ("dtype", dtype)), f"columns {r}x{c} {dtype}")


CPU_CASES = (
    *(depthwise(*layer, n=1, layout="NHWC") for layer in DEPTHWISE_LAYERS),
    pool_last(1, 64, "float32"),
    columns(4096, 1024, "float32"),
    columns(131072, 32, "float32"),
    means(1, 7, 1280, "float32"),
    pool_first(1, 64, "float32"),
    *(depthwise(*layer, n=1, layout="NCHW") for layer in DEPTHWISE_LAYERS),
)
GPU_CASES = (
    *(
        depthwise(*DEPTHWISE_LAYERS[i], n=32, layout="NHWC", dtype="float16")
        for i in (0, 1, 2, 4, 6, 9)
    ),
    *(depthwise(*DEPTHWISE_LAYERS[i], n=1, layout="NHWC", dtype="float16") for i in (0, 7, 9)),
    pool_last(32, 64, "float16"),
    columns(65536, 1024, "bfloat16"),
    columns(1 << 20, 32, "float32"),
    pool_first(32, 64, "float32"),
    means(32, 7, 1280, "float16"),
    *(depthwise(*DEPTHWISE_LAYERS[i], n=32, layout="NHWC", dtype="float16") for i in (3, 5, 7, 8)),
)
"""Cases in the order in which they are measured, the most telling first."""


def convolution(
    image: Any, filter: Any, *, stride: int, padding: int, layout: str, groups: int = 1
) -> Any:
    """Return a convolution of images as they lie in memory."""
    import torch

    apply = torch.nn.functional.conv2d
    if layout == "NCHW":
        return apply(image, filter, None, stride, padding, groups=groups)
    turned = image.permute(0, 3, 1, 2), filter.permute(0, 3, 1, 2)
    return apply(*turned, None, stride, padding, groups=groups).permute(0, 2, 3, 1)


def pooling(x: Any, *, layout: str = "NCHW") -> Any:
    """Return the windows of 3x3, at every second place."""
    import torch

    apply = torch.nn.functional.max_pool2d
    if layout == "NCHW":
        return apply(x, 3, 2, 1)
    return apply(x.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)


def reference(case: Case) -> Callable[..., Any] | None:
    """Return a case in torch, on tensors by the names of its operands; None if it is not of
    these."""
    words = dict(case.parameters)
    if case.operator == "conv2d":
        shape = case.workload.outputs[0].shape
        return lambda **tensors: convolution(
            *image_and_filter(case, tensors), **_steps(case)
        ).reshape(shape)
    if case.operator == "max_pool2d":
        return lambda x: pooling(x)
    if case.operator == POOL_LAST.format(words["dtype"]):
        return lambda x: pooling(x, layout="NHWC")
    return {MEANS: lambda x: x.mean((1, 2)), COLUMNS: lambda x: x.sum(0)}.get(case.operator)


def other_layout(case: Case, tensors: Mapping[str, Any]) -> Mapping[str, Callable[[], Any]]:
    """Return the same windows of the same images in the other layout, by what that is called."""
    words = dict(case.parameters)
    if case.operator != "conv2d":
        return {}
    last = words["layout"] == "NHWC"
    order = (0, 3, 1, 2) if last else (0, 2, 3, 1)
    given = image_and_filter(case, tensors)
    image, filter = (tensor.permute(order).contiguous() for tensor in given)
    steps = _steps(case) | {"layout": "NCHW" if last else "NHWC"}
    return {f"eager {steps['layout']}": lambda: convolution(image, filter, **steps)}


def _steps(case: Case) -> dict[str, Any]:
    """Return how the windows of a convolution follow each other."""
    words, names = dict(case.parameters), ("groups", "stride", "padding", "layout")
    return {name: words[name] for name in names if name in words}
