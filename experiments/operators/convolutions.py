"""ResNet-50's convolutions against cuDNN and torch; see README.md beside this file.

    python -m experiments.operators.convolutions [--batch 32 1] [--seconds 4] [--minutes 3]
        [--layout NHWC] [--dtype float16] [--plain] [--verify N] [--only PATTERN]
        [--known FILE ...] [--out FILE]

With bias, relu and, where a block ends, its residual, or ``--plain``, without. Each layer is
searched for so many seconds and then timed in turns with cuDNN's convolution alone, which computes
none of what follows it, with eager torch, with compiled torch and with a copy of as many bytes.
Writes the results after every layer, and a table beside them; a further call with the same file
goes on with layers not in it. Needs a GPU.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from experiments.operators.exploring.known import add_known, known_schedules
from experiments.operators.summary import COPY, line, table
from experiments.resuming import remaining, resume, write
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

EPILOGUES = {
    "plain": "",
    "bias": "x + bias[o]",
    "relu": "relu(x + bias[o])",
    "residual": "relu(x + bias[o] + residual[{}])",
}
"""Epilogues of convolutions; a residual is read where the output is written."""
AXES = {"NHWC": "n, p, q, o", "NCHW": "n, o, p, q"}
"""The axes of the output, by layout."""


@dataclass(frozen=True)
class Layer:
    """``channels`` of images of ``size`` squared to ``outputs`` channels, by windows of ``window``
    squared at every ``stride``, then one of :data:`EPILOGUES`."""

    channels: int
    size: int
    outputs: int
    window: int
    stride: int
    fused: str
    batch: int = 1
    layout: str = "NHWC"
    dtype: str = "float16"

    @property
    def name(self) -> str:
        """A name such as ``32 x 64 3x3 at 56 to 64, relu``; another layout or dtype comes last."""
        step = f"/{self.stride}" if self.stride > 1 else ""
        window = f"{self.channels} {self.window}x{self.window}{step} at {self.size}"
        usual = (self.layout, self.dtype) == ("NHWC", "float16")
        kind = "" if usual else f", {self.layout} {self.dtype}"
        return f"{self.batch} x {window} to {self.outputs}, {self.fused}{kind}"

    @cached_property
    def workload(self) -> Workload:
        """The workload: a product of matrices if the window is 1x1 and the stride 1."""
        return workload(
            "conv2d",
            n=self.batch, c=self.channels, h=self.size, w=self.size, o=self.outputs,
            r=self.window, s=self.window, stride=self.stride, padding=self.window // 2,
            layout=self.layout, dtype=self.dtype,
            epilogue=EPILOGUES[self.fused].format(AXES[self.layout]),
        )  # fmt: skip

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the arrays as they lie in memory."""
        to = (self.size - 1) // self.stride + 1
        shapes = {"image": self._shape(self.batch, self.channels, self.size)}
        shapes |= {"filter": self._shape(self.outputs, self.channels, self.window)}
        if self.fused != "plain":
            shapes |= {"bias": (self.outputs,)}
        if self.fused == "residual":
            shapes |= {"residual": self._shape(self.batch, self.outputs, to)}
        return shapes

    def _shape(self, number: int, channels: int, size: int) -> tuple[int, ...]:
        if self.layout == "NCHW":
            return number, channels, size, size
        return number, size, size, channels

    def turned(self, array: Any) -> Any:
        """Return an array as torch indexes it, channels first; lying as it does."""
        return array if self.layout == "NCHW" else array.permute(0, 3, 1, 2)


LAYERS = (
    (64, 56, 64, 3, 1, "relu"), (128, 28, 128, 3, 1, "relu"), (256, 14, 256, 3, 1, "relu"),
    (512, 7, 512, 3, 1, "relu"), (128, 56, 128, 3, 2, "relu"), (256, 28, 256, 3, 2, "relu"),
    (512, 14, 512, 3, 2, "relu"), (3, 224, 64, 7, 2, "relu"), (256, 56, 512, 1, 2, "bias"),
    (512, 28, 1024, 1, 2, "bias"), (1024, 14, 2048, 1, 2, "bias"), (64, 56, 256, 1, 1, "residual"),
    (128, 28, 512, 1, 1, "residual"), (256, 14, 1024, 1, 1, "residual"),
    (512, 7, 2048, 1, 1, "residual"), (64, 56, 64, 1, 1, "relu"), (256, 56, 64, 1, 1, "relu"),
    (256, 56, 128, 1, 1, "relu"), (512, 28, 128, 1, 1, "relu"), (512, 28, 256, 1, 1, "relu"),
    (1024, 14, 256, 1, 1, "relu"), (1024, 14, 512, 1, 1, "relu"), (2048, 7, 512, 1, 1, "relu"),
)  # fmt: skip
"""The distinct ones of ResNet-50 (He et al. 2015, table 1, with the stride in the 3x3)."""

SLACK = 1e-3
"""Allowed error of sums of thousands of terms in float32, as a share of the outputs' mean."""

LEAD = 48
"""Flushes before a round: several calls of Python each, on a host that compiles."""

SETTLING = 4.0
"""Seconds that a layer takes beside its search."""
HEAT = 0.2
"""Seconds of work before a layer is timed; its search has warmed the device."""

VERIFIED = (
    {"n": 2, "c": 64, "h": 19, "w": 17, "o": 40, "r": 3, "s": 3, "padding": 1, "stride": 2},
    {"n": 1, "c": 32, "h": 14, "w": 13, "o": 72, "r": 5, "s": 3, "padding": 2, "dilation": 2},
    {"n": 3, "c": 64, "h": 9, "w": 9, "o": 64, "r": 5, "s": 3, "padding": 1, "groups": 2},
    {"n": 2, "c": 16, "h": 13, "w": 11, "o": 40, "r": 3, "s": 3, "padding": 1, "layout": "NCHW"},
)


def main() -> None:
    options = _options()
    from experiments.operators.exploring.verifying import verify
    from tilewright.spaces.target import detect_target

    end, path = time.monotonic() + 60 * options.minutes, options.out
    target = detect_target("cuda")
    results = resume(path, "experiments.operators.convolutions", {"target": target.to_json()})
    given = {"layout": "NHWC", "dtype": "float16", "epilogue": "relu(x + bias[o])"}
    verified = [workload("conv2d", **(given | parameters)) for parameters in VERIFIED]
    verify(results, verified, target, options.verify)
    last = end - options.seconds - SETTLING
    for layer in remaining(_layers(options), results, options.only, last):
        row = measure(layer, target, options.seconds, options.known)
        results["cases"][layer.name] = row
        write(path, results, table)
        print(line(layer.name, row), flush=True)


def _layers(options: argparse.Namespace) -> list[Layer]:
    """Return the layers to measure. Plain layers that differ in their epilogues only are one."""
    shapes = [(*shape[:5], "plain") if options.plain else shape for shape in LAYERS]
    return [
        Layer(*shape, batch, options.layout, options.dtype)
        for shape in dict.fromkeys(shapes)
        for batch in options.batch
    ]


def measure(layer: Layer, target: Any, seconds: float, known: Sequence[Path]) -> dict[str, Any]:
    """Return the layer's row of the results, after ``seconds`` of search that begin with what is
    ``known``."""
    import torch

    from experiments.operators.exploring.finals import compare, rates
    from experiments.rivals import compiled, gpu_copy, usable

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False  # ours do not round float32 either
    explorer = explorer_of(layer, target)
    explorer.explore(seconds, known=known_schedules(known, layer.name, explorer.space))
    made, tensors = layer.workload, dict(zip(layer.shapes, explorer.tensors.values(), strict=True))
    image, filters, *beside = tensors.values()
    eager = partial(fused, layer, image, filters, *beside)
    calls, unavailable = usable(
        {
            "cudnn alone": lambda: partial(convolved, layer, image, filters),
            "eager": lambda: eager,
            "compiled": lambda: compiled(lambda **t: fused(layer, *t.values()), tensors),
        }
    )
    calls[COPY] = gpu_copy(made.least_bytes)
    row: dict[str, Any] = {"operator": "conv2d"}
    row |= {"unavailable": unavailable} if unavailable else {}
    row |= compare(explorer, calls, rounds=30, seconds=1.0, lead=LEAD, heat=HEAT)
    return row | {"tflops": rates(row, made.flops)}


def explorer_of(layer: Layer, target: Any) -> Any:
    """Make the explorer of the layer's kernels, with random inputs. Exact outputs are torch's."""
    from experiments.operators.exploring.explore import Explorer
    from tilewright.scheduler.machine import roofline
    from tilewright.spaces.registry import space_for

    made, tensors = layer.workload, _tensors(layer)
    given = {a.name: t for a, t in zip(made.inputs, tensors.values(), strict=True)}
    exact = fused(layer, *(t.double() for t in tensors.values()))
    lying = exact if layer.layout == "NCHW" else exact.permute(0, 2, 3, 1)
    exact = lying.contiguous().reshape(made.outputs[0].shape)
    return Explorer(space_for(made, target), given, [exact], roofline(target), SLACK)


def _tensors(layer: Layer) -> dict[str, Any]:
    """Random arrays, uniform in [-1, 1), as they lie in memory."""
    import torch

    generator = torch.Generator("cuda").manual_seed(0)
    return {
        name: torch.rand(shape, device="cuda", generator=generator)
        .mul_(2)
        .sub_(1)
        .to(getattr(torch, layer.dtype))
        for name, shape in layer.shapes.items()
    }


def convolved(layer: Layer, image: Any, filters: Any, bias: Any = None) -> Any:
    """Return the convolution alone, perhaps with its bias, of images and to images as they lie."""
    import torch

    turned = layer.turned(image), layer.turned(filters)
    return torch.nn.functional.conv2d(*turned, bias, stride=layer.stride, padding=layer.window // 2)


def fused(layer: Layer, image: Any, filters: Any, *beside: Any) -> Any:
    """Return the convolution and what follows it: a bias, a residual."""
    import torch

    found = convolved(layer, image, filters, *beside[:1])
    for residual in beside[1:]:
        found = found + layer.turned(residual)
    return torch.relu(found) if layer.fused in ("relu", "residual") else found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.operators.convolutions")
    parser.add_argument("--batch", type=int, nargs="+", default=[32, 1])
    parser.add_argument("--seconds", type=float, default=4.0, help="of search a layer")
    parser.add_argument("--minutes", type=float, default=3.0, help="for all of it")
    parser.add_argument("--layout", choices=AXES, default="NHWC")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), default="float16")
    parser.add_argument("--plain", action="store_true", help="nothing follows the convolutions")
    parser.add_argument("--verify", type=int, default=0, help="schedules of each of a few problems")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="layers' names")
    parser.add_argument("--out", type=Path, default=Path("convolutions.json"))
    add_known(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
