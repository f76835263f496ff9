"""Programs that the tests of loops compute, each of another kind."""

SERVED = {
    "a softmax": "y[r,c] = softmax[c](x[r,c])|r=5 c=70",
    "a pool that ends early": "where 3*p + r < 7 and 3*q + t < 7; "
    "y[b,p,q] = mean[r,t](x[b,3*p+r,3*q+t])|b=2 p=3 q=3 r=3 t=3",
    "a cumulative sum": "where k <= j; y[i,j] = sum[k](x[i,k])|i=4 j=9 k=9",
    "a transposed convolution": "x: float32[3,5,5]; where (p+1-r) % 2 == 0 and (q+1-t) % 2 == 0; "
    "y[o,p,q] = sum[c,r,t](inside(x[c,(p+1-r)//2,(q+1-t)//2], 0) * w[c,o,r,t])"
    "|c=3 o=4 p=10 q=10 r=3 t=3",
    "a mean first": "m[b,j] = mean[i](x[b,j,i]); a[b] = max[j](m[b,j]); -> a, m|b=3 j=5 i=33",
    "a loss": "l: int32[r](index < c); p[r] = logsumexp[c](x[r,c]) - x[r,l[r]]; "
    "y = sum[r](p[r]) / 7|r=7 c=20",
    "whole numbers": "a: int8; y[i] = max[j](sum[k](a[i,k] * a[j,k]))|i=3 j=3 k=4",
    "a place, and what is there": "y[i] = argmax[j,k](x[i,j,k]); "
    "v[i] = w[y[i]]; -> y, v|i=6 j=5 k=8",
    "the least place": "y = argmin[j,k](x[j,k])|k=40 j=5",
    "a product of all": "y[i] = prod[j](1.5 * x[i,j])|i=4 j=50",
    "bits of 16": "x: float16; y: bfloat16; y[i] = sum[k](exp(x[i,k]))|i=30 k=40",
    "bits of 8": "x: float8_e4m3fn; y: float8_e5m2; y[i] = sum[k](exp(x[i,k]))|i=30 k=40",
    "64 bits": "x: float64; y: float64; y[i] = sum[k](gelu(x[i,k]))|i=30 k=40",
    "quantised": "y: int8; m[i] = max[j](abs(x[i,j])); "
    "y[i,j] = 127 * x[i,j] / m[i]; -> y, m|i=9 j=30",
    "a table in a sum": "t: int32[b,j](index < 9); y[b,d] = mean[j](w[t[b,j], d])|b=3 j=4 d=5",
    "a range of a table": "row: int32[e](sorted < r); where row[e] == r; "
    "y[r,c] = sum[e](x[e,c])|r=7 e=50 c=3",
    "a range of pointers": "p: int32[r+1](sorted < e+1); where p[r] <= e and e < p[r + 1]; "
    "y[r] = argmax[e](x[e])|r=7 e=50",
    "a slice, turned": "y: float32[5,6](order=(1,0), leading=9); y[i,j] = 2 * x[j,i]|i=5 j=6",
    "borders": "x: float32[9]; y[i] = inside(x[i - 2], -1.5) + inside(x[2*i], 3)|i=12",
    "large whole numbers": "z: float32[5000]; y[i,j] = z[(i*16000001 + j) // 1000003]|i=300 j=20",
    "int8 products": "C: int32; C[m,n] = sum[k](a[m,k] * b[k,n]) * 3 - m|m=5 n=6 k=7 dtype=int8",
}
"""A program's text and its parameters, by what it is."""


def text_of(name: str) -> str:
    """What :func:`spaces.operators.workload` reads."""
    text, words = SERVED[name].split("|")
    return f'"{text}" {words}'
