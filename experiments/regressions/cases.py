"""The operators that two checkouts are compared on, by kind; ``@`` names the template to take."""

from __future__ import annotations

CPU = {
    "products": (
        "matmul m=512 n=512 k=512",
        "matmul m=1024 n=1024 k=1024 epilogue=gelu(x)",
        "matmul m=128 n=768 k=3072 b=col",
        "matmul m=16 n=1024 k=512",
        "matmul m=1 n=4096 k=4096 b=col",
        "matmul m=512 n=512 k=512 dtype=bfloat16",
        "bmm batch=12 m=128 n=128 k=64",
        "grouped_matmul t=256 n=256 k=256 experts=8",
    ),
    "convolutions": (
        "conv2d n=1 c=64 h=56 w=56 o=64 r=3 s=3 padding=1 layout=NHWC",
        "conv2d n=1 c=256 h=14 w=14 o=256 r=3 s=3 padding=1 layout=NHWC",
        "conv2d n=1 c=256 h=14 w=14 o=512 r=3 s=3 padding=1 layout=NHWC",
        "conv2d n=1 c=64 h=56 w=56 o=64 r=3 s=3 padding=1",
        "conv2d n=1 c=128 h=28 w=28 o=128 r=3 s=3 padding=1 stride=2",
        "conv2d n=1 c=96 h=56 w=56 o=96 r=3 s=3 padding=1 groups=96 layout=NHWC",
        "max_pool2d n=1 c=64 h=112 w=112 r=3 stride=2 padding=1",
    ),
    "rows": (
        "softmax r=512 c=1000",
        "softmax r=64 c=32768",
        "layernorm r=1024 c=768",
        "rmsnorm r=1024 c=4096",
        "logsumexp r=256 c=32000",
        "cross_entropy r=256 c=32000",
        "mean shape=64x128x256 over=0,2",
        "sum shape=1024x4096 over=1",
    ),
    "attention": (
        "attention b=1 h=12 i=128 j=128 d=64",
        "attention b=1 h=12 i=512 j=512 d=64 mask=causal",
        "attention b=4 h=16 kv=4 i=1 j=2048 d=64",
    ),
    "maps": (
        "swiglu r=1024 c=4096",
        "rope b=1 t=512 h=12 d=64",
        "embedding t=1024 d=1024 words=32000",
        "map m=2048 n=2048 expression=gelu(x[n,m])",
    ),
}

CUDA = {
    "products": (
        "matmul m=4096 n=4096 k=4096 dtype=bfloat16",
        "matmul m=128 n=14336 k=4096 dtype=bfloat16 b=col",
        "matmul m=64 n=6144 k=4096 dtype=bfloat16 b=col epilogue=gelu(x)",
        "matmul m=1 n=4096 k=14336 dtype=bfloat16 b=col",
        "matmul m=8 n=14336 k=4096 dtype=float16 b=col",
        "matmul m=2048 n=2048 k=2048",
        "matmul m=1024 n=1024 k=1024 dtype=float16 out=float32",
        "bmm batch=32 m=512 n=512 k=64 dtype=bfloat16",
        "grouped_matmul t=4096 n=2048 k=1024 experts=8 dtype=bfloat16",
        "gated_matmul m=512 n=4096 k=4096 dtype=bfloat16",
        "matmul m=256 n=256 k=262144 dtype=bfloat16",
        "matmul m=4096 n=4096 k=4096 dtype=bfloat16 @hopper",
        "matmul m=4096 n=4096 k=4096 dtype=float16 @mma",
        "matmul m=1024 n=1024 k=1024 @simt",
    ),
    "convolutions": (
        "conv2d n=32 c=64 h=56 w=56 o=64 r=3 s=3 padding=1 layout=NHWC dtype=float16",
        "conv2d n=32 c=256 h=14 w=14 o=512 r=3 s=3 padding=1 layout=NHWC dtype=float16",
        "conv2d n=8 c=128 h=28 w=28 o=128 r=3 s=3 padding=1 dtype=float16",
        "conv2d n=8 c=96 h=56 w=56 o=96 r=3 s=3 padding=1 groups=96 layout=NHWC dtype=float16",
        "max_pool2d n=32 c=64 h=112 w=112 r=3 stride=2 padding=1 dtype=float16",
    ),
    "rows": (
        "softmax r=8192 c=8192 dtype=bfloat16",
        "softmax r=64 c=131072 dtype=bfloat16",
        "softmax r=4096 c=1024",
        "layernorm r=8192 c=8192 dtype=bfloat16",
        "layernorm r=64 c=32768 dtype=bfloat16",
        "rmsnorm r=4096 c=4096 dtype=bfloat16",
        "logsumexp r=4096 c=32000 dtype=bfloat16",
        "cross_entropy r=4096 c=32000 dtype=bfloat16",
        "mean shape=64x128x4096 over=0,2 dtype=bfloat16",
        "sum shape=8192x8192 over=1",
    ),
    "attention": (
        "attention b=1 h=32 i=4096 j=4096 d=128 dtype=bfloat16",
        "attention b=1 h=32 kv=8 i=4096 j=4096 d=128 mask=causal dtype=bfloat16",
        "attention b=4 h=16 i=1024 j=1024 d=64 mask=causal dtype=float16",
        "attention b=16 h=32 kv=8 i=1 j=4096 d=128 dtype=bfloat16",
        "attention b=1 h=12 i=128 j=128 d=64 dtype=float16",
        "attention b=1 h=32 i=4096 j=4096 d=128 dtype=bfloat16 @chained_hopper",
        "attention b=1 h=32 kv=8 i=4096 j=4096 d=128 mask=causal dtype=bfloat16 @chained_hopper",
        "attention b=4 h=16 i=1024 j=1024 d=64 mask=causal dtype=float16 @chained_hopper",
        "attention b=16 h=128 kv=1 i=1 j=4096 d=128 dtype=bfloat16 @chained_hopper",
    ),
    "maps": (
        "swiglu r=8192 c=8192 dtype=bfloat16",
        "rope b=4 t=2048 h=32 d=128 dtype=bfloat16",
        "map m=8192 n=8192 expression=x[n,m] dtype=bfloat16",
    ),
}

CASES = {"cpu": CPU, "cuda": CUDA}
