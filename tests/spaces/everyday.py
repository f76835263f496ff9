"""Everyday operators as people write them, at small sizes: name, program, extents and the like."""

OPERATORS: dict[str, tuple[str, str]] = {
    # activations and elementwise maps
    "relu": ("y[i] = relu(x[i])", "i=37"),
    "leaky relu": ("y[i] = select(x[i] > 0, x[i], 0.01 * x[i])", "i=37"),
    "elu": ("y[i] = select(x[i] > 0, x[i], exp(x[i]) - 1)", "i=37"),
    "selu": ("y[i] = 1.05070098 * select(x[i] > 0, x[i], 1.6732632 * (exp(x[i]) - 1))", "i=37"),
    "softplus": ("y[i] = max(x[i], 0) + log(1 + exp(-abs(x[i])))", "i=37"),
    "mish": ("y[i] = x[i] * tanh(log(1 + exp(x[i])))", "i=37"),
    "hardswish": ("y[i] = x[i] * min(max(x[i] + 3, 0), 6) / 6", "i=37"),
    "hardtanh": ("y[i] = min(max(x[i], -1), 1)", "i=37"),
    "softsign": ("y[i] = x[i] / (1 + abs(x[i]))", "i=37"),
    "gelu": ("y[i] = gelu(x[i])", "i=37"),
    "swiglu": ("y[r,c] = silu(x[r,c]) * x[r,c + size(c)]", "r=5 c=16"),
    "prelu": ("y[r,c] = select(x[r,c] > 0, x[r,c], a[c] * x[r,c])", "r=5 c=16"),
    "threshold": ("y[i] = select(x[i] > 0.1, x[i], 20)", "i=37"),
    "clamp": ("y[i] = min(max(x[i], -0.5), 0.5)", "i=37"),
    "sign": ("y[i] = select(x[i] > 0, 1, select(x[i] < 0, -1, 0))", "i=37"),
    "round": ("y[i] = floor(5 * x[i] + 0.5)", "i=37"),
    "fractional part": ("y[i] = 7 * x[i] - floor(7 * x[i])", "i=37"),
    "square": ("y[i] = x[i] * x[i]", "i=37"),
    "cast to float16": ("y: float16; y[i] = x[i]", "i=37"),
    "cast to float8": ("y: float8_e4m3fn; y[i] = x[i]", "i=37"),
    "quantise to int8": ("y: int8; y[i,j] = x[i,j] / s[i]", "i=5 j=8"),
    "quantise dynamically": (
        "y: int8; m[i] = max[j](abs(x[i,j])); y[i,j] = 127 * x[i,j] / m[i]; -> y, m",
        "i=5 j=33",
    ),
    "dequantise": ("q: int8; y[i,j] = q[i,j] * s[i]", "i=5 j=8"),
    "add and multiply": ("y[i] = a[i] + 0.5 * b[i] * c[i]", "i=37"),
    "lerp": ("y[i] = a[i] + w[i] * (b[i] - a[i])", "i=37"),
    "where": ("y[i] = select(m[i] > 0, a[i], b[i])", "i=37"),
    "adam step": (
        "n[i] = 0.9 * m[i] + 0.1 * g[i]; u[i] = 0.99 * v[i] + 0.01 * g[i] * g[i]; "
        "y[i] = p[i] - 0.001 * n[i] / (sqrt(abs(u[i])) + 1e-8); -> y, n, u",
        "i=37",
    ),
    # shapes
    "transpose": ("y[j,i] = x[i,j]", "i=9 j=7"),
    "permute": ("y[c,a,b] = x[a,b,c]", "a=3 b=4 c=5"),
    "flip": ("y[i,j] = x[i, 6 - j]", "i=3 j=7"),
    "roll": ("y[i] = x[(i + 3) % 10]", "i=10"),
    "repeat": ("y[i,j] = x[j // 3]", "i=2 j=12"),
    "tile": ("y[i] = x[i % 4]", "i=12"),
    "broadcast": ("y[i,j] = x[j]", "i=3 j=4"),
    "diagonal": ("y[i] = x[i,i]", "i=6"),
    "diagonal matrix": ("y[i,j] = select(i == j, x[i], 0)", "i=5 j=5"),
    "lower triangle": ("y[i,j] = select(j <= i, x[i,j], 0)", "i=6 j=6"),
    "pad": ("x: float32[7]; y[i] = inside(x[i - 2], 0)", "i=11"),
    "pad by another value": ("x: float32[4,5]; y[i,j] = inside(x[i-1,j-1], -1)", "i=6 j=7"),
    "pad by reflection": ("y[i] = select(i < 2, x[(2 - i + 7) % 7], x[(i - 2 + 7) % 7])", "i=7"),
    "concatenate": (
        "a: float32[3]; b: float32[4]; y[i] = inside(a[i], 0) + inside(b[i - 3], 0)",
        "i=7",
    ),
    "concatenate rows": (
        "a: float32[5,3]; b: float32[5,4]; "
        "y[r,c] = select(c < 3, inside(a[r,c], 0), inside(b[r,c-3], 0))",
        "r=5 c=7",
    ),
    "stack": ("y[i,k] = select(k == 0, a[i], b[i])", "i=5 k=2"),
    "slice": ("x: float32[10]; y[i] = x[i + 3]", "i=5"),
    "stride": ("x: float32[12]; y[i] = x[2 * i + 1]", "i=6"),
    "slice of a larger array": ("x: float32[5,6](leading=9); y[i,j] = 2 * x[i,j]", "i=5 j=6"),
    "into a larger array": ("y: float32[5,6](leading=9); y[i,j] = x[i,j] + 1", "i=5 j=6"),
    "pixel shuffle": (
        "y[c,h,w] = x[4*c + 2*(h % 2) + w % 2, h // 2, w // 2]",
        "c=2 h=4 w=6",
    ),
    "nearest upsampling": ("y[c,h,w] = x[c, h // 2, w // 2]", "c=2 h=6 w=6"),
    "bilinear upsampling with zero borders": (
        "x: float32[2,4]; y[c,i] = 0.75 * inside(x[c, i // 2], 0) "
        "+ 0.25 * inside(x[c, (i + 1) // 2 * 2 - i + i // 2 - 1], 0)",
        "c=2 i=8",
    ),
    "bilinear upsampling by tables": (
        "a: int32[i](index < 4); b: int32[i](index < 4); "
        "y[c,i] = w[i] * x[c, a[i]] + (1 - w[i]) * x[c, b[i]]",
        "c=2 i=8",
    ),
    "unfold": ("x: float32[9]; y[p,r] = inside(x[p + r - 1], 0)", "p=9 r=3"),
    "im2col": (
        "x: float32[2,5,5]; y[c,r,s,p,q] = inside(x[c,p+r-1,q+s-1], 0)",
        "c=2 r=3 s=3 p=5 q=5",
    ),
    "one hot": ("t: int32[r](index < 6); y[r,c] = select(t[r] == c, 1, 0)", "r=5 c=6"),
    "positions": ("y[i,j] = i * 7 + j", "i=5 j=7"),
    "a checkerboard": ("y[i,j] = select((i + j) % 2 == 0, x[i,j], -x[i,j])", "i=5 j=6"),
    # gathers
    "gather": ("t: int32[r](index < 9); y[r] = x[t[r]]", "r=6"),
    "embedding": ("t: int32[r](index < 9); y[r,d] = w[t[r],d]", "r=6 d=8"),
    "gather along an axis": (
        "t: int32[r](index < c); y[r] = x[r,t[r]]; z = sum[c](u[c]); -> y, z",
        "r=6 c=5",
    ),
    "embedding bag": ("t: int32[b,j](index < 9); y[b,d] = mean[j](w[t[b,j],d])", "b=3 j=4 d=8"),
    "embedding bag, longest": (
        "t: int32[b,j](index < 9); y[b,d] = max[j](w[t[b,j],d])",
        "b=3 j=4 d=8",
    ),
    "embedding, scaled by weights": (
        "t: int32[b,j](index < 9); y[b,d] = sum[j](s[b,j] * w[t[b,j],d])",
        "b=3 j=4 d=8",
    ),
    "rows at the best places": (
        "a[r] = argmax[c](x[r,c]); y[r,d] = w[a[r],d]; -> y",
        "r=4 c=5 d=6",
    ),
    "value at the best place": ("a[r] = argmax[c](x[r,c]); y[r] = x[r,a[r]]; -> y, a", "r=4 c=5"),
    "mixture of experts, one each": (
        "e[t] = argmax[x](g[t,x]); y[t,n] = sum[k](h[t,k] * w[e[t],k,n])",
        "t=4 x=3 k=5 n=6",
    ),
    # reductions
    "sum": ("y = sum[i](x[i])", "i=300"),
    "sum of rows": ("y[r] = sum[c](x[r,c])", "r=5 c=40"),
    "sum of columns": ("y[c] = sum[r](x[r,c])", "r=40 c=5"),
    "mean": ("y[r] = mean[c](x[r,c])", "r=5 c=40"),
    "variance": ("y[r] = var[c](x[r,c])", "r=5 c=40"),
    "deviation": ("y[r] = sqrt(var[c](x[r,c]) + 1e-5)", "r=5 c=40"),
    "product": ("y[r] = prod[c](1 + x[r,c])", "r=5 c=12"),
    "norm": ("y[r] = sqrt(sum[c](x[r,c] * x[r,c]))", "r=5 c=40"),
    "norm of powers": ("y[r] = sum[c](abs(x[r,c]))", "r=5 c=40"),
    "greatest": ("y[r] = max[c](x[r,c])", "r=5 c=40"),
    "least and greatest": ("a[r] = min[c](x[r,c]); b[r] = max[c](x[r,c]); -> a, b", "r=5 c=40"),
    "argmax": ("y[r] = argmax[c](x[r,c])", "r=5 c=40"),
    "argmin of all": ("y = argmin[r,c](x[r,c])", "r=5 c=40"),
    "logsumexp": ("y[r] = logsumexp[c](x[r,c])", "r=5 c=40"),
    "any": ("y[r] = max[c](select(x[r,c] > 0.9, 1, 0))", "r=5 c=40"),
    "count": ("y[r] = sum[c](select(x[r,c] > 0, 1, 0))", "r=5 c=40"),
    "count of int32": ("x: int32; y[r] = sum[c](select(x[r,c] > 0, 1, 0))", "r=5 c=40"),
    "a mean, then the greatest": (
        "m[b,j] = mean[i](x[b,j,i]); a[b] = max[j](m[b,j])",
        "b=3 j=5 i=9",
    ),
    "greatest of means of squares": (
        "m[b,j] = mean[i](x[b,j,i] * x[b,j,i]); a[b] = max[j](m[b,j])",
        "b=3 j=5 i=9",
    ),
    "mean of greatest": ("m[b,j] = max[i](x[b,j,i]); a[b] = mean[j](m[b,j])", "b=3 j=5 i=9"),
    "masked mean": (
        "y[b,d] = sum[t](x[b,t,d] * m[b,t]) / sum[t](m[b,t] + 1)",
        "b=2 t=7 d=5",
    ),
    "mean by lengths": (
        "n: int32[b](index < 8); where t < n[b]; y[b,d] = sum[t](x[b,t,d])",
        "b=3 t=7 d=5",
    ),
    "masked mean by lengths": (
        "n: int32[b](index < 8); where t < n[b]; y[b,d] = sum[t](x[b,t,d]) / max(sum[t](1), 1)",
        "b=3 t=7 d=5",
    ),
    "greatest by lengths": (
        "n: int32[b](index < 8); where t < n[b]; y[b] = max[t](x[b,t])",
        "b=3 t=7",
    ),
    "segment sum by ends": (
        "s: int32[g](index < 9); e: int32[g](index < 9); where i >= s[g] and i < e[g]; "
        "y[g] = sum[i](x[i])",
        "g=3 i=8",
    ),
    "histogram": ("t: int32[i](index < 6); y[k] = sum[i](select(t[i] == k, 1, 0))", "i=30 k=6"),
    "cumulative sum": ("where k <= j; y[i,j] = sum[k](x[i,k])", "i=4 j=9 k=9"),
    "cumulative sum by select": ("y[i,j] = sum[k](select(k <= j, x[i,k], 0))", "i=4 j=9 k=9"),
    "cumulative greatest": ("where k <= j; y[i,j] = max[k](x[i,k])", "i=4 j=9 k=9"),
    "cumulative product": ("where k <= j; y[i,j] = prod[k](1 + x[i,k])", "i=4 j=9 k=9"),
    "moving average": ("where k <= j and k > j - 3; y[i,j] = mean[k](x[i,k])", "i=4 j=9 k=9"),
    # norms and softmaxes
    "softmax": ("y[r,c] = softmax[c](x[r,c])", "r=5 c=40"),
    "softmax of channels": ("y[n,c,h] = softmax[c](x[n,c,h])", "n=2 c=5 h=6"),
    "log softmax": ("y[r,c] = x[r,c] - logsumexp[c](x[r,c])", "r=5 c=40"),
    "softmax by lengths": (
        "n: int32[r](index < 9); where c < n[r]; m[r] = max[c](x[r,c]); "
        "s[r] = sum[c](exp(x[r,c] - m[r])); "
        "y[r,c] = select(c < n[r], exp(x[r,c] - m[r]) / s[r], 0)",
        "r=5 c=8",
    ),
    "causal softmax": (
        "where k <= j; m[j] = max[k](x[j,k]); s[j] = sum[k](exp(x[j,k] - m[j])); "
        "y[j,k] = select(k <= j, exp(x[j,k] - m[j]) / s[j], 0)",
        "j=7 k=7",
    ),
    "layernorm": (
        "y[r,c] = (x[r,c] - mean[c](x[r,c])) / sqrt(var[c](x[r,c]) + 1e-5) * g[c] + b[c]",
        "r=5 c=40",
    ),
    "rmsnorm": ("y[r,c] = x[r,c] / sqrt(mean[c](x[r,c] * x[r,c]) + 1e-6) * g[c]", "r=5 c=40"),
    "batch norm": ("y[n,c,h] = (x[n,c,h] - m[c]) / sqrt(abs(v[c]) + 1e-5)", "n=2 c=5 h=6"),
    "batch norm with statistics": (
        "m[c] = mean[n,h](x[n,c,h]); v[c] = var[n,h](x[n,c,h]); "
        "y[n,c,h] = (x[n,c,h] - m[c]) / sqrt(v[c] + 1e-5); -> y, m, v",
        "n=2 c=5 h=6",
    ),
    "group norm": (
        "y[n,g,c,h] = (x[n,g,c,h] - mean[c,h](x[n,g,c,h])) / sqrt(var[c,h](x[n,g,c,h]) + 1e-5)",
        "n=2 g=3 c=4 h=5",
    ),
    "rmsnorm and quantise": (
        "y: int8; n[r,c] = x[r,c] / sqrt(mean[c](x[r,c] * x[r,c]) + 1e-6); "
        "s[r] = max[c](abs(n[r,c])); y[r,c] = 127 * n[r,c] / s[r]; -> y, s",
        "r=5 c=40",
    ),
    # losses
    "mean squared error": ("y = mean[r,c]((x[r,c] - t[r,c]) * (x[r,c] - t[r,c]))", "r=5 c=8"),
    "huber": (
        "e[i] = abs(x[i] - t[i]); y = mean[i](select(e[i] < 1, 0.5 * e[i] * e[i], e[i] - 0.5))",
        "i=40",
    ),
    "binary cross entropy": (
        "y = mean[i](max(x[i], 0) - x[i] * t[i] + log(1 + exp(-abs(x[i]))))",
        "i=40",
    ),
    "cross entropy": (
        "l: int32[r](index < c); y[r] = logsumexp[c](x[r,c]) - x[r,l[r]]",
        "r=6 c=20",
    ),
    "cross entropy with its mean": (
        "l: int32[r](index < c); p[r] = logsumexp[c](x[r,c]) - x[r,l[r]]; y = sum[r](p[r]) / 6",
        "r=6 c=20",
    ),
    "cross entropy by mean": (
        "l: int32[r](index < c); y = mean[r](logsumexp[c](x[r,c]) - x[r,l[r]])",
        "r=6 c=20",
    ),
    "negative log likelihood": ("l: int32[r](index < 9); y = -mean[r](x[r,l[r]])", "r=6"),
    "kl divergence": ("y = sum[r,c](exp(t[r,c]) * (t[r,c] - x[r,c])) / 5", "r=5 c=8"),
    "cosine similarity": (
        "y[r] = sum[c](a[r,c] * b[r,c]) "
        "/ sqrt(sum[c](a[r,c]*a[r,c]) * sum[c](b[r,c]*b[r,c]) + 1e-8)",
        "r=5 c=8",
    ),
    "cosine similarity of all pairs": (
        "y[i,j] = sum[k](a[i,k] * b[j,k]) "
        "/ sqrt(sum[k](a[i,k]*a[i,k]) * sum[k](b[j,k]*b[j,k]) + 1e-8)",
        "i=5 j=6 k=8",
    ),
    "distances of all pairs": ("y[i,j] = sum[k](abs(a[i,k] - b[j,k]))", "i=5 j=6 k=8"),
    "triplet loss": (
        "y = mean[r](relu(sum[c]((a[r,c]-p[r,c])*(a[r,c]-p[r,c])) "
        "- sum[c]((a[r,c]-n[r,c])*(a[r,c]-n[r,c])) + 1))",
        "r=5 c=8",
    ),
    # products
    "matmul": ("y[i,j] = sum[k](a[i,k] * b[k,j])", "i=5 j=6 k=8"),
    "matmul of float16": ("y[i,j] = sum[k](a[i,k] * b[k,j])", "i=5 j=6 k=8 dtype=float16"),
    "matmul of int8": ("y[i,j] = sum[k](a[i,k] * b[k,j])", "i=5 j=6 k=8 dtype=int8"),
    "matmul of int8 weights": ("w: int8; y[i,j] = sum[k](a[i,k] * w[k,j]) * s[j]", "i=5 j=6 k=8"),
    "matmul of int8 weights by groups": (
        "w: int8; y[i,j] = sum[k](a[i,k] * w[k,j] * s[k // 4,j])",
        "i=5 j=6 k=8",
    ),
    "matmul of float64": ("y[i,j] = sum[k](a[i,k] * b[k,j])", "i=5 j=6 k=8 dtype=float64"),
    "matvec": ("y[i] = sum[k](a[i,k] * x[k])", "i=5 k=40"),
    "outer product": ("y[i,j] = a[i] * b[j]", "i=5 j=6"),
    "batched matmul": ("y[b,i,j] = sum[k](a[b,i,k] * c[b,k,j])", "b=3 i=5 j=6 k=8"),
    "bilinear form": ("y[i] = sum[k,l](a[i,k] * w[k,l] * b[i,l])", "i=5 k=6 l=7"),
    "einsum of three": ("y[i,l] = sum[j,k](a[i,j] * b[j,k] * c[k,l])", "i=4 j=5 k=6 l=7"),
    "triangular product": ("where k <= m; y[m,n] = sum[k](a[m,k] * b[k,n])", "m=6 n=5 k=6"),
    "symmetric product": ("y[i,j] = sum[k](a[i,k] * a[j,k])", "i=5 j=5 k=8"),
    "low rank": (
        "y[i,o] = sum[k](x[i,k]*w[k,o]) + sum[r](sum[k](x[i,k]*a[k,r]) * b[r,o])",
        "i=5 k=8 o=6 r=2",
    ),
    "two layers": ("y[i,o] = sum[h](relu(sum[k](x[i,k]*w[k,h])) * v[h,o])", "i=5 k=8 o=6 h=7"),
    "trace": ("y = sum[i](x[i,i])", "i=9"),
    "kronecker product": ("y[i,j] = a[i // 3, j // 2] * b[i % 3, j % 2]", "i=6 j=8"),
    # convolutions and pools
    "conv1d": (
        "x: float32[3,9]; y[o,p] = sum[c,r](inside(x[c,p+r-1], 0) * w[o,c,r])",
        "o=4 c=3 p=9 r=3",
    ),
    "causal conv1d": (
        "x: float32[3,9]; y[c,p] = sum[r](inside(x[c,p+r-2], 0) * w[c,r])",
        "c=3 p=9 r=3",
    ),
    "conv2d": (
        "x: float32[3,6,6]; y[o,p,q] = sum[c,r,s](inside(x[c,p+r-1,q+s-1], 0) * w[o,c,r,s])",
        "o=4 c=3 p=6 q=6 r=3 s=3",
    ),
    "conv2d of float16": (
        "x: float16[3,6,6]; y[o,p,q] = sum[c,r,s](inside(x[c,p+r-1,q+s-1], 0) * w[o,c,r,s])",
        "o=4 c=3 p=6 q=6 r=3 s=3 dtype=float16",
    ),
    "transposed conv2d": (
        "x: float32[3,5,5]; where (p+1-r) % 2 == 0 and (q+1-s) % 2 == 0; "
        "y[o,p,q] = sum[c,r,s](inside(x[c,(p+1-r)//2,(q+1-s)//2], 0) * w[c,o,r,s])",
        "c=3 o=4 p=10 q=10 r=3 s=3",
    ),
    "max pool": ("y[c,p,q] = max[r,s](x[c,2*p+r,2*q+s])", "c=2 p=3 q=3 r=2 s=2"),
    "padded max pool": (
        "x: float32[2,6]; y[c,p] = max[r](inside(x[c,2*p+r-1], -inf))",
        "c=2 p=3 r=3",
    ),
    "average pool that ends early": (
        "where 3*p + r < 7 and 3*q + t < 7; y[c,p,q] = mean[r,t](x[c,3*p+r,3*q+t])",
        "c=2 p=3 q=3 r=3 t=3",
    ),
    "max pool that ends early": ("where 3*p + r < 7; y[c,p] = max[r](x[c,3*p+r])", "c=2 p=3 r=3"),
    "place in a pool": ("y[c,p] = argmax[r](x[c,2*p+r])", "c=2 p=3 r=2"),
    "global average pool": ("y[n,c] = mean[h,w](x[n,c,h,w])", "n=2 c=3 h=4 w=5"),
    # attention and its parts
    "attention": (
        "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 0.25) * v[j,e])",
        "i=5 j=7 d=8 e=8",
    ),
    "causal attention": (
        "where j <= i; y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 0.25) * v[j,e])",
        "i=7 j=7 d=8 e=8",
    ),
    "attention by lengths": (
        "n: int32[b](index < 8); where j < n[b]; "
        "y[b,e] = sum[j](softmax[j](sum[d](q[b,d] * k[b,j,d]) * 0.25) * v[b,j,e])",
        "b=3 j=7 d=8 e=8",
    ),
    "rotary halves": (
        "y[t,d] = x[t,d] * c[t,d % 4] + select(d < 4, -1, 1) * x[t,(d + 4) % 8] * s[t,d % 4]",
        "t=5 d=8",
    ),
    "linear attention": (
        "y[i,e] = sum[d](relu(q[i,d]) * sum[j](relu(k[j,d]) * v[j,e]))",
        "i=5 j=7 d=8 e=6",
    ),
    "alibi bias": ("y[h,i,j] = x[h,i,j] - s[h] * abs(i - j)", "h=2 i=5 j=5"),
    # gradients
    "gradient of softmax": ("y[r,c] = p[r,c] * (g[r,c] - sum[c](g[r,c] * p[r,c]))", "r=5 c=8"),
    "gradient of relu": ("y[i] = select(x[i] > 0, g[i], 0)", "i=37"),
    "gradient of weights": ("y[k,o] = sum[b](x[b,k] * g[b,o])", "b=9 k=5 o=6"),
    "gradient of an embedding": (
        "t: int32[r](index < 6); y[w,d] = sum[r](select(t[r] == w, g[r,d], 0))",
        "r=9 w=6 d=4",
    ),
    "gradient of layernorm": (
        "a[r] = mean[c](g[r,c]); b[r] = mean[c](g[r,c] * x[r,c]); "
        "y[r,c] = s[r] * (g[r,c] - a[r] - x[r,c] * b[r])",
        "r=5 c=8",
    ),
    # whole numbers
    "sum of int32": ("x: int32; y[r] = sum[c](x[r,c])", "r=5 c=9"),
    "greatest of int8": ("x: int8; y[r] = max[c](x[r,c])", "r=5 c=9"),
    "remainders": ("x: int32; y[i] = x[i] % 5 + x[i] // 3", "i=37"),
    "parity": ("x: int32; y[i] = select(x[i] % 2 == 0, 1, -1)", "i=37"),
    "float16 output": ("y: float16; y[i,j] = exp(x[i,j])", "i=5 j=8"),
    "everything in float64": ("y[r,c] = softmax[c](x[r,c]) + 0.5", "r=5 c=8 dtype=float64"),
}
"""Operators of everyday models: those of PyTorch's functional interface that the language can
write, and what people put between them."""


def text_of(name: str) -> str:
    """What :func:`spaces.operators.workload` reads."""
    program, words = OPERATORS[name]
    return f'"{program}" {words}'
