/* matmul m=100 n=70 k=50 dtype=float32 out=float32 a=row b=row c=row
   contraction: multiply=fma tile_rows=10 tile_vectors=2 row_workers=1 column_workers=1 order=columns_outer pack_left=False pack_right=True block_depth=256 block_rows=64 block_columns=64 unroll=2 prefetch=False */
static __attribute__((noinline)) void tw_bdc29f52ad25bb64_right(const float *restrict p, float *restrict q, long depth, long columns) {
  for (long i0 = 0, i0_most = (columns + 31) / 32, i0_end = i0_most < 2 ? i0_most : 2; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = depth, i1_end = i1_most < 64 ? i1_most : 64; i1 < i1_end; i1++) {
      const long left = columns - (32 * i0);
      if (0 < left) {
        tw_store_float32(q + 2048 * i0 + 32 * i1, tw_load_most_float32(p + 70 * i1 + 32 * i0, left - 0));
      }
      if (16 < left) {
        tw_store_float32(q + 2048 * i0 + 32 * i1 + 16, tw_load_most_float32(p + 70 * i1 + 32 * i0 + 16, left - 16));
      }
    }
  }
}
static __attribute__((noinline)) void tw_bdc29f52ad25bb64_10x32(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  vf c1_0 = {0};
  vf c1_1 = {0};
  vf c2_0 = {0};
  vf c2_1 = {0};
  vf c3_0 = {0};
  vf c3_1 = {0};
  vf c4_0 = {0};
  vf c4_1 = {0};
  vf c5_0 = {0};
  vf c5_1 = {0};
  vf c6_0 = {0};
  vf c6_1 = {0};
  vf c7_0 = {0};
  vf c7_1 = {0};
  vf c8_0 = {0};
  vf c8_1 = {0};
  vf c9_0 = {0};
  vf c9_1 = {0};
  const long start = depth < 30 ? depth : 30 + (depth - 30) % 2;
  for (long f0 = 0, f0_most = start, f0_end = f0_most < 32 ? f0_most : 32; f0 < f0_end; f0++) {
    __builtin_prefetch(s + 70 * (f0 / 3) + 16 * (f0 % 3), 1);
    const float *ak = a + f0;
    const float *bk = b + 32 * f0;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 = tw_fma(a0, b0, c0_0);
    c0_1 = tw_fma(a0, b1, c0_1);
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 = tw_fma(a1, b0, c1_0);
    c1_1 = tw_fma(a1, b1, c1_1);
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 = tw_fma(a2, b0, c2_0);
    c2_1 = tw_fma(a2, b1, c2_1);
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 = tw_fma(a3, b0, c3_0);
    c3_1 = tw_fma(a3, b1, c3_1);
    const vf a4 = tw_splat_float32(ak + 200);
    c4_0 = tw_fma(a4, b0, c4_0);
    c4_1 = tw_fma(a4, b1, c4_1);
    const vf a5 = tw_splat_float32(ak + 250);
    c5_0 = tw_fma(a5, b0, c5_0);
    c5_1 = tw_fma(a5, b1, c5_1);
    const vf a6 = tw_splat_float32(ak + 300);
    c6_0 = tw_fma(a6, b0, c6_0);
    c6_1 = tw_fma(a6, b1, c6_1);
    const vf a7 = tw_splat_float32(ak + 350);
    c7_0 = tw_fma(a7, b0, c7_0);
    c7_1 = tw_fma(a7, b1, c7_1);
    const vf a8 = tw_splat_float32(ak + 400);
    c8_0 = tw_fma(a8, b0, c8_0);
    c8_1 = tw_fma(a8, b1, c8_1);
    const vf a9 = tw_splat_float32(ak + 450);
    c9_0 = tw_fma(a9, b0, c9_0);
    c9_1 = tw_fma(a9, b1, c9_1);
  }
  for (long k0 = 0, k0_most = (depth - start + 1) / 2, k0_end = k0_most < 25 ? k0_most : 25; k0 < k0_end; k0++) {
    {
    const float *ak = a + start + 2 * k0;
    const float *bk = b + 32 * start + 64 * k0;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 = tw_fma(a0, b0, c0_0);
    c0_1 = tw_fma(a0, b1, c0_1);
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 = tw_fma(a1, b0, c1_0);
    c1_1 = tw_fma(a1, b1, c1_1);
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 = tw_fma(a2, b0, c2_0);
    c2_1 = tw_fma(a2, b1, c2_1);
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 = tw_fma(a3, b0, c3_0);
    c3_1 = tw_fma(a3, b1, c3_1);
    const vf a4 = tw_splat_float32(ak + 200);
    c4_0 = tw_fma(a4, b0, c4_0);
    c4_1 = tw_fma(a4, b1, c4_1);
    const vf a5 = tw_splat_float32(ak + 250);
    c5_0 = tw_fma(a5, b0, c5_0);
    c5_1 = tw_fma(a5, b1, c5_1);
    const vf a6 = tw_splat_float32(ak + 300);
    c6_0 = tw_fma(a6, b0, c6_0);
    c6_1 = tw_fma(a6, b1, c6_1);
    const vf a7 = tw_splat_float32(ak + 350);
    c7_0 = tw_fma(a7, b0, c7_0);
    c7_1 = tw_fma(a7, b1, c7_1);
    const vf a8 = tw_splat_float32(ak + 400);
    c8_0 = tw_fma(a8, b0, c8_0);
    c8_1 = tw_fma(a8, b1, c8_1);
    const vf a9 = tw_splat_float32(ak + 450);
    c9_0 = tw_fma(a9, b0, c9_0);
    c9_1 = tw_fma(a9, b1, c9_1);
    }
    {
    const float *ak = a + start + 2 * k0 + 1;
    const float *bk = b + 32 * start + 64 * k0 + 32;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 = tw_fma(a0, b0, c0_0);
    c0_1 = tw_fma(a0, b1, c0_1);
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 = tw_fma(a1, b0, c1_0);
    c1_1 = tw_fma(a1, b1, c1_1);
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 = tw_fma(a2, b0, c2_0);
    c2_1 = tw_fma(a2, b1, c2_1);
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 = tw_fma(a3, b0, c3_0);
    c3_1 = tw_fma(a3, b1, c3_1);
    const vf a4 = tw_splat_float32(ak + 200);
    c4_0 = tw_fma(a4, b0, c4_0);
    c4_1 = tw_fma(a4, b1, c4_1);
    const vf a5 = tw_splat_float32(ak + 250);
    c5_0 = tw_fma(a5, b0, c5_0);
    c5_1 = tw_fma(a5, b1, c5_1);
    const vf a6 = tw_splat_float32(ak + 300);
    c6_0 = tw_fma(a6, b0, c6_0);
    c6_1 = tw_fma(a6, b1, c6_1);
    const vf a7 = tw_splat_float32(ak + 350);
    c7_0 = tw_fma(a7, b0, c7_0);
    c7_1 = tw_fma(a7, b1, c7_1);
    const vf a8 = tw_splat_float32(ak + 400);
    c8_0 = tw_fma(a8, b0, c8_0);
    c8_1 = tw_fma(a8, b1, c8_1);
    const vf a9 = tw_splat_float32(ak + 450);
    c9_0 = tw_fma(a9, b0, c9_0);
    c9_1 = tw_fma(a9, b1, c9_1);
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c1_0 += tw_load_float32(s + 70);
    c1_1 += tw_load_float32(s + 86);
    c2_0 += tw_load_float32(s + 140);
    c2_1 += tw_load_float32(s + 156);
    c3_0 += tw_load_float32(s + 210);
    c3_1 += tw_load_float32(s + 226);
    c4_0 += tw_load_float32(s + 280);
    c4_1 += tw_load_float32(s + 296);
    c5_0 += tw_load_float32(s + 350);
    c5_1 += tw_load_float32(s + 366);
    c6_0 += tw_load_float32(s + 420);
    c6_1 += tw_load_float32(s + 436);
    c7_0 += tw_load_float32(s + 490);
    c7_1 += tw_load_float32(s + 506);
    c8_0 += tw_load_float32(s + 560);
    c8_1 += tw_load_float32(s + 576);
    c9_0 += tw_load_float32(s + 630);
    c9_1 += tw_load_float32(s + 646);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 70, c1_0);
  tw_store_float32(s + 86, c1_1);
  tw_store_float32(s + 140, c2_0);
  tw_store_float32(s + 156, c2_1);
  tw_store_float32(s + 210, c3_0);
  tw_store_float32(s + 226, c3_1);
  tw_store_float32(s + 280, c4_0);
  tw_store_float32(s + 296, c4_1);
  tw_store_float32(s + 350, c5_0);
  tw_store_float32(s + 366, c5_1);
  tw_store_float32(s + 420, c6_0);
  tw_store_float32(s + 436, c6_1);
  tw_store_float32(s + 490, c7_0);
  tw_store_float32(s + 506, c7_1);
  tw_store_float32(s + 560, c8_0);
  tw_store_float32(s + 576, c8_1);
  tw_store_float32(s + 630, c9_0);
  tw_store_float32(s + 646, c9_1);
}
static __attribute__((noinline)) void tw_bdc29f52ad25bb64_10x6(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c1_0 = {0};
  vf c2_0 = {0};
  vf c3_0 = {0};
  vf c4_0 = {0};
  vf c5_0 = {0};
  vf c6_0 = {0};
  vf c7_0 = {0};
  vf c8_0 = {0};
  vf c9_0 = {0};
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 50 ? k0_most : 50; k0 < k0_end; k0++) {
    {
    const float *ak = a + start + k0;
    const float *bk = b + 32 * start + 32 * k0;
    const vf b0 = tw_load_float32(bk + 0);
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 = tw_fma(a0, b0, c0_0);
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 = tw_fma(a1, b0, c1_0);
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 = tw_fma(a2, b0, c2_0);
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 = tw_fma(a3, b0, c3_0);
    const vf a4 = tw_splat_float32(ak + 200);
    c4_0 = tw_fma(a4, b0, c4_0);
    const vf a5 = tw_splat_float32(ak + 250);
    c5_0 = tw_fma(a5, b0, c5_0);
    const vf a6 = tw_splat_float32(ak + 300);
    c6_0 = tw_fma(a6, b0, c6_0);
    const vf a7 = tw_splat_float32(ak + 350);
    c7_0 = tw_fma(a7, b0, c7_0);
    const vf a8 = tw_splat_float32(ak + 400);
    c8_0 = tw_fma(a8, b0, c8_0);
    const vf a9 = tw_splat_float32(ak + 450);
    c9_0 = tw_fma(a9, b0, c9_0);
    }
  }
  if (accumulate) {
    c0_0 += tw_load_first_float32(s + 0, 6);
    c1_0 += tw_load_first_float32(s + 70, 6);
    c2_0 += tw_load_first_float32(s + 140, 6);
    c3_0 += tw_load_first_float32(s + 210, 6);
    c4_0 += tw_load_first_float32(s + 280, 6);
    c5_0 += tw_load_first_float32(s + 350, 6);
    c6_0 += tw_load_first_float32(s + 420, 6);
    c7_0 += tw_load_first_float32(s + 490, 6);
    c8_0 += tw_load_first_float32(s + 560, 6);
    c9_0 += tw_load_first_float32(s + 630, 6);
  }
  tw_store_first_float32(s + 0, c0_0, 6);
  tw_store_first_float32(s + 70, c1_0, 6);
  tw_store_first_float32(s + 140, c2_0, 6);
  tw_store_first_float32(s + 210, c3_0, 6);
  tw_store_first_float32(s + 280, c4_0, 6);
  tw_store_first_float32(s + 350, c5_0, 6);
  tw_store_first_float32(s + 420, c6_0, 6);
  tw_store_first_float32(s + 490, c7_0, 6);
  tw_store_first_float32(s + 560, c8_0, 6);
  tw_store_first_float32(s + 630, c9_0, 6);
}
static inline void tw_bdc29f52ad25bb64_tile(
    const float *a, const float *b, float *s,
    long rows, long columns, long depth, int accumulate) {
  if (columns < 32) tw_bdc29f52ad25bb64_10x6(a, b, s, depth, accumulate);
  else tw_bdc29f52ad25bb64_10x32(a, b, s, depth, accumulate);
}
static void tw_bdc29f52ad25bb64_work(void *context, int worker) {
  const tw_call *call = context;
  const float *l = call->buffers[0];
  const float *r = call->buffers[1];
  float *c = call->buffers[2];
  float *own = (float *)call->workspace + 0;
  float *pl = (void *)own, *pr = pl + 0;
  float *sums = own + 4112;
const long row0 = 0, column0 = 0;
const long chunk_rows = tw_least(100 - row0, 100);
const long chunk_columns = tw_least(70 - column0, 96);
for (long b0 = 0, b0_most = (chunk_columns + 63) / 64, b0_end = b0_most < 2 ? b0_most : 2; b0 < b0_end; b0++) {
  const long j = (64 * b0), k = 0;
  const long columns = tw_least(chunk_columns - j, 64);
  const long depth = tw_least(50 - k, 64);
  tw_bdc29f52ad25bb64_right(r + 70 * k + column0 + j, pr, depth, columns);
  for (long r0 = 0, r0_most = (chunk_rows + 49) / 50, r0_end = r0_most < 2 ? r0_most : 2; r0 < r0_end; r0++) {
    const long i = (50 * r0);
    const long rows = tw_least(chunk_rows - i, 50);
    for (long t0 = 0, t0_most = (columns + 31) / 32, t0_end = t0_most < 2 ? t0_most : 2; t0 < t0_end; t0++) {
      for (long t1 = 0, t1_most = (rows + 9) / 10, t1_end = t1_most < 5 ? t1_most : 5; t1 < t1_end; t1++) {
        tw_bdc29f52ad25bb64_tile(l + 50 * row0 + 50 * i + 500 * t1 + k, pr + 2048 * t0, c + 70 * row0 + 70 * i + 700 * t1 + column0 + j + 32 * t0, rows - (10 * t1), columns - (32 * t0), depth, k > 0);
      }
    }
  }
}
}
void tw_bdc29f52ad25bb64(
    void *const *buffers, void *workspace, const tw_runtime *runtime) {
  tw_call call = {buffers, workspace};
  tw_bdc29f52ad25bb64_work(&call, 0);
}
