"""The CUDA C++ that kernels of scans share: threads that join what runs along a row.

A state is joined by a structure, such as ``tw_of_sum``, whose ``join(a, b)`` makes one of two and
whose ``nothing()`` is that of no elements:

- ``tw_run<F, V, N, W, BACK, BEFORE>(s, lane)``: makes of the elements of ``V`` vectors of ``N`` the
  states that end with them, or, if ``BEFORE``, those before them, over all ``W`` lanes of a group;
  ``lane`` is that of the thread, in the order of the scan. Returns the state of all elements.
- ``tw_whole<F, W>(x)``: the state of all lanes of a group.
- ``tw_groups<F, G>(slots, step, group, before, all)``: the states of all groups before, and of all,
  from their slots in shared memory.
- ``tw_onto<F>(s, before)``: joins a state to all those behind it.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.spaces.cuda.reducers import joined, typed
from tilewright.spaces.cuda.scalar_code import literal
from tilewright.spaces.language.functions import REDUCERS

_FUNCTIONS = """\
template <class F, int W> TW_INLINE T tw_lanes(T x, int lane) {
#pragma unroll
  for (int d = 1; d < W; d *= 2) {
    const T other = tw::shuffle(x, ((int)threadIdx.x - d) & 31);
    if (lane >= d) x = F::join(other, x);
  }
  return x;
}
template <class F, int V, int N, int W, bool BACK, bool BEFORE>
TW_INLINE T tw_run(T (&s)[V * N], int lane) {
  T all = F::nothing();
#pragma unroll
  for (int k = 0; k < V; k++) {
    const int v = BACK ? V - 1 - k : k;
    T own = F::nothing();
#pragma unroll
    for (int n = 0; n < N; n++) {
      const int i = v * N + (BACK ? N - 1 - n : n);
      const T joined = F::join(own, s[i]);
      s[i] = BEFORE ? own : joined;
      own = joined;
    }
    T before = all;
    if constexpr (W > 1) {
      const T until = tw_lanes<F, W>(own, lane);
      const T other = tw::shuffle(until, ((int)threadIdx.x - 1) & 31);
      if (lane > 0) before = F::join(all, other);
      own = tw::shuffle(until, (int)threadIdx.x | (W - 1));
    }
#pragma unroll
    for (int n = 0; n < N; n++) s[v * N + n] = F::join(before, s[v * N + n]);
    all = F::join(all, own);
  }
  return all;
}
template <class F, int W> TW_INLINE T tw_whole(T x) {
#pragma unroll
  for (int d = 1; d < W; d *= 2) x = F::join(x, tw::shuffle_xor(x, d));
  return x;
}
template <class F, int G>
TW_INLINE void tw_groups(u32 slots, int step, int group, T &before, T &all) {
  before = all = F::nothing();
#pragma unroll
  for (int g = 0; g < G; g++) {
    const T other = tw::load_shared<T>(slots + g * step);
    if (g < group) before = F::join(before, other);
    all = F::join(all, other);
  }
}
template <class F, int M> TW_INLINE void tw_onto(T (&s)[M], T before) {
#pragma unroll
  for (int i = 0; i < M; i++) s[i] = F::join(before, s[i]);
}
"""


def scan_functions(reducers: Iterable[str], real: str) -> str:
    """Return the C text for states of these reducers, on the type ``real``."""
    structures = "".join(_structure(reducer, real) for reducer in sorted(set(reducers)))
    return structures + typed(_FUNCTIONS, real)


def _structure(reducer: str, real: str) -> str:
    nothing, head = literal(REDUCERS[reducer].identity, real), "static __device__ __forceinline__"
    return typed(
        f"struct tw_of_{reducer} {{\n"
        f"  {head} T join(T a, T b) {{ return {joined(reducer, 'a', 'b')}; }}\n"
        f"  {head} T nothing() {{ return {nothing}; }}\n"
        "};\n",
        real,
    )
