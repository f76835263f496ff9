"""Programs of sums over pairs of rows and keys: gradients of attention, and others."""

from __future__ import annotations

from tilewright.spaces.language import program
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

ATTENTION = "attention b=1 h=2 i=37 j=53 d=19"
GRADIENTS = {
    "plain": (ATTENTION, "q,k,v"),
    "causal": ("attention b=1 h=2 i=70 j=75 d=24 mask=causal", "q,k,v"),
    "groups": ("attention b=2 h=4 i=33 j=40 d=16 kv=2 mask=causal", "q,k,v"),
    "one head of keys": ("attention b=1 h=3 i=20 j=35 d=8 kv=1", "q,k,v"),
    "window, softcap, slopes": (
        "attention b=1 h=4 i=37 j=53 d=19 kv=2 window=8 softcap=5.0 alibi=1",
        "q,k,v",
    ),
    "window of one": ("attention b=1 h=4 i=37 j=37 d=16 kv=4 mask=causal window=1", "q,k,v"),
    "one query": ("attention b=1 h=2 i=1 j=53 d=19", "q,k,v"),
    "one key": ("attention b=2 h=2 i=1 j=1 d=19 mask=causal", "q,k,v"),
    "queries alone": (ATTENTION, "q"),
    "keys and values": (f"{ATTENTION} mask=causal", "k,v"),
    "values of a group": (f"{ATTENTION} kv=1", "v"),
    "bfloat16": (f"{ATTENTION} dtype=bfloat16 mask=causal", "q,k,v"),
}
OTHERS = {
    "distances": "s[b,i,j] = sum[d](x[b,i,d] * u[b,j,d]); n[b,i] = sum[d](x[b,i,d] * x[b,i,d])\n"
    "m[b,j] = sum[d](u[b,j,d] * u[b,j,d])\n"
    "y[b,i,e] = sum[j](exp(2 * s[b,i,j] - n[b,i] - m[b,j]) * v[b,j,e])\n"
    "z[b,j,e] = sum[i](exp(2 * s[b,i,j] - n[b,i] - m[b,j]) * w[b,i,e])",
    "documents": "a: int32[i](index < 4); l: int32[j](index < 4); where a[i] == l[j]\n"
    "s[i,j] = sum[d](x[i,d] * u[j,d])\ny[i,e] = sum[j](tanh(s[i,j]) * v[j,e])\n"
    "z[j,e] = sum[i](s[i,j] * c[i,j] * w[i,e])",
    "gathered keys": "at: int32[j](index < 7)\ns[i,j] = sum[d](x[i,d] * u[at[j], d])\n"
    "y[i,e] = sum[j](exp(s[i,j]) * v[j,e])\nz[j,e] = sum[i](exp(s[i,j]) * w[i,e])",
    "an order of keys": "s[i,j] = sum[d](x[d,i] * u[d,j])\n"
    "y[e,i] = sum[j](relu(s[i,j]) * v[e,j]); z[e,j] = sum[i](s[i,j] * w[e,i])",
}
EXTENTS = {
    "distances": {"b": 2, "i": 21, "j": 34, "d": 12, "e": 20},
    "documents": {"i": 30, "j": 41, "d": 12, "e": 20},
    "gathered keys": {"i": 9, "j": 24, "d": 12, "e": 20},
    "an order of keys": {"i": 30, "j": 41, "d": 12, "e": 20},
}


def backward(name: str, dtype: str = "float32") -> Workload:
    """The gradient of attention of a name, of scores and weights that its forward pass saves."""
    text, wrt = GRADIENTS[name]
    text = text if "dtype" in text else f"{text} dtype={dtype}"
    return workload_of(gradient(text, wrt, "y,lse"))


def other(name: str, dtype: str = "float32") -> Workload:
    """Another program of sums over pairs."""
    made = program(f"{OTHERS[name]}\n-> y, z", dtype=dtype, **EXTENTS[name])
    return Workload("program", (), made, "")
