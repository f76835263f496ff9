"""ResNet-50 and Inception-v3 as published, for the file of a suite: definitions, no weights.

K. He et al., Deep Residual Learning for Image Recognition, CVPR 2016, with the stride in the 3x3
convolution, and C. Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR
2016, without the auxiliary classifier, as PyTorch's model zoo has them. The functions are for
``tilewright extract``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

CLASSES = 1000


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with a shortcut around them."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.reduce = convolution(inputs, width, 1)
        self.middle = convolution(width, width, 3, stride=stride, padding=1)
        self.widen = convolution(width, outputs, 1, activated=False)
        changes = stride > 1 or inputs != outputs
        self.shortcut = (
            convolution(inputs, outputs, 1, stride=stride, activated=False)
            if changes
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.widen(self.middle(self.reduce(x))) + self.shortcut(x))


def convolution(
    inputs: int, outputs: int, size: int | tuple[int, int], activated: bool = True, **others: object
) -> nn.Sequential:
    """Make a convolution without a bias, a normalisation, and perhaps a rectifier."""
    parts = [nn.Conv2d(inputs, outputs, size, bias=False, **others), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*parts, *([nn.ReLU()] if activated else []))


def resnet() -> nn.Module:
    stages: list[nn.Module] = []
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            stride = 2 if block == 0 and width > 64 else 1
            stages.append(Bottleneck(inputs, width, stride))
            inputs = 4 * width
    return nn.Sequential(
        convolution(3, 64, 7, stride=2, padding=3),
        nn.MaxPool2d(3, 2, 1),
        *stages,
        *_head(inputs),
    )


def _head(inputs: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES)]


class Branches(nn.Module):
    """Branches side by side, whose channels are put together."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def _row(inputs: int, *steps: tuple) -> nn.Sequential:
    """Convolutions one after the other: outputs, size, and perhaps a stride; padded to keep the
    size where the stride is 1."""
    parts = []
    for outputs, size, *stride in steps:
        height, width = size if isinstance(size, tuple) else (size, size)
        padding = (0, 0) if stride else (height // 2, width // 2)
        step = stride[0] if stride else 1
        parts.append(convolution(inputs, outputs, (height, width), stride=step, padding=padding))
        inputs = outputs
    return nn.Sequential(*parts)


def _pooled(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), convolution(inputs, outputs, 1))


def mixed_35(inputs: int, pooled: int) -> Branches:
    return Branches(
        _row(inputs, (64, 1)),
        _row(inputs, (48, 1), (64, 5)),
        _row(inputs, (64, 1), (96, 3), (96, 3)),
        _pooled(inputs, pooled),
    )


def _mixed_17(narrow: int) -> Branches:
    across, down = (1, 7), (7, 1)
    return Branches(
        _row(768, (192, 1)),
        _row(768, (narrow, 1), (narrow, across), (192, down)),
        _row(768, (narrow, 1), (narrow, down), (narrow, across), (narrow, down), (192, across)),
        _pooled(768, 192),
    )


def _mixed_8(inputs: int) -> Branches:
    def fork() -> Branches:
        return Branches(_row(384, (384, (1, 3))), _row(384, (384, (3, 1))))

    return Branches(
        _row(inputs, (320, 1)),
        nn.Sequential(_row(inputs, (384, 1)), fork()),
        nn.Sequential(_row(inputs, (448, 1), (384, 3)), fork()),
        _pooled(inputs, 192),
    )


def inception() -> nn.Module:
    return nn.Sequential(
        _row(3, (32, 3, 2), (32, 3, 1), (64, 3)),
        nn.MaxPool2d(3, 2),
        _row(64, (80, 1), (192, 3, 1)),
        nn.MaxPool2d(3, 2),
        mixed_35(192, 32),
        mixed_35(256, 64),
        mixed_35(288, 64),
        Branches(
            _row(288, (384, 3, 2)), _row(288, (64, 1), (96, 3), (96, 3, 2)), nn.MaxPool2d(3, 2)
        ),
        _mixed_17(128),
        _mixed_17(160),
        _mixed_17(160),
        _mixed_17(192),
        Branches(
            _row(768, (192, 1), (320, 3, 2)),
            _row(768, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2)),
            nn.MaxPool2d(3, 2),
        ),
        _mixed_8(1280),
        _mixed_8(2048),
        *_head(2048),
    )


def resnet_50(rows: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    """ResNet-50 and images of 224."""
    with torch.device("meta"):
        return resnet().eval(), (torch.empty(rows, 3, 224, 224),)


def inception_v3(rows: int = 1) -> tuple[nn.Module, tuple[Tensor]]:
    """Inception-v3 and images of 299."""
    with torch.device("meta"):
        return inception().eval(), (torch.empty(rows, 3, 299, 299),)
