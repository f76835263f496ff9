"""The comparisons that the page and the picture show: which file holds each, and against whom.

Each stands on its newest full run. Comparisons with ``again`` measured a few of these cases later.
"""

from __future__ import annotations

from dataclasses import dataclass

CPU, GPU = "CPU", "H200"
TORCH = "eager and compiled torch"
CONVOLUTIONS = "torch, channels last and first, compiled"
FLASH = "cuDNN, flash"


@dataclass(frozen=True)
class Entry:
    """A comparison of one ``kind`` on a ``device``: cases of ``files`` whose names match ``only``.

    ``rivals`` are all contenders that compute the same unless named; of a case that several files
    have, the last counts. ``times`` is the field of a row that is compared. ``numerics`` is the
    mode of our kernels, if the run had one.
    """

    device: str
    kind: str
    what: str
    over: str
    files: tuple[str, ...]
    only: str = ""
    rivals: tuple[str, ...] = ()
    times: str = "median_s"
    again: bool = False
    drawn: bool = True
    numerics: str = ""


def _entry(device: str, kind: str, what: str, over: str, *files: str, **rest: object) -> Entry:
    return Entry(device, kind, what, over, files, **rest)  # type: ignore[arg-type]


def _operators(*names: str) -> tuple[str, ...]:
    return tuple(f"operators/results/{name}.json" for name in names)


def _cpu() -> list[Entry]:
    libraries = "OpenBLAS, torch, oneDNN"
    zen4, zen5 = "cpu_matmul/results/results.json", "cpu_matmul/results/zen5.json"
    least = {"times": "best_s"}
    aside = {"drawn": False}
    return [
        _entry(CPU, "Products", "products", libraries, zen4, only="float32 t1$", **least),
        _entry(CPU, "Products", "products, gelu and bias", f"{libraries}, compiled torch", zen4,
               only=r"float32\+gelu t1$", **least),
        _entry(CPU, "Products", "products, bfloat16", libraries, zen4, only="bfloat16 t1$",
               **least),
        _entry(CPU, "Products", "products", libraries, zen5, only="float32 t1$", **least),
        _entry(CPU, "Products", "products, two threads", libraries, zen5, only="float32 t2$",
               **least, **aside),
        _entry(CPU, "Products", "products, gelu and bias, two threads",
               f"{libraries}, compiled torch", zen5, only=r"float32\+gelu t2$", **least, **aside),
        _entry(CPU, "Products", "one row, one and two threads", libraries,
               "cpu_matmul/results/one_row.json", **least, **aside),
        _entry(CPU, "Batches of products", "batches, one and two threads", "torch, NumPy",
               *_operators("batched_cpu")),
        _entry(CPU, "Batches of products", "batches, one and two threads", "torch, NumPy",
               *_operators("batched_xeon")),
        _entry(CPU, "Grouped products", "8 and 64 experts", TORCH, *_operators("grouped_xeon_1")),
        _entry(CPU, "Row reductions", "softmax, norms, logsumexp, cross-entropy", TORCH,
               *_operators("rows_xeon_1")),
        _entry(CPU, "Row reductions", "softmax, norms, logsumexp, cross-entropy, two threads",
               TORCH, *_operators("rows_xeon_2"), **aside),
        _entry(CPU, "Row reductions", "softmax, norms, logsumexp, cross-entropy", TORCH,
               *_operators("rows_cpu_1")),
        _entry(CPU, "Convolutions", "ResNet-50 and MobileNetV2", CONVOLUTIONS,
               *_operators("convolutions_xeon_1")),
        _entry(CPU, "Convolutions", "ResNet-50 and MobileNetV2, two threads", CONVOLUTIONS,
               *_operators("convolutions_xeon_2"), **aside),
        _entry(CPU, "Convolutions", "ResNet-50 and MobileNetV2", CONVOLUTIONS,
               *_operators("convolutions_cpu_1", "convolutions_cpu_1_winograd")),
        _entry(CPU, "Convolutions", "ResNet-50 and MobileNetV2", CONVOLUTIONS,
               *_operators("convolutions_modes_1"), numerics="strict"),
        _entry(CPU, "Convolutions", "ResNet-50 and MobileNetV2", CONVOLUTIONS,
               *_operators("convolutions_modes_1"), numerics="fast", **aside),
        _entry(CPU, "Depthwise, pooling, columns", "depthwise, pooling, sums of columns",
               CONVOLUTIONS, *_operators("kept_xeon_1")),
        _entry(CPU, "Depthwise, pooling, columns", "depthwise alone", CONVOLUTIONS,
               *_operators("kept_xeon_1"), only="^depthwise", **aside),
        _entry(CPU, "Attention", "prefill and one query",
               "torch's own operator, eager, compiled",
               *_operators("attention_xeon_1", "attention_xeon_1_longer",
                           "attention_xeon_1_decode")),
        _entry(CPU, "Maps", "transpositions, rope, swiglu, embedding", TORCH,
               *_operators("maps_xeon_1")),
        _entry(CPU, "Networks", "batch 1", "the fastest at each operator",
               "models/results/xeon_1.json"),
        _entry(CPU, "Networks", "batch 8", "the fastest at each operator",
               "models/results/xeon_8.json"),
        _entry(CPU, "Networks", "batch 8, pooling", "the fastest at each operator",
               "models/results/xeon_8_pools.json", again=True),
    ]  # fmt: skip


def _gpu() -> list[Entry]:
    cublas = "gpu_matmul/results/"
    grouped = "torch's grouped product, cuBLAS by groups"
    lengths, flash3 = "attention/results/h200_lengths.json", "attention/results/flash3_h200"
    again = {"again": True}
    alone = {"rivals": ("cudnn alone",), "drawn": False}
    fused = {"rivals": ("eager", "compiled")}
    return [
        _entry(GPU, "Products", "layers of language models, bfloat16", "cuBLAS",
               f"{cublas}layers_again.json"),
        _entry(GPU, "Products", "one layer, 90 s", "cuBLAS", f"{cublas}layer_90.json", **again),
        _entry(GPU, "Products", "two layers, 28 s", "cuBLAS", f"{cublas}layer_28.json", **again),
        _entry(GPU, "Products", "two layers, 25 s", "cuBLAS", f"{cublas}layer_25.json", **again),
        _entry(GPU, "Products", "float32", "cuBLAS", f"{cublas}float32.json", only="float32$"),
        _entry(GPU, "Products", "1 to 8 rows", "cuBLAS, compiled torch", f"{cublas}few_rows.json"),
        _entry(GPU, "Products", "1 to 8 rows, another run", "cuBLAS",
               f"{cublas}few_rows_reading.json", drawn=False),
        _entry(GPU, "Products", "three with few rows", "cuBLAS, compiled torch",
               f"{cublas}few_rows_three.json", **again),
        _entry(GPU, "Products", "seven products", "cuBLAS, compiled torch",
               f"{cublas}seven_cases.json", **again),
        _entry(GPU, "Products", "two products", "cuBLAS, compiled torch",
               f"{cublas}two_cases.json", **again),
        _entry(GPU, "Batches of products", "batches", "cuBLAS",
               *_operators("batched_h200_streams")),
        _entry(GPU, "Batches of products", "batches", "cuBLAS", *_operators("batched_h200_last"),
               **again),
        _entry(GPU, "Grouped products", "8 and 64 experts", grouped, *_operators("grouped_h200")),
        _entry(GPU, "Grouped products", "many rows", grouped, *_operators("grouped_h200_again"),
               **again),
        _entry(GPU, "Grouped products", "many rows, longer", grouped,
               *_operators("grouped_h200_longer"), **again),
        _entry(GPU, "Grouped products", "512 and 64 rows", grouped,
               *_operators("grouped_h200_streams", "grouped_h200_64", "grouped_h200_zipf_30"),
               **again),
        _entry(GPU, "Gated and normalised products", "gated, and of normalised rows", TORCH,
               *_operators("several_h200", "several_h200_rmsnorm")),
        _entry(GPU, "Row reductions", "bfloat16 and float32", TORCH, *_operators("rows_h200")),
        _entry(GPU, "Row reductions", "long rows", TORCH,
               *_operators("rows_long_h200_again"), **again),
        _entry(GPU, "Row reductions", "64 long rows", TORCH, *_operators("rows_h200_few"), **again),
        _entry(GPU, "Row reductions", "64 rows of 262,144", TORCH,
               *_operators("rows_h200_64x262144"), **again),
        _entry(GPU, "Maps", "transpositions, rope, swiglu, embedding", TORCH,
               *_operators("maps_h200")),
        _entry(GPU, "Maps", "odd transposition", TORCH, *_operators("maps_odd_h200"), **again),
        _entry(GPU, "Convolutions", "nothing fused, float16, batch 32", f"cuDNN, {TORCH}",
               *_operators("convolutions_h200_plain_32")),
        _entry(GPU, "Convolutions", "nothing fused, float16, batch 1", f"cuDNN, {TORCH}",
               *_operators("convolutions_h200_plain_1")),
        _entry(GPU, "Convolutions", "with what follows, float16, batch 32", TORCH,
               *_operators("convolutions_h200_32"), **fused),
        _entry(GPU, "Convolutions", "with what follows, float16, batch 1", TORCH,
               *_operators("convolutions_h200_1"), **fused),
        _entry(GPU, "Convolutions", "channels first, float16, batch 32", TORCH,
               *_operators("convolutions_h200_nchw"), **fused),
        _entry(GPU, "Convolutions", "batch 32, cuDNN without what follows", "cuDNN alone",
               *_operators("convolutions_h200_32"), **alone),
        _entry(GPU, "Convolutions", "channels first, cuDNN without what follows", "cuDNN alone",
               *_operators("convolutions_h200_nchw"), **alone),
        _entry(GPU, "Convolutions", "a residual, cuDNN without it", "cuDNN alone",
               *_operators("convolutions_h200_32_residual"), **alone),
        _entry(GPU, "Depthwise, pooling, columns", "depthwise, pooling, sums of columns",
               CONVOLUTIONS, *_operators("kept_h200")),
        _entry(GPU, "Depthwise, pooling, columns", "sums of columns", TORCH,
               *_operators("columns_h200"), **again),
        _entry(GPU, "Routing and losses", "routing of tokens to 64 and 128 experts", TORCH,
               *_operators("routing_h200")),
        _entry(GPU, "Routing and losses", "routing to 128,256 words", TORCH,
               *_operators("routing_h200_shared")),
        _entry(GPU, "Routing and losses", "a linear layer with cross-entropy", TORCH,
               *_operators("losses_h200", "losses_h200_shared")),
        _entry(GPU, "Attention", "all forms, 128 to 65,536 keys", f"{FLASH}, FlexAttention",
               lengths, rivals=("cudnn", "flash", "flex")),
        _entry(GPU, "Attention", "prefill and decode", FLASH, lengths, rivals=("cudnn", "flash"),
               drawn=False),
        _entry(GPU, "Attention", "all forms", "compiled FlexAttention", lengths, rivals=("flex",),
               drawn=False),
        _entry(GPU, "Attention, FlashAttention-3", "prefill and decode", "FlashAttention-3",
               f"{flash3}.json", f"{flash3}_prefill.json", rivals=("flash3",)),
        _entry(GPU, "Attention, FlashAttention-3", "causal prefills, a minute of search",
               "FlashAttention-3", f"{flash3}_minute.json", rivals=("flash3",), **again),
        _entry(GPU, "Attention, FlashAttention-3", "causal prefills of 8,192", "FlashAttention-3",
               f"{flash3}_8192.json", rivals=("flash3",), **again),
        _entry(GPU, "Networks", "float16, batch 1", "the fastest at each operator",
               "models/results/models_h200_1.json"),
        _entry(GPU, "Networks", "float16, batch 8", "the fastest at each operator",
               "models/results/models_h200_8.json"),
        _entry(GPU, "Networks", "batch 8, one product", "the fastest at each operator",
               "models/results/gpt_2_h200_8_product.json", again=True),
    ]  # fmt: skip


ENTRIES = (*_cpu(), *_gpu())
