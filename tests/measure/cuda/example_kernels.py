"""Three whole kernels of the kinds that templates make, to be run, mutated and compiled."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.kernels import rewritten
from tests.measure.cuda.cuda_kernels import kernel, operand, small_integers
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernel import Kernel


@dataclass(frozen=True)
class Example:
    """A kernel, its inputs and the exact result."""

    kernel: Kernel
    inputs: dict[str, np.ndarray]
    expected: np.ndarray

    def changed(self, old: str, new: str) -> Example:
        """The same with a change of its source that must apply; for planting bugs."""
        assert old in self.kernel.source.body, old
        return replace(
            self, kernel=rewritten(self.kernel, self.kernel.source.body.replace(old, new))
        )


SIMT = """
  // C[64, 64] = A[64, 32] B[32, 64], tiles of 8 along K in two buffers, 4 x 4 a thread
  const u32 s = tw::shared_base();
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  auto load = [&](int k) {
    const u32 a = s + k % 2 * 4096, b = a + 2048;
    float x[2];
    tw::load_global<2>(x, A + t / 4 * 32 + k * 8 + t % 4 * 2);
    for (int i = 0; i < 2; i++) tw::store_shared(a + ((t % 4 * 2 + i) * 64 + t / 4) * 4, x[i]);
    tw::load_global<2>(x, B + (k * 8 + t / 32) * 64 + t % 32 * 2);
    tw::store_shared<2>(b + (t / 32 * 64 + t % 32 * 2) * 4, x);
  };
  float c[4][4] = {};
  load(0);
  tw::sync_block();
  for (int k = 0; k < 4; k++) {
    if (k < 3) load(k + 1);
    const u32 a = s + k % 2 * 4096, b = a + 2048;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float x[4], y[4];
      tw::load_shared<4>(x, a + (i * 64 + ty * 4) * 4);
      tw::load_shared<4>(y, b + (i * 64 + tx * 4) * 4);
#pragma unroll
      for (int m = 0; m < 4; m++)
#pragma unroll
        for (int n = 0; n < 4; n++) c[m][n] = tw::fused(x[m], y[n], c[m][n]);
    }
    tw::sync_block();
  }
#pragma unroll
  for (int m = 0; m < 4; m++) tw::store_global<4>(C + (ty * 4 + m) * 64 + tx * 4, c[m]);"""


def simt() -> Example:
    inputs = {
        "A": small_integers(1, (64, 32), np.float32),
        "B": small_integers(2, (32, 64), np.float32),
    }
    made = kernel("simt", SIMT, inputs, operand("C", "float32", (64, 64)), threads=256, shared=8192)
    return Example(made, inputs, inputs["A"] @ inputs["B"])


TENSOR_CORE = """
  // C[64, 64] = A[64, 128] B[128, 64], 32 of K a stage, three stages, four warps of 32 x 32
  const u32 s = tw::shared_base();
  const int t = threadIdx.x, lane = t % 32, warp = t / 32, wm = warp / 2 * 32, wn = warp % 2 * 32;
  auto a_at = [](int row, int col) { return (u32)(row * 64 + ((col / 8 ^ row / 2 % 4) << 4)); };
  auto b_at = [](int row, int col) { return (u32)(row * 128 + ((col / 8 ^ row % 8) << 4)); };
  auto load = [&](int k) {
    const u32 a = s + k % 3 * 8192, b = a + 4096;
#pragma unroll
    for (int i = t; i < 256; i += 128) {
      tw::cp_async<16>(a + a_at(i / 4, i % 4 * 8), A + i / 4 * 128 + k * 32 + i % 4 * 8);
      tw::cp_async<16>(b + b_at(i / 8, i % 8 * 8), B + (k * 32 + i / 8) * 64 + i % 8 * 8);
    }
  };
  float c[2][4][4] = {};
  load(0);
  tw::cp_async_commit();
  load(1);
  tw::cp_async_commit();
  for (int k = 0; k < 4; k++) {
    tw::cp_async_wait<1>();
    tw::sync_block();
    if (k + 2 < 4) load(k + 2);
    tw::cp_async_commit();
    const u32 a = s + k % 3 * 8192, b = a + 4096;
#pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      u32 x[2][4], y[4][2];
#pragma unroll
      for (int i = 0; i < 2; i++)
        tw::ldmatrix_x4(x[i], a + a_at(wm + i * 16 + lane % 16, kk + lane / 16 * 8));
#pragma unroll
      for (int j = 0; j < 4; j++) tw::ldmatrix_x2_trans(y[j], b + b_at(kk + lane % 16, wn + j * 8));
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) tw::mma_m16n8k16_f32_f16_f16(c[i][j], x[i], y[j]);
    }
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float *at = C + (wm + i * 16 + lane / 4) * 64 + wn + j * 8 + lane % 4 * 2;
      tw::store_global<2>(at, c[i][j]);
      tw::store_global<2>(at + 8 * 64, c[i][j] + 2);
    }"""


def tensor_core() -> Example:
    inputs = {
        "A": small_integers(3, (64, 128), np.float16),
        "B": small_integers(4, (128, 64), np.float16),
    }
    out = operand("C", "float32", (64, 64))
    made = kernel("tensor_core", TENSOR_CORE, inputs, out, threads=128, shared=3 * 8192)
    return Example(made, inputs, inputs["A"].astype("f") @ inputs["B"].astype("f"))


HOPPER = """
  // C[256, 128] = A[256, 320] B[128, 320]^T in tiles of 128 x 64 x 64, three stages. Clusters of
  // two share B by multicast; a producer warpgroup, two consumers of 64 rows; TMA stores.
  constexpr int S = 3, T = 5, TILES = 2;
  const u32 a = tw::shared_base(), b = a + S * 16384, c = b + S * 8192;
  const u32 full = c + 16384, empty = full + S * 8;
  const int t = threadIdx.x, group = t / 128;
  const u32 rank = tw::cluster_rank();
  if (t == 0) {
    for (int i = 0; i < S; i++) {
      tw::mbarrier_init(full + i * 8, 1);
      tw::mbarrier_init(empty + i * 8, 4);
    }
    tw::fence_barrier_init();
  }
  tw::sync_cluster();
  int stage = 0;
  u32 phase = 0;
  auto advance = [&] { if (++stage == S) { stage = 0; phase ^= 1; } };
  if (group == 0) {
    tw::registers_down<24>();
    if (t == 0) {
      for (int tile = 0; tile < TILES; tile++)
        for (int k = 0; k < T; k++) {
          tw::mbarrier_wait(empty + stage * 8, phase ^ 1);
          tw::mbarrier_arrive_expect(full + stage * 8, 24576);
          tw::tma_load_2d(a + stage * 16384, &mapA, full + stage * 8, k * 64, blockIdx.x * 128);
          tw::tma_multicast_2d(b + stage * 8192 + rank * 4096, &mapB, full + stage * 8, 3, k * 64,
                               tile * 64 + rank * 32);
          advance();
        }
      for (int i = 0; i < S; i++) {
        tw::mbarrier_wait(empty + stage * 8, phase ^ 1);
        advance();
      }
    }
  } else {
    tw::registers_up<240>();
    const int consumer = group - 1, lane = t % 32, warp = t / 32 % 4;
    for (int tile = 0; tile < TILES; tile++) {
      float d[32];
      for (int k = 0; k < T; k++) {
        tw::mbarrier_wait(full + stage * 8, phase);
        const u64 da = tw::wgmma_descriptor<128>(a + stage * 16384 + consumer * 8192, 16, 1024);
        const u64 db = tw::wgmma_descriptor<128>(b + stage * 8192, 16, 1024);
        tw::wgmma_fence();
#pragma unroll
        for (int kk = 0; kk < 4; kk++)
          tw::wgmma_m64n64k16_f32_bf16_bf16_ss(d, da + kk * 2, db + kk * 2, (k | kk) != 0);
        tw::wgmma_commit();
        tw::wgmma_wait<0>();
        if (t % 128 < 2) tw::mbarrier_arrive_remote(tw::map_shared(empty + stage * 8, t % 128));
        advance();
      }
      if (t % 128 == 0) tw::tma_wait_read<0>();
      tw::sync_named(1 + consumer, 128);
      const u32 mine = c + consumer * 8192;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        u32 r[4];
#pragma unroll
        for (int i = 0; i < 4; i++) r[i] = tw::pack2<bf16>(d[j * 8 + i * 2], d[j * 8 + i * 2 + 1]);
        const int row = warp * 16 + lane % 16, piece = j * 2 + lane / 16;
        tw::stmatrix_x4(mine + row * 128 + ((piece ^ row % 8) << 4), r);
      }
      tw::fence_async();
      tw::sync_named(1 + consumer, 128);
      if (t % 128 == 0) {
        tw::tma_store_2d(&mapC, mine, tile * 64, blockIdx.x * 128 + consumer * 64);
        tw::tma_commit();
      }
    }
    if (t % 128 == 0) tw::tma_wait_read<0>();
  }"""


def hopper() -> Example:
    element = dtype("bfloat16").numpy
    inputs = {
        "A": small_integers(5, (256, 320), element),
        "B": small_integers(6, (128, 320), element),
    }
    maps = {
        "mapA": TensorMapSpec("A", "bfloat16", (320, 256), (640,), (64, 128), 128),
        "mapB": TensorMapSpec("B", "bfloat16", (320, 128), (640,), (64, 32), 128),
        "mapC": TensorMapSpec("C", "bfloat16", (128, 256), (256,), (64, 64), 128),
    }
    made = kernel(
        "hopper",
        HOPPER,
        inputs,
        operand("C", "bfloat16", (256, 128)),
        threads=384,
        blocks=2,
        cluster=2,
        shared=3 * 24576 + 16384 + 48,
        maps=maps,
    )
    exact = inputs["A"].astype("f") @ inputs["B"].astype("f").T
    return Example(made, inputs, exact.astype(element))
