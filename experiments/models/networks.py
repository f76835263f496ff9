"""The models of Hidet's table (Ding et al., ASPLOS 2023, figure 13) as the operators of one pass.

Normalisations of images are folded into the filters before them, as for inference. Concatenations,
look-ups of embeddings and reshapes are left out, for us and for the rivals. Images have channels
last. Sequences have 128 tokens, as there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from experiments.models.images import Convolution, Means, Pooling, windows
from experiments.models.products import Product, named

TOKENS = 128
HIDDEN, HEADS, HEAD, INNER, LAYERS = 768, 12, 64, 3072, 12
"""Sizes that BERT-base and GPT-2's smallest model share."""

Layers = Iterator[Any]


class Images:
    """Makes the layers of a network of images of ``size`` squared, one after the other."""

    def __init__(self, batch: int, dtype: str, size: int) -> None:
        self.batch, self.dtype, self.size, self.channels = batch, dtype, size, 3

    def conv(
        self,
        outputs: int,
        window: int | tuple[int, int] = 1,
        stride: int = 1,
        *,
        activation: str = "relu",
        channels: int = 0,
        same: bool = True,
        residual: bool = False,
        depthwise: bool = False,
    ) -> Convolution:
        """Return a convolution of what the last layer gave, or of as many ``channels``; ``same``:
        padded so that a stride of 1 keeps the size."""
        taps = (window, window) if isinstance(window, int) else window
        padding = tuple(tap // 2 if same else 0 for tap in taps)
        made = Convolution(
            self.batch, channels or self.channels, self.size, outputs, taps, stride,
            (padding[0], padding[1]), activation, self.dtype, residual,
            outputs if depthwise else 1,
        )  # fmt: skip
        self.size, self.channels = made.to[0], outputs
        return made

    def pool(self, kind: str, window: int, stride: int, padding: int) -> Pooling:
        """Return the windows of what the last layer gave."""
        made = Pooling(
            self.batch, self.channels, self.size, window, stride, padding, kind, self.dtype
        )
        self.size = windows(self.size, window, stride, padding)
        return made

    def classes(self, count: int = 1000) -> Layers:
        """Yield the mean of each channel, and the last layer."""
        yield Means(self.batch, self.channels, self.size, self.dtype)
        yield Product(self.batch, count, self.channels, "bias", self.dtype, "col")


def resnet_50(batch: int, dtype: str) -> Layers:
    """He et al. 2015, table 1, with the stride in the 3x3."""
    net = Images(batch, dtype, 224)
    yield net.conv(64, 7, 2)
    yield net.pool("max", 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            first, stride = block == 0, 2 if stage and block == 0 else 1
            size, channels = net.size, net.channels
            yield net.conv(width)
            yield net.conv(width, 3, stride)
            yield net.conv(4 * width, residual=True)
            if first:
                net.size = size
                yield net.conv(4 * width, 1, stride, channels=channels, activation="")
    yield from net.classes()


def inception_v3(batch: int, dtype: str) -> Layers:
    """Szegedy et al. 2015, table 1 and figures 5 to 7, as torchvision has it, without the
    auxiliary classifier."""
    net = Images(batch, dtype, 299)
    yield net.conv(32, 3, 2, same=False)
    yield net.conv(32, 3, same=False)
    yield net.conv(64, 3)
    yield net.pool("max", 3, 2, 0)
    yield net.conv(80)
    yield net.conv(192, 3, same=False)
    yield net.pool("max", 3, 2, 0)
    for pooled in (32, 64, 64):
        chains = ([(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)])
        yield from _branches(net, *chains, pooled=pooled)
    yield from _reduced(net, [(384, 3)], [(64, 1), (96, 3), (96, 3)])
    for c in (128, 160, 160, 192):
        once = [(c, 1), (c, (1, 7)), (192, (7, 1))]
        twice = [(c, 1), (c, (7, 1)), (c, (1, 7)), (c, (7, 1)), (192, (1, 7))]
        yield from _branches(net, [(192, 1)], once, twice, pooled=192)
    yield from _reduced(
        net, [(192, 1), (320, 3)], [(192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3)]
    )
    for _ in range(2):
        forked = ((384, (1, 3)), (384, (3, 1)))
        yield from _branches(
            net, [(320, 1)], [(384, 1)], [(448, 1), (384, 3)], pooled=192, forked=forked
        )
    yield from net.classes()


def _branches(net: Images, *chains: Any, pooled: int, forked: Any = ()) -> Layers:
    """Yield the chains of convolutions side by side, and one after a mean; all but the first of the
    chains end in both of ``forked``."""
    channels, total = net.channels, 0
    for number, chain in enumerate(chains):
        net.channels = channels
        for outputs, window in chain:
            yield net.conv(outputs, window)
        ends = forked if number else ()
        for outputs, window in ends:
            yield net.conv(outputs, window, channels=chain[-1][0])
        total += sum(outputs for outputs, _ in ends) or chain[-1][0]
    net.channels = channels
    yield net.pool("avg", 3, 1, 1)
    yield net.conv(pooled)
    net.channels = total + pooled


def _reduced(net: Images, *chains: Any) -> Layers:
    """Chains side by side, the last windows of which are at every second place, and a pooling."""
    channels, size, total = net.channels, net.size, net.channels
    for chain in chains:
        net.channels, net.size = channels, size
        for outputs, window in chain[:-1]:
            yield net.conv(outputs, window)
        yield net.conv(*chain[-1], 2, same=False)
        total += chain[-1][0]
    net.channels, net.size = channels, size
    yield net.pool("max", 3, 2, 0)
    net.channels = total


EXPANSIONS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip
"""MobileNetV2's blocks: expansion, outputs, repetitions, stride."""


def mobilenet_v2(batch: int, dtype: str) -> Layers:
    """Sandler et al. 2018, table 2."""
    net = Images(batch, dtype, 224)
    yield net.conv(32, 3, 2, activation="relu6")
    for expansion, outputs, repetitions, stride in EXPANSIONS:
        for number in range(repetitions):
            channels, step = net.channels, 1 if number else stride
            if expansion > 1:
                yield net.conv(expansion * channels, activation="relu6")
            yield net.conv(net.channels, 3, step, activation="relu6", depthwise=True)
            yield net.conv(outputs, activation="", residual=number > 0)
    yield net.conv(1280, activation="relu6")
    yield from net.classes()


def bert_base(batch: int, dtype: str, whole: bool = False) -> Layers:
    """Devlin et al. 2019, section 3: encoder and pooler. ``whole``: attention is one operator."""
    product = partial(Product, batch * TOKENS, dtype=dtype, order="col")
    norm = named("layernorm", 2 * HIDDEN, r=batch * TOKENS, c=HIDDEN, dtype=dtype)
    yield norm
    for _ in range(LAYERS):
        for _ in range(3):
            yield product(HIDDEN, HIDDEN, "bias")
        yield from _attention(batch, dtype, whole)
        yield product(HIDDEN, HIDDEN, "residual")
        yield norm
        yield product(INNER, HIDDEN, "gelu")
        yield product(HIDDEN, INNER, "residual")
        yield norm
    yield Product(batch, HIDDEN, HIDDEN, "tanh", dtype, "col")


def gpt_2(batch: int, dtype: str, whole: bool = False) -> Layers:
    """Radford et al. 2019, table 2, reading a prompt; only its last token asks for the output
    layer. In three parts, attention computes what its mask hides, too."""
    product = partial(Product, batch * TOKENS, dtype=dtype)
    norm = named("layernorm", 2 * HIDDEN, r=batch * TOKENS, c=HIDDEN, dtype=dtype)
    for _ in range(LAYERS):
        yield norm
        yield product(3 * HIDDEN, HIDDEN, "bias")
        yield from _attention(batch, dtype, whole, mask="causal")
        yield product(HIDDEN, HIDDEN, "residual")
        yield norm
        yield product(INNER, HIDDEN, "gelu_tanh")
        yield product(HIDDEN, INNER, "residual")
    yield norm
    yield Product(batch, 50257, HIDDEN, "", dtype, "col")


def _attention(batch: int, dtype: str, whole: bool, **mask: str) -> Layers:
    """Add attention as one operator, or as scores, their softmax and contexts."""
    heads = batch * HEADS
    if whole:
        sizes = {"b": batch, "h": HEADS, "i": TOKENS, "j": TOKENS, "d": HEAD}
        yield named("attention", **sizes, **mask, dtype=dtype)
        return
    yield Product(TOKENS, TOKENS, HEAD, "scale", dtype, "col", heads)
    yield named("softmax", r=heads * TOKENS, c=TOKENS, dtype=dtype)
    yield Product(TOKENS, HEAD, TOKENS, "", dtype, batch=heads)


MODELS: Mapping[str, Callable[..., Layers]] = {
    "resnet-50": resnet_50,
    "inception-v3": inception_v3,
    "mobilenet-v2": mobilenet_v2,
    "bert-base": bert_base,
    "gpt-2": gpt_2,
}
TRANSFORMERS = ("bert-base", "gpt-2")


def distinct(model: str, batch: int, dtype: str, whole: bool = False) -> Counter[Any]:
    """Return the operators of a model and how often each occurs; ``whole`` says how transformers
    attend."""
    options = {"whole": whole} if model in TRANSFORMERS else {}
    return Counter(MODELS[model](batch, dtype, **options))
