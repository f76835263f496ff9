"""Convolutions of whole networks, one image at a time: what is compared on a CPU.

Images have channels last, as ours are read fastest; torch is timed with channels first, too. A
window of 1x1 at every pixel is a product of matrices, whose arrays are the image and the filter as
they lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.operators.convolutions import LAYERS
from experiments.operators.families.case import Case

RESNET = tuple(dict.fromkeys(layer[:5] for layer in LAYERS))
"""ResNet-50's distinct ones: channels, size, outputs, window and stride."""
MOBILENET = (
    (3, 224, 32, 3, 2), (32, 112, 16, 1, 1), (16, 112, 96, 1, 1), (96, 56, 24, 1, 1),
    (24, 56, 144, 1, 1), (144, 56, 24, 1, 1), (144, 28, 32, 1, 1), (32, 28, 192, 1, 1),
    (192, 28, 32, 1, 1), (192, 14, 64, 1, 1), (64, 14, 384, 1, 1), (384, 14, 64, 1, 1),
    (384, 14, 96, 1, 1), (96, 14, 576, 1, 1), (576, 14, 96, 1, 1), (576, 7, 160, 1, 1),
    (160, 7, 960, 1, 1), (960, 7, 160, 1, 1), (960, 7, 320, 1, 1), (320, 7, 1280, 1, 1),
)  # fmt: skip
"""MobileNetV2's distinct ones that are not depthwise (Sandler et al. 2018, table 2)."""


def layer(channels: int, size: int, outputs: int, window: int, stride: int) -> Case:
    """Return one image in float32."""
    words: dict[str, int | str] = {"n": 1, "c": channels, "h": size, "w": size, "o": outputs}
    words |= {"r": window, "s": window, "stride": stride, "padding": window // 2}
    step = f"/{stride}" if stride > 1 else ""
    title = f"{channels} {window}x{window}{step} at {size} to {outputs}"
    return Case("conv2d", (*words.items(), ("layout", "NHWC"), ("dtype", "float32")), title)


_SHAPES = sorted(dict.fromkeys((*RESNET, *MOBILENET)), key=lambda shape: shape[3] * shape[4] == 1)
CASES = tuple(layer(*shape) for shape in _SHAPES)
"""Layers with windows or strides come first."""


def image_and_filter(case: Case, tensors: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the arrays of a convolution, of a product of matrices too, in the order of its
    program."""
    if not case.workload.matmul:
        return tensors["image"], tensors["filter"]
    words = dict(case.parameters)
    image = tensors["A"].reshape(words["n"], words["h"], words["w"], words["c"])
    return image, tensors["B"].t().reshape(words["o"], 1, 1, words["c"])
