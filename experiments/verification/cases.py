"""Workloads that random schedules are judged on, some for every template, tails and all."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.spaces.workloads.gradients import gradient

LAYER = '"t[i,j] = sum[k](a[i,k] * b[j,k]) + c[j]; y[i,j] = gelu(t[i,j]); -> t, y"'
PRODUCTS = {
    "product": "matmul m=333 n=264 k=200 dtype=bfloat16",
    "sum and its value": f"{LAYER} i=520 j=1000 k=776 dtype=bfloat16",
    "product, bias": 'matmul m=520 n=1000 k=776 dtype=float16 epilogue="gelu(x + bias[n])"',
    "product, deep": "matmul m=136 n=256 k=16392 dtype=bfloat16 out=float32",
    "product, columns": "matmul m=264 n=520 k=392 dtype=bfloat16 a=col b=col c=col",
    "product, float32": 'matmul m=201 n=135 k=99 epilogue="relu(x) * scale[m]"',
    "product, tfloat32": "matmul m=200 n=136 k=264 dtype=tfloat32 b=col out=float32",
    "product, float8": "matmul m=272 n=304 k=528 dtype=float8_e4m3fn b=col out=bfloat16",
    "product, int8": "matmul m=144 n=208 k=320 dtype=int8 b=col",
    "batch": "bmm batch=6 m=136 n=200 k=72 shared=3 dtype=bfloat16",
    "batch, residual": '"C[b,m,n] = sum[k](A[b,m,k] * B[b,k,n]) * s[b] + r[b,m,n]" '
    "b=5 m=333 n=264 k=200 dtype=bfloat16",
    "experts": "grouped_matmul t=700 n=264 k=200 experts=9 dtype=bfloat16",
    "experts, gathered": "grouped_matmul t=520 n=384 k=256 experts=6 rows=200 dtype=float16 b=col "
    'epilogue="relu(x + bias[expert[t], n])"',
    "window": "conv2d n=3 c=40 h=29 w=31 o=72 r=3 s=3 padding=1 layout=NHWC dtype=bfloat16 "
    'epilogue="relu(x + bias[o])"',
    "window, stride": "conv2d n=5 c=64 h=27 w=27 o=136 r=3 s=3 stride=2 padding=1 layout=NHWC "
    "dtype=float16",
    "window, few channels": "conv2d n=2 c=3 h=45 w=47 o=64 r=7 s=7 stride=2 padding=3 layout=NHWC "
    "dtype=bfloat16",
    "window, three channels": "conv2d n=3 c=3 h=33 w=35 o=24 r=3 s=3 stride=2 padding=1 "
    'layout=NHWC dtype=float16 epilogue="relu(x + bias[o])"',
    "window, five channels": "conv2d n=2 c=5 h=21 w=23 o=40 r=5 s=5 padding=2 layout=NHWC "
    "dtype=bfloat16",
    "window, one channel": "conv2d n=4 c=1 h=29 w=31 o=20 r=5 s=3 layout=NHWC dtype=float16 "
    "out=float32",
    "window, dilated": "conv2d n=2 c=6 h=25 w=27 o=48 r=3 s=3 padding=2 dilation=2 layout=NHWC "
    "dtype=bfloat16",
    "transposed": "conv2d_transposed n=3 c=24 h=13 w=15 o=40 r=4 s=4 stride=2 padding=1 "
    "layout=NHWC dtype=float16",
    "transposed, channels first": "conv2d_transposed n=2 c=16 h=15 w=14 o=24 r=3 s=3 stride=2 "
    "padding=1 dtype=bfloat16",
    "transposed, apart": "conv2d_transposed n=2 c=40 h=9 w=11 o=24 r=2 s=2 stride=2 layout=NHWC",
    "transposed, stride 3": "conv2d_transposed n=2 c=8 h=12 w=10 o=16 r=5 s=5 stride=3 padding=2",
    "window, channels first": "conv2d n=2 c=24 h=17 w=19 o=40 r=3 s=3 padding=1 dtype=float16",
    "window, channels before pixels": "conv2d n=5 c=64 h=16 w=16 o=72 r=3 s=3 padding=1 "
    'dtype=float16 epilogue="relu(x + bias[o])"',
    "channels before pixels, residual": "conv2d n=5 c=32 h=15 w=16 o=40 r=1 s=1 dtype=bfloat16 "
    'epilogue="relu(x + bias[o] + residual[n, o, p, q])"',
    "window, stride, channels first": "conv2d n=3 c=40 h=21 w=23 o=56 r=3 s=3 stride=2 padding=1 "
    "dtype=bfloat16 out=float32",
    "channels before odd pixels": "conv2d n=3 c=72 h=9 w=11 o=40 r=1 s=1 dtype=bfloat16 "
    'epilogue="x * residual[n, o, p, q]"',
    "window, float32": "conv2d n=2 c=20 h=13 w=15 o=28 r=3 s=3 padding=1 layout=NHWC",
}
FEW_ROWS = {
    "one row": "matmul m=1 n=1032 k=2056 dtype=bfloat16 b=col",
    "four rows": 'matmul m=4 n=1000 k=1032 dtype=float16 epilogue="x + bias[n]"',
    "sum of four rows and its value": f"{LAYER} i=4 j=1000 k=1032 dtype=bfloat16",
    "sixteen rows": "matmul m=16 n=776 k=4104 dtype=bfloat16 b=col",
    "three columns": "matmul m=1000 n=3 k=513 b=col",
    "few rows in a batch": '"C[b,m,n] = sum[k](A[b,m,k] * B[b,k,n])" b=7 m=5 n=520 k=264 '
    "dtype=bfloat16",
}
SCORES = "p[i,j] = sum[d](x[i,d] * u[j,d])"
ROUTING = f"{SCORES}; y[i] = argmax[j](p[i,j])"
SHARE = f"{ROUTING}; m[i] = max[j](p[i,j]); g[i] = 1 / sum[j](exp(p[i,j] - m[i])); -> y, g"
GROUPED = "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * 0.2"
VALUES = " * v[b,h // 2,j,e])"
HEADS = "b=2 h=4 i=145 j=211 d=64 e=64"
CHAINS = {
    "routing": f'"{ROUTING}" i=333 j=128 d=264 dtype=bfloat16',
    "routing, with its share": f'"{SHARE}" i=520 j=264 d=1024 dtype=float16',
    "routing, words": f'"{ROUTING}" i=64 j=33000 d=256 dtype=bfloat16',
    "routing, by bias": f'"{SCORES}; y[i] = argmax[j](p[i,j] + c[j])" i=130 j=72 d=72 '
    "dtype=bfloat16",
    "routing, long rows": f'"{ROUTING}" i=200 j=264 d=4096 dtype=bfloat16',
    "loss": '"l: int32[i](index < 9000); z[i,j] = sum[d](x[i,d] * w[j,d]); '
    'y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]" i=200 j=9000 d=136 dtype=bfloat16',
    "loss, wide rows": '"l: int32[i](index < 9000); z[i,j] = sum[d](x[i,d] * w[j,d]); '
    'y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]" i=200 j=9000 d=2056 dtype=bfloat16',
    "weighed by wide rows": f'"{SCORES}; y[i,e] = sum[j](softmax[j](p[i,j] * 0.02) * v[j,e])" '
    "i=150 j=500 d=1033 e=72 dtype=float16",
    "attention": "attention b=1 h=4 i=300 j=300 d=128 dtype=bfloat16",
    "attention, causal": "attention b=2 h=4 kv=2 i=257 j=257 d=128 mask=causal dtype=bfloat16",
    "attention, heads of 64": "attention b=2 h=4 i=129 j=1000 d=64 mask=causal dtype=float16",
    "attention, heads of 256": "attention b=1 h=2 i=130 j=257 d=256 mask=causal dtype=bfloat16",
    "attention, window": "attention b=1 h=4 kv=1 i=500 j=500 d=72 mask=causal window=60 "
    "softcap=5.0 dtype=float16",
    "attention, alibi": "attention b=1 h=4 i=130 j=333 d=96 mask=causal alibi=1 dtype=bfloat16",
    "decode": "attention b=3 h=16 kv=2 i=1 j=4099 d=128 dtype=bfloat16",
    "decode, one head of keys": "attention b=2 h=64 kv=1 i=1 j=1500 d=128 dtype=float16",
    "latent": '"y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,j,d]) * 0.05) * k[b,j,e])" '
    "b=2 h=16 i=1 j=700 d=576 e=512 dtype=bfloat16",
    "lengths": f'"n: int32[b](index < 212); where j < n[b]; {GROUPED}){VALUES}" {HEADS} '
    "dtype=bfloat16",
    "bias": f'"{GROUPED} + bias[h,i,j]){VALUES}" {HEADS} dtype=float16',
    "pages": '"t: int32[b,14](index < 40); k: bfloat16[40,16,2,64]; v: bfloat16[40,16,2,64]; '
    "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[t[b,j // 16],j % 16,h // 2,d]) * 0.2) "
    f'* v[t[b,j // 16],j % 16,h // 2,e])" {HEADS} dtype=bfloat16',
    "keys of 8 bits": f'"k: float8_e4m3fn[b,2,j,d]; v: float8_e4m3fn[b,2,j,e]; {GROUPED} * s[b,j])'
    f'{VALUES}" {HEADS} dtype=bfloat16',
    "attention of 8 bits": f'"q: float8_e4m3fn; k: float8_e4m3fn[b,2,j,d]; '
    f'v: float8_e4m3fn[b,2,j,e]; {GROUPED}){VALUES}" {HEADS} dtype=bfloat16',
    "log of the sum": f'"p[b,h,i,j] = sum[d](q[b,h,i,d] * k[b,h,j,d]) * 0.2; '
    "where j < i - 4; y[b,h,i,e] = sum[j](softmax[j](p[b,h,i,j]) * v[b,h,j,e]); "
    f'l[b,h,i] = logsumexp[j](p[b,h,i,j]); -> y, l" {HEADS} dtype=bfloat16',
}
PAIRS_SCORES = (
    "l: float32[b,h,i]; s[b,h,i,j] = sum[d](q[b,h,i,d] * k[b,h // 2,j,d]); "
    "r[b,h,i,j] = sum[e](dy[b,h,i,e] * v[b,h // 2,j,e]); "
    "t[b,h,i] = sum[e](dy[b,h,i,e] * y[b,h,i,e]); "
    "p[b,h,i,j] = exp(0.1 * s[b,h,i,j] - l[b,h,i]); "
    "f[b,h,i,j] = p[b,h,i,j] * (r[b,h,i,j] - t[b,h,i])"
)
QUERIES = "dq[b,h,i,d] = sum[j](f[b,h,i,j] * k[b,h // 2,j,d])"
KEYS = "dk[b,g,j,d] = sum[i,u](f[b,2 * g + u,i,j] * q[b,2 * g + u,i,d])"
VALUES_OF_PAIRS = "dv[b,g,j,e] = sum[i,u](p[b,2 * g + u,i,j] * dy[b,2 * g + u,i,e])"
BACKWARD = f"{PAIRS_SCORES}; {QUERIES}; {KEYS}; {VALUES_OF_PAIRS}; -> dq, dk, dv"
PAIRS = {
    "attention backward": f'"{BACKWARD}" b=2 h=4 g=2 u=2 i=300 j=211 d=64 e=64 dtype=bfloat16',
    "attention backward, causal": f'"where j <= i; {BACKWARD}" b=1 h=4 g=2 u=2 i=257 j=257 d=128 '
    "e=128 dtype=bfloat16",
    "attention backward, float16": f'"where j <= i; {BACKWARD}" b=1 h=4 g=2 u=2 i=190 j=190 d=64 '
    "e=64 dtype=float16",
    "attention backward, window": f'"where j <= i and i - j < 60; {BACKWARD}" b=1 h=2 g=1 u=2 '
    "i=333 j=333 d=72 e=40 dtype=bfloat16",
    "attention backward, documents": '"o: int32[i](index < 3); w: int32[j](index < 3); '
    f'where o[i] == w[j]; {BACKWARD}" b=1 h=4 g=2 u=2 i=130 j=200 d=96 e=96 dtype=bfloat16',
    "attention backward, queries": f'"{PAIRS_SCORES}; {QUERIES}; -> dq" b=2 h=4 i=300 j=211 d=64 '
    "e=64 dtype=bfloat16",
    "distances": '"s[i,j] = sum[d](x[i,d] * u[j,d]); n[i] = sum[d](x[i,d] * x[i,d]); '
    "m[j] = sum[d](u[j,d] * u[j,d]); y[i,e] = sum[j](exp(0.02 * (2 * s[i,j] - n[i] - m[j])) * "
    'v[j,e]); z[j,e] = sum[i](exp(0.02 * (2 * s[i,j] - n[i] - m[j])) * w[i,e]); -> y, z" '
    "i=520 j=333 d=40 e=56 dtype=bfloat16",
}
"""Sums over pairs along both sides."""
ROWS = {
    "softmax": "softmax r=517 c=3000 dtype=bfloat16",
    "softmax, long": "softmax r=9 c=100003 dtype=float32",
    "layernorm": "layernorm r=333 c=1000 outputs=y,mean,rstd dtype=float16",
    "layernorm, long": "layernorm r=40 c=32768 dtype=bfloat16",
    "rmsnorm": "rmsnorm r=1000 c=776 dtype=float32",
    "loss of rows": "cross_entropy r=300 c=5003 dtype=bfloat16",
    "places": "argmax shape=64x33x257 over=0,2 dtype=float16",
    "sums": "sum shape=37x129x65 over=1 dtype=float32",
    "extremes": '"m[i] = max[j](x[i,j]); n[i] = min[j](x[i,j] * w[j]); -> m, n" i=700 j=900 '
    "dtype=bfloat16",
}
SCANS = {
    "prefixes": "cumsum shape=300x3001 over=1",
    "prefixes down": "cumsum shape=1900x333 over=0 kind=exclusive dtype=bfloat16",
    "suffixes": "cumsum shape=70x5000 over=1 kind=reverse dtype=float16",
    "prefixes of few rows": "cumsum shape=2x20000 over=1 kind=reverse_exclusive",
    "prefixes of prefixes": '"s[r,i] = sum[j: j < i](x[r,j] * w[j]); '
    'y[r,i] = sum[k: k <= i](s[r,k] / (k + 1)) + b[r]" r=500 i=1003 j=1003 k=1003',
}
SCORES_OF_PREFIX = "sum[d](q[h,t,d] * k[h,s,d]) * v[h,s,e]"
RECURRENCES = {
    "linear attention": f'"y[h,t,e] = sum[s: s <= t]({SCORES_OF_PREFIX})" h=5 t=1003 s=1003 d=64 '
    "e=136 dtype=bfloat16",
    "linear attention, in one sum": '"y[h,t,e] = sum[s,d: s <= t](q[h,t,d] * k[h,s,d] * v[h,s,e])" '
    "h=16 t=2100 s=2100 d=64 e=64 dtype=bfloat16",
    "linear attention, backwards": f'"y[h,t,e] = sum[s: s > t]({SCORES_OF_PREFIX} / 8)" h=3 '
    "t=700 s=700 d=72 e=64 dtype=float16",
    "retention": f'"y[h,t,e] = sum[s: s <= t](exp(g[h] * (s - t)) * {SCORES_OF_PREFIX})" h=4 '
    "t=1024 s=1024 d=128 e=128 dtype=bfloat16",
    "state space": '"l: float32[h,t]; dt: float32[h,t]; y[h,t,e] = sum[s: s <= t](exp(l[h,t] - '
    'l[h,s]) * sum[d](c[t,d] * b[s,d]) * dt[h,s] * x[h,s,e])" h=6 t=900 s=900 d=128 e=64 '
    "dtype=bfloat16",
    "decays that are summed up": '"a: float32[h,t]; l[h,t] = sum[s: s <= t](a[h,s]); z[h,t,e] = '
    f"sum[s: s <= t](exp2(l[h,t] - l[h,s]) * {SCORES_OF_PREFIX}); "
    'y[h,t,e] = relu(z[h,t,e] + w[e])" h=3 t=513 s=513 d=40 e=96 dtype=float16',
}
DELTA = (
    '"u[h,t,e] = sum[d](k[h,t,d] * inside(S[h,t-1,d,e], 0)); '
    "S[h,t,d,e] = inside(S[h,t-1,d,e], 0) + b[h,t] * k[h,t,d] * (v[h,t,e] - u[h,t,e]); "
    'o[h,t,e] = sum[d](q[h,t,d] * S[h,t,d,e])"'
)
NETWORK = '"h[b,t,d] = tanh(x[b,t,d] + sum[e](inside(h[b,t-1,e], 0) * m[e,d]))"'
STEPS = {
    "delta rule": f"{DELTA} h=3 t=203 d=72 e=72 dtype=bfloat16",
    "gates": '"f[b,t,d] = sigmoid(x[b,t,d] + w[d] * inside(h[b,t-1,d], 0)); '
    "c[b,t,d] = f[b,t,d] * inside(c[b,t-1,d], 0) + (1 - f[b,t,d]) * y[b,t,d]; "
    'h[b,t,d] = tanh(c[b,t,d]); -> h, c" b=5 t=301 d=333',
    "recurrent network": f"{NETWORK} b=21 t=33 d=70 e=70",
    "selective scan": '"h[b,t,d,n] = exp(-abs(x[b,t,d]) * r[d,n]) * inside(h[b,t-1,d,n], 0) '
    '+ x[b,t,d] * k[b,t,n]; o[b,t,d] = sum[n](h[b,t,d,n] * q[b,t,n])" b=2 t=251 d=135 n=16',
    "state space, float32": '"y[h,t,e] = sum[s: s <= t](exp(l[h,t] - l[h,s]) * '
    'sum[d](c[t,d] * b[s,d]) * x[h,s,e])" h=5 t=301 s=301 d=33 e=65',
    "gated linear attention": '"y[h,t,e] = sum[s,d: s <= t](exp(l[h,t,d] - l[h,s,d]) '
    '* q[h,t,d] * k[h,s,d] * v[h,s,e])" h=3 t=203 s=203 d=40 e=72 dtype=bfloat16',
    "retention, backwards": '"y[h,t,e] = sum[s: s > t](exp(g[h] * (t - s)) * '
    'sum[d](q[h,t,d] * k[h,s,d]) * v[h,s,e])" h=3 t=150 s=150 d=24 e=40 dtype=float16',
}
KEPT = {
    "depthwise": "conv2d n=3 c=40 h=29 w=31 o=40 groups=40 r=3 s=3 padding=1 layout=NHWC "
    'dtype=bfloat16 epilogue="relu(x + bias[o])"',
    "depthwise, channels first": "conv2d n=2 c=24 h=33 w=35 o=24 groups=24 r=5 s=5 stride=2 "
    "padding=2 dtype=float32",
    "pooling": "max_pool2d n=4 c=33 h=57 w=59 r=3 stride=2 padding=1 dtype=float16",
    "mean of windows": "avg_pool2d n=4 c=64 h=28 w=28 r=2 stride=2 dtype=bfloat16",
    "sums of columns": "sum shape=3000x517 over=0 dtype=bfloat16",
    "one axis": "conv1d n=3 c=48 w=300 o=48 groups=48 r=5 padding=2 dtype=float32",
}
MAPS = {
    "turned": '"y[j,i] = x[i,j]" i=1000 j=777 dtype=bfloat16',
    "turned, with a bias": '"y[j,i] = relu(x[i,j] + b[i])" i=520 j=1032 dtype=float32',
    "channels last": '"y[n,h,w,c] = x[n,c,h,w]" n=3 c=40 h=27 w=29 dtype=float16',
    "heads": '"y[a,c,b,d] = x[a,b,c,d]" a=3 b=130 c=9 d=72 dtype=bfloat16',
    "positions": "rope b=2 t=130 h=5 d=72 dtype=bfloat16",
    "gates": "swiglu r=333 c=1003 dtype=bfloat16",
    "words": "embedding t=700 d=520 words=3000 dtype=float32",
    "to 8 bits": '"x: bfloat16; y: float8_e4m3fn; y[j,i] = x[i,j] * 0.5" i=272 j=336',
}
CROSS = "{0,0,0, 0,0,.7, 0,-.7,0, 0,0,-.7, 0,0,0, .7,0,0, 0,.7,0, -.7,0,0, 0,0,0}"
MAPS |= {
    "constants": f'"C: float32[3,3,3] = {CROSS}; z[e,k,u] = sum[i,j](C[i,j,k] * x[e,i,u] * y[e,j])"'
    " e=301 k=3 u=72 i=3 j=3 dtype=bfloat16",
}
STAGES = {
    "complex": '"x: complex_bfloat16[b,i]; w: complex_bfloat16[i,o]; '
    'y[b,o] = sum[i](x[b,i] * w[i,o])" b=70 i=100 o=72',
    "gated": "gated_matmul m=200 n=264 k=328 dtype=bfloat16",
    "gated, few rows": "gated_matmul m=5 n=1032 k=520 dtype=float16",
    "gated by a bias": '"s[i,j] = sum[k](a[i,k] * b[j,k]); t[i,j] = sum[k](a[i,k] * c[j,k]); '
    'y[i,j] = s[i,j] * sigmoid(t[i,j] + d[j])" i=520 j=392 k=1032 dtype=float16',
    "gated, with a rest": '"s[i,j] = sum[k](a[i,k] * b[k,j]); t[i,j] = sum[k](a[i,k] * c[k,j]); '
    'y[i,j] = s[i,j] * t[i,j] + r[i,j]" i=333 j=136 k=200 dtype=bfloat16',
    "gated, float32": "gated_matmul m=97 n=101 k=65",
    "normalised": "rmsnorm_matmul m=136 n=264 k=520 dtype=bfloat16",
    "normalised, many": "rmsnorm_matmul m=512 n=1024 k=2048 dtype=bfloat16",
    "normalised, few rows": "rmsnorm_matmul m=13 n=264 k=1031",
    "projected": '"p[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e]); '
    'y[i,f] = sum[e](p[i,e] * w[e,f])" i=130 j=200 d=64 e=64 f=136 dtype=bfloat16',
    "the largest product": '"s[i,j] = sum[k](a[i,k] * b[k,j]); m[i] = max[j](s[i,j] * s[i,j]); '
    'y[i,j] = a[i,j] / (1 + m[i]); -> m, y" i=120 j=100 k=100',
}
GRAPH = "row: int32[e](sorted < r, skew=2.1); col: int32[e](index < 900); where row[e] == r; "
POINTERS = "ptr: int32[r+1](sorted < e+1, skew=2.1); col: int32[e](index < 900); "
BOUNDED = f"{POINTERS}where ptr[r] <= e and e < ptr[r + 1]; "
PRUNED = "ptr: int32[n+1](sorted < e+1); col: uint16[e](index < 900); "
RAGGED = {
    "sparse times dense": f'"{BOUNDED}y[r,c] = sum[e](val[e] * x[col[e],c])" r=700 e=6000 c=128',
    "sparse times dense, halves": f'"x: bfloat16; y: bfloat16; val: bfloat16; {GRAPH}'
    'y[r,c] = sum[e](val[e] * x[col[e],c])" r=700 e=6000 c=72',
    "means of neighbours": f'"{GRAPH}y[r,c] = mean[e](x[col[e],c])" r=900 e=3000 c=37',
    "greatest neighbours": f'"{BOUNDED}y[r,c] = max[e](x[col[e],c])" r=300 e=9000 c=20',
    "messages": f'"{GRAPH}y[r,c] = sum[e](relu(x[col[e],c] + edge[e,c]) * val[e])" '
    "r=500 e=4000 c=64",
    "blocks of a sparse matrix": f'"{BOUNDED}y[r,i,c] = sum[e,j](val[e,i,j] * x[col[e],j,c])" '
    "r=100 e=900 i=3 j=4 c=40",
    "attention along edges": f'"{BOUNDED}y[r,h,c] = sum[e](softmax[e](sum[d](q[r,h,d] * '
    'k[col[e],h,d])) * v[col[e],h,c])" r=500 e=4000 h=2 d=32 c=40',
    "places of neighbours": f'"{GRAPH}y[r,c] = argmax[e](x[col[e],c])" r=300 e=2000 c=24',
    "sparse weights": f'"{PRUNED}y[m,n] = sum[e: ptr[n] <= e < ptr[n + 1]](v[e] * a[m,col[e]])" '
    "m=12 n=500 e=90000 dtype=bfloat16",
    "sparse weights, few": f'"{PRUNED}s[m,n] = sum[e: ptr[n] <= e < ptr[n + 1]]('
    'v[e] * a[m,col[e]]); y[m,n] = relu(s[m,n] + b[n])" m=3 n=700 e=70000',
    "extremes of turned neighbours": f'"{PRUNED}y[h,m,n] = max[e: ptr[n] <= e < ptr[n + 1]]('
    'a[m,h,col[e]] + v[e])" m=20 h=3 n=300 e=9000 dtype=float16',
    "means of turned neighbours": f'"{PRUNED}y[n,m] = mean[e: ptr[n] <= e < ptr[n + 1]]('
    'a[m,col[e]])" m=72 n=900 e=7000',
    "scores of edges": '"row: int32[e](index < 300); col: int32[e](index < 900); '
    's[e] = sum[d](q[row[e],d] * k[col[e],d])" e=5000 d=72',
}
LARGE = {
    "large product": "matmul m=8192 n=8192 k=4096 dtype=bfloat16",
    "large batch": "bmm batch=512 m=512 n=512 k=64 dtype=bfloat16",
    "large experts": "grouped_matmul t=4096 n=2048 k=512 experts=8 dtype=bfloat16 b=col",
    "large window": "conv2d n=32 c=128 h=28 w=28 o=128 r=3 s=3 padding=1 layout=NHWC dtype=float16 "
    'epilogue="relu(x + bias[o])"',
    "large matrix, one row": "matmul m=1 n=32000 k=4096 dtype=bfloat16 b=col",
    "large routing": f'"{SHARE}" i=4096 j=64 d=2048 dtype=bfloat16',
    "large attention": "attention b=1 h=16 kv=4 i=4096 j=4096 d=128 mask=causal dtype=bfloat16",
    "large decode": "attention b=8 h=32 kv=8 i=1 j=2048 d=128 dtype=float16",
    "large rows": "layernorm r=2048 c=8192 dtype=bfloat16",
    "large pooling": "max_pool2d n=16 c=64 h=112 w=112 r=3 stride=2 padding=1 dtype=bfloat16",
    "large turn": '"y[j,i] = x[i,j]" i=2048 j=8192 dtype=bfloat16',
    "large gates": "gated_matmul m=4096 n=4096 k=2048 dtype=bfloat16",
    "large norm": "rmsnorm_matmul m=4096 n=2048 k=4096 dtype=bfloat16",
}
"""Workloads of models as they are: many blocks, many tiles of each, and large offsets."""
SCORED = "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 0.2"
EDGES = {
    "softmax, edges": "softmax r=64 c=1000",
    "softmax of 16 bits, edges": "softmax r=40 c=600 dtype=bfloat16",
    "logsumexp, edges": '"y[r] = logsumexp[c](x[r,c])" r=40 c=1000',
    "layernorm, edges": "layernorm r=40 c=1000",
    "variance, edges": '"y[r] = var[c](x[r,c])" r=40 c=1000',
    "variance of columns, edges": '"y[c] = var[r](x[r,c])" r=300 c=40',
    "loss, edges": "cross_entropy r=64 c=1000",
    "largest, edges": "argmax shape=64x300 over=1",
    "pooling, edges": "max_pool2d n=2 c=8 h=20 w=20 r=3 stride=2 padding=1",
    "words, edges": "embedding t=40 d=30 words=50",
    "gates, edges": "swiglu r=33 c=103",
    "normalised, edges": "rmsnorm_matmul m=40 n=72 k=64 dtype=bfloat16",
    "causal, edges": "attention b=1 h=2 i=70 j=100 d=64 mask=causal dtype=bfloat16",
    "decode, edges": "attention b=2 h=4 kv=2 i=1 j=300 d=64 dtype=float16",
    "mask, edges": f'"{SCORED} + m[i,j]) * v[j,e])" i=70 j=100 d=64 e=64 dtype=float16',
    "lengths, edges": '"n: int32[b](index < 201); where j < n[b]; y[b,h,e] = sum[j](softmax[j]('
    'sum[d](q[b,h,d] * k[b,j,d])) * v[b,j,e])" b=3 h=4 j=200 d=64 e=64 dtype=bfloat16',
    "slopes, edges": "attention b=1 h=2 i=70 j=100 d=64 mask=causal alibi=1 dtype=bfloat16",
    "documents, edges": '"o: int32[i](index < 3); g: int32[j](index < 3); where o[i] == g[j]; '
    f'{SCORED}) * v[j,e])" i=70 j=100 d=64 e=64 dtype=bfloat16',
    "scales of rows, edges": '"y[i,j] = sum[k](a[i,k] * s[i] * b[k,j])" i=40 j=72 k=64',
    "causal of 32 bits, edges": "attention b=1 h=2 i=70 j=100 d=32 mask=causal",
    "differences, edges": '"m[r] = max[c](x[r,c] * x[r,c]); y[r,c] = sqrt(m[r] - x[r,c] * x[r,c])" '
    "r=40 c=300",
    "far indices, edges": '"z: float32[5000]; y[i,j] = z[(i*16000001 + j) // 1000003]" i=300 j=200',
    "product, edges": "matmul m=133 n=136 k=72 dtype=bfloat16",
    "product, bias, edges": 'matmul m=100 n=72 k=200 dtype=float16 epilogue="gelu(x + bias[n])"',
    "product of 32 bits, edges": "matmul m=45 n=67 k=33",
    "product of 8 bits, edges": "matmul m=72 n=80 k=144 dtype=float8_e4m3fn b=col out=bfloat16",
    "whole numbers, edges": "matmul m=72 n=80 k=96 dtype=int8 b=col",
    "sum and its value, edges": f"{LAYER} i=33 j=37 k=40",
    "sum of few rows and its value, edges": f"{LAYER} i=5 j=70 k=40",
    "one row, edges": "matmul m=1 n=264 k=520 dtype=bfloat16 b=col",
    "batch, edges": "bmm batch=6 m=36 n=20 k=72 shared=3",
    "experts, edges": "grouped_matmul t=70 n=24 k=20 experts=5",
    "convolution, edges": "conv2d n=4 c=16 h=9 w=11 o=24 r=3 s=3 padding=1 layout=NHWC",
    "convolution of 16 bits, edges": "conv2d n=2 c=24 h=9 w=11 o=40 r=3 s=3 padding=1 "
    "dtype=float16",
}
"""Small ones for edge inputs, which a CPU and the emulator take, too."""
LOW_BITS: Mapping[str, str] = {
    "codes of 4 bits": '"q: uint4[n, k](packed); y[m, n] = sum[k](a[m, k] * (q[n, k] - 8))" '
    "m=3 n=264 k=512",
    "codes of 3 bits": '"q: uint3[n, k](packed); y[m, n] = sum[k](a[m, k] * (q[n, k] - 4))" '
    "m=1 n=136 k=640",
    "codes of 8 bits": '"q: int8[n, k](packed); y[m, n] = sum[k](a[m, k] * q[n, k])" '
    "m=8 n=72 k=384",
    "codes with scales by groups": '"q: uint4[n, k](packed); '
    'y[m, n] = sum[k](a[m, k] * ((q[n, k] - 8) * s[n, k // 128]))" m=5 n=200 k=512',
    "codes beside 16 bits": '"q: uint4[n, k](packed); a: bfloat16[m, k]; s: bfloat16[k // 128, n]; '
    'y[m, n] = sum[k](a[m, k] * ((q[n, k] - 8) * s[k // 128, n]))" m=20 n=4400 k=512',
    "codes with zero points": '"q: uint3[n, k](packed); z: uint8[n, k // 32]; '
    "a: float16[m, k]; s: float16[n, k // 32]; "
    'y[m, n] = sum[k](a[m, k] * ((q[n, k] - z[n, k // 32]) * s[n, k // 32]))" m=3 n=2200 k=256',
    "codes, many rows": '"q: uint2[n, k](packed); a: bfloat16[m, k]; s: bfloat16[k // 64, n]; '
    'y[m, n] = sum[k](a[m, k] * ((q[n, k] - 1) * s[k // 64, n]))" m=72 n=4400 k=384',
    "codes of one row": '"q: uint6[n, k](packed); a: bfloat16[m, k]; s: bfloat16[n, k // 64]; '
    'y[m, n] = sum[k](a[m, k] * ((q[n, k] - 32) * s[n, k // 64]))" m=1 n=2100 k=1024',
    "codes, scales of columns": '"q: int5[n, k](packed); a: float16[m, k]; '
    'y[m, n] = sum[k](a[m, k] * (q[n, k] - 3)) * s[n]" m=1 n=6600 k=1000',
    "codes beside 8 bits": '"q: uint4[n, k](packed); x: int8[m, k]; '
    'y[m, n] = sum[k](x[m, k] * (q[n, k] - 8) * s[k // 128, n]) * d[m]" m=5 n=2200 k=512',
    "codes of 2 bits beside 8 bits": '"q: uint2[n, k](packed); x: int8[m, k]; '
    "z: uint8[k // 64, n]; "
    'y[m, n] = sum[k](x[m, k] * ((q[n, k] - z[k // 64, n]) * s[k // 64, n])) * d[m]" '
    "m=1 n=2200 k=640",
    "codes of 8 bits beside 8 bits": '"q: int8[n, k](packed); x: int8[m, k]; '
    'y[m, n] = sum[k](x[m, k] * q[n, k]) * s[n] * d[m]" m=17 n=2300 k=576',
    "codes of 5 bits beside 8 bits": '"q: uint5[n, k](packed); x: int8[m, k]; '
    "s: float16[n, k // 64]; "
    'y[m, n] = sum[k](x[m, k] * (q[n, k] - 16) * s[n, k // 64]) * d[m]" m=3 n=2500 k=448',
    "codes of experts": '"e: int32[t](sorted < 9); q: uint4[9, n, k](packed); a: bfloat16[t, k]; '
    "s: bfloat16[9, k // 128, n]; y: bfloat16[t, n]; "
    'y[t, n] = sum[k](a[t, k] * ((q[e[t], n, k] - 8) * s[e[t], k // 128, n]))" t=700 n=520 k=512',
    "codes of experts, few rows": '"e: int32[t](sorted < 40); q: uint3[40, n, k](packed); '
    "a: float16[t, k]; s: float16[40, n]; "
    'y[t, n] = sum[k](a[t, k] * (q[e[t], n, k] - 4)) * s[e[t], n]" t=16 n=1400 k=1000',
    "codes of experts, chosen rows": '"e: int32[t](sorted < 6); r: int32[t](index < 90); '
    "q: float4_e2m1[6, n, k](packed); a: bfloat16[90, k]; s: bfloat16[6, n, k // 32]; "
    "w: bfloat16[t]; "
    'y[t, n] = sum[k](a[r[t], k] * q[e[t], n, k] * s[e[t], n, k // 32]) * w[t]" t=180 n=600 k=640',
    "codes of experts beside 8 bits": '"e: int32[t](sorted < 5); q: uint4[5, n, k](packed); '
    "x: int8[t, k]; "
    'y[t, n] = sum[k](x[t, k] * (q[e[t], n, k] - 8) * s[e[t], k // 64, n]) * d[t]" '
    "t=150 n=700 k=576",
}
"""Products whose weights are packed codes."""
CAUSAL = "attention b=1 h=4 kv=2 i=70 j=70 d=40 mask=causal dtype=bfloat16"
ATTENTION = "attention b=2 h=2 i=50 j=90 d=64 dtype=bfloat16"
DIVIDED: Mapping[str, str] = {
    f"gradient of {name}": gradient(text, wanted, saved).text
    for name, (text, wanted, saved) in {
        "layernorm": ("layernorm r=300 c=136 dtype=bfloat16", "x,weight,bias", "mean,rstd"),
        "rmsnorm": ("rmsnorm r=70 c=520 dtype=float16", "x,weight", ""),
        "causal": (CAUSAL, "q,k,v", ""),
        "attention": (ATTENTION, "q,k,v", "y"),
        "delta rule": (f"{DELTA} h=3 t=45 d=40 e=36", "q,k,v,b", "S"),
        "delta rule, steps computed again": (f"{DELTA} h=3 t=20 d=20 e=36", "q,k,v,b", ""),
        "recurrent network": (f"{NETWORK} b=4 t=12 d=20 e=20", "x,m", ""),
    }.items()
}
"""Programs of several kernels."""
CASES: Mapping[str, str] = (
    LOW_BITS
    | PRODUCTS
    | FEW_ROWS
    | CHAINS
    | PAIRS
    | DIVIDED
    | ROWS
    | SCANS
    | RECURRENCES
    | STEPS
    | KEPT
    | MAPS
    | STAGES
    | RAGGED
    | LARGE
)
"""Texts of workloads by name."""
