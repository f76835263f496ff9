"""The comparisons that the page and the picture show: which file holds each, and against whom.

Each stands on its newest full run. Comparisons with ``again`` measured a few of these cases later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

CPU, GPU = "CPU", "H200"
TORCH = "eager and compiled torch"
CONVOLUTIONS = "torch, channels last and first, compiled"
FLASH = "cuDNN, flash"
GROUPED = "torch's grouped product, cuBLAS by groups"
LIBRARIES = "OpenBLAS, torch, oneDNN"
FASTEST = "the fastest at each operator"

ZEN4, ZEN5 = "cpu_matmul/results/results.json", "cpu_matmul/results/zen5.json"
LENGTHS = "attention/results/h200_lengths.json"

BEST_TIME = {"times": "best_s"}
FUSED = {"rivals": ("eager", "compiled")}


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


def _cpu_products() -> list[Entry]:
    entry = partial(_entry, CPU, "Products")
    return [
        entry("products", LIBRARIES, ZEN4, only="float32 t1$", **BEST_TIME),
        entry(
            "products, gelu and bias",
            f"{LIBRARIES}, compiled torch",
            ZEN4,
            only=r"float32\+gelu t1$",
            **BEST_TIME,
        ),
        entry("products, bfloat16", LIBRARIES, ZEN4, only="bfloat16 t1$", **BEST_TIME),
        entry("products", LIBRARIES, ZEN5, only="float32 t1$", **BEST_TIME),
        entry(
            "products, two threads", LIBRARIES, ZEN5, only="float32 t2$", **BEST_TIME, drawn=False
        ),
        entry(
            "products, gelu and bias, two threads",
            f"{LIBRARIES}, compiled torch",
            ZEN5,
            only=r"float32\+gelu t2$",
            **BEST_TIME,
            drawn=False,
        ),
        entry(
            "one row, one and two threads",
            LIBRARIES,
            "cpu_matmul/results/one_row.json",
            **BEST_TIME,
            drawn=False,
        ),
    ]


def _cpu_batches() -> list[Entry]:
    entry = partial(_entry, CPU, "Batches of products")
    return [
        entry("batches, one and two threads", "torch, NumPy", *_operators("batched_cpu")),
        entry("batches, one and two threads", "torch, NumPy", *_operators("batched_xeon")),
    ]


def _cpu_grouped_products() -> list[Entry]:
    entry = partial(_entry, CPU, "Grouped products")
    return [
        entry("8 and 64 experts", TORCH, *_operators("grouped_xeon_1")),
    ]


def _cpu_rows() -> list[Entry]:
    entry = partial(_entry, CPU, "Row reductions")
    return [
        entry("softmax, norms, logsumexp, cross-entropy", TORCH, *_operators("rows_xeon_1")),
        entry(
            "softmax, norms, logsumexp, cross-entropy, two threads",
            TORCH,
            *_operators("rows_xeon_2"),
            drawn=False,
        ),
        entry("softmax, norms, logsumexp, cross-entropy", TORCH, *_operators("rows_cpu_1")),
    ]


def _cpu_convolutions() -> list[Entry]:
    entry = partial(_entry, CPU, "Convolutions")
    return [
        entry("ResNet-50 and MobileNetV2", CONVOLUTIONS, *_operators("convolutions_xeon_1")),
        entry(
            "ResNet-50 and MobileNetV2, two threads",
            CONVOLUTIONS,
            *_operators("convolutions_xeon_2"),
            drawn=False,
        ),
        entry(
            "ResNet-50 and MobileNetV2",
            CONVOLUTIONS,
            *_operators("convolutions_cpu_1", "convolutions_cpu_1_winograd"),
        ),
        entry(
            "ResNet-50 and MobileNetV2",
            CONVOLUTIONS,
            *_operators("convolutions_modes_1"),
            numerics="strict",
        ),
        entry(
            "ResNet-50 and MobileNetV2",
            CONVOLUTIONS,
            *_operators("convolutions_modes_1"),
            numerics="fast",
            drawn=False,
        ),
    ]


def _cpu_depthwise() -> list[Entry]:
    entry = partial(_entry, CPU, "Depthwise, pooling, columns")
    return [
        entry("depthwise, pooling, sums of columns", CONVOLUTIONS, *_operators("kept_xeon_1")),
        entry(
            "depthwise alone",
            CONVOLUTIONS,
            *_operators("kept_xeon_1"),
            only="^depthwise",
            drawn=False,
        ),
    ]


def _cpu_attention() -> list[Entry]:
    entry = partial(_entry, CPU, "Attention")
    return [
        entry(
            "prefill and one query",
            "torch's own operator, eager, compiled",
            *_operators("attention_xeon_1", "attention_xeon_1_longer", "attention_xeon_1_decode"),
        ),
    ]


def _cpu_maps() -> list[Entry]:
    entry = partial(_entry, CPU, "Maps")
    return [
        entry("transpositions, rope, swiglu, embedding", TORCH, *_operators("maps_xeon_1")),
    ]


def _cpu_networks() -> list[Entry]:
    entry = partial(_entry, CPU, "Networks")
    return [
        entry("batch 1", FASTEST, "models/results/xeon_1.json"),
        entry("batch 8", FASTEST, "models/results/xeon_8.json"),
        entry("batch 8, pooling", FASTEST, "models/results/xeon_8_pools.json", again=True),
    ]


def _gpu_products() -> list[Entry]:
    entry = partial(_entry, GPU, "Products")
    return [
        entry(
            "layers of language models, bfloat16", "cuBLAS", "gpu_matmul/results/layers_again.json"
        ),
        entry("one layer, 90 s", "cuBLAS", "gpu_matmul/results/layer_90.json", again=True),
        entry("two layers, 28 s", "cuBLAS", "gpu_matmul/results/layer_28.json", again=True),
        entry("two layers, 25 s", "cuBLAS", "gpu_matmul/results/layer_25.json", again=True),
        entry("float32", "cuBLAS", "gpu_matmul/results/float32.json", only="float32$"),
        entry("1 to 8 rows", "cuBLAS, compiled torch", "gpu_matmul/results/few_rows.json"),
        entry(
            "1 to 8 rows, another run",
            "cuBLAS",
            "gpu_matmul/results/few_rows_reading.json",
            drawn=False,
        ),
        entry(
            "three with few rows",
            "cuBLAS, compiled torch",
            "gpu_matmul/results/few_rows_three.json",
            again=True,
        ),
        entry(
            "seven products",
            "cuBLAS, compiled torch",
            "gpu_matmul/results/seven_cases.json",
            again=True,
        ),
        entry(
            "two products",
            "cuBLAS, compiled torch",
            "gpu_matmul/results/two_cases.json",
            again=True,
        ),
    ]


def _gpu_batches() -> list[Entry]:
    entry = partial(_entry, GPU, "Batches of products")
    return [
        entry("batches", "cuBLAS", *_operators("batched_h200_streams")),
        entry("batches", "cuBLAS", *_operators("batched_h200_last"), again=True),
    ]


def _gpu_grouped_products() -> list[Entry]:
    entry = partial(_entry, GPU, "Grouped products")
    return [
        entry("8 and 64 experts", GROUPED, *_operators("grouped_h200")),
        entry("many rows", GROUPED, *_operators("grouped_h200_again"), again=True),
        entry("many rows, longer", GROUPED, *_operators("grouped_h200_longer"), again=True),
        entry(
            "512 and 64 rows",
            GROUPED,
            *_operators("grouped_h200_streams", "grouped_h200_64", "grouped_h200_zipf_30"),
            again=True,
        ),
    ]


def _gpu_gated_products() -> list[Entry]:
    entry = partial(_entry, GPU, "Gated and normalised products")
    return [
        entry(
            "gated, and of normalised rows",
            TORCH,
            *_operators("several_h200", "several_h200_rmsnorm"),
        ),
    ]


def _gpu_rows() -> list[Entry]:
    entry = partial(_entry, GPU, "Row reductions")
    return [
        entry("bfloat16 and float32", TORCH, *_operators("rows_h200")),
        entry("long rows", TORCH, *_operators("rows_long_h200_again"), again=True),
        entry("64 long rows", TORCH, *_operators("rows_h200_few"), again=True),
        entry("64 rows of 262,144", TORCH, *_operators("rows_h200_64x262144"), again=True),
    ]


def _gpu_maps() -> list[Entry]:
    entry = partial(_entry, GPU, "Maps")
    return [
        entry("transpositions, rope, swiglu, embedding", TORCH, *_operators("maps_h200")),
        entry("odd transposition", TORCH, *_operators("maps_odd_h200"), again=True),
    ]


def _gpu_convolutions() -> list[Entry]:
    entry = partial(_entry, GPU, "Convolutions")
    return [
        entry(
            "nothing fused, float16, batch 32",
            f"cuDNN, {TORCH}",
            *_operators("convolutions_h200_plain_32"),
        ),
        entry(
            "nothing fused, float16, batch 1",
            f"cuDNN, {TORCH}",
            *_operators("convolutions_h200_plain_1"),
        ),
        entry(
            "with what follows, float16, batch 32",
            TORCH,
            *_operators("convolutions_h200_32"),
            **FUSED,
        ),
        entry(
            "with what follows, float16, batch 1",
            TORCH,
            *_operators("convolutions_h200_1"),
            **FUSED,
        ),
        entry(
            "channels first, float16, batch 32",
            TORCH,
            *_operators("convolutions_h200_nchw"),
            **FUSED,
        ),
        entry(
            "batch 32, cuDNN without what follows",
            "cuDNN alone",
            *_operators("convolutions_h200_32"),
            rivals=("cudnn alone",),
            drawn=False,
        ),
        entry(
            "channels first, cuDNN without what follows",
            "cuDNN alone",
            *_operators("convolutions_h200_nchw"),
            rivals=("cudnn alone",),
            drawn=False,
        ),
        entry(
            "a residual, cuDNN without it",
            "cuDNN alone",
            *_operators("convolutions_h200_32_residual"),
            rivals=("cudnn alone",),
            drawn=False,
        ),
    ]


def _gpu_depthwise() -> list[Entry]:
    entry = partial(_entry, GPU, "Depthwise, pooling, columns")
    return [
        entry("depthwise, pooling, sums of columns", CONVOLUTIONS, *_operators("kept_h200")),
        entry("sums of columns", TORCH, *_operators("columns_h200"), again=True),
    ]


def _gpu_routing() -> list[Entry]:
    entry = partial(_entry, GPU, "Routing and losses")
    return [
        entry("routing of tokens to 64 and 128 experts", TORCH, *_operators("routing_h200")),
        entry("routing to 128,256 words", TORCH, *_operators("routing_h200_shared")),
        entry(
            "a linear layer with cross-entropy",
            TORCH,
            *_operators("losses_h200", "losses_h200_shared"),
        ),
    ]


def _gpu_attention() -> list[Entry]:
    entry = partial(_entry, GPU, "Attention")
    return [
        entry(
            "all forms, 128 to 65,536 keys",
            f"{FLASH}, FlexAttention",
            LENGTHS,
            rivals=("cudnn", "flash", "flex"),
        ),
        entry("prefill and decode", FLASH, LENGTHS, rivals=("cudnn", "flash"), drawn=False),
        entry("all forms", "compiled FlexAttention", LENGTHS, rivals=("flex",), drawn=False),
    ]


def _gpu_flash_attention_3() -> list[Entry]:
    entry = partial(_entry, GPU, "Attention, FlashAttention-3")
    return [
        entry(
            "prefill and decode",
            "FlashAttention-3",
            "attention/results/flash3_h200.json",
            "attention/results/flash3_h200_prefill.json",
            rivals=("flash3",),
        ),
        entry(
            "causal prefills, a minute of search",
            "FlashAttention-3",
            "attention/results/flash3_h200_minute.json",
            rivals=("flash3",),
            again=True,
        ),
        entry(
            "causal prefills of 8,192",
            "FlashAttention-3",
            "attention/results/flash3_h200_8192.json",
            rivals=("flash3",),
            again=True,
        ),
    ]


def _gpu_networks() -> list[Entry]:
    entry = partial(_entry, GPU, "Networks")
    return [
        entry("float16, batch 1", FASTEST, "models/results/models_h200_1.json"),
        entry("float16, batch 8", FASTEST, "models/results/models_h200_8.json"),
        entry(
            "batch 8, one product", FASTEST, "models/results/gpt_2_h200_8_product.json", again=True
        ),
    ]


ENTRIES = (
    *_cpu_products(),
    *_cpu_batches(),
    *_cpu_grouped_products(),
    *_cpu_rows(),
    *_cpu_convolutions(),
    *_cpu_depthwise(),
    *_cpu_attention(),
    *_cpu_maps(),
    *_cpu_networks(),
    *_gpu_products(),
    *_gpu_batches(),
    *_gpu_grouped_products(),
    *_gpu_gated_products(),
    *_gpu_rows(),
    *_gpu_maps(),
    *_gpu_convolutions(),
    *_gpu_depthwise(),
    *_gpu_routing(),
    *_gpu_attention(),
    *_gpu_flash_attention_3(),
    *_gpu_networks(),
)
