/* matmul m=100 n=70 k=50 dtype=float32 out=float32 a=row b=row c=row
   contraction: multiply=fma tile_rows=5 tile_vectors=3 row_workers=1 column_workers=1 order=rows_outer pack_left=True pack_right=False block_depth=256 block_rows=128 block_columns=128 unroll=1 prefetch=8 */
static __attribute__((noinline)) void tw_c5c951ca3e441d71_left(const float *restrict p, float *restrict q, long rows, long depth) {
  for (long i0 = 0, i0_most = rows, i0_end = i0_most < 100 ? i0_most : 100; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = (depth + 15) / 16, i1_end = i1_most < 4 ? i1_most : 4; i1 < i1_end; i1++) {
      tw_store_float32(q + 16 * i1 + 80 * i0, tw_load_most_float32(p + 50 * i0 + 16 * i1, depth - (16 * i1)));
    }
  }
}
static __attribute__((noinline)) void tw_c5c951ca3e441d71_5x48(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  vf c0_2 = {0};
  vf c1_0 = {0};
  vf c1_1 = {0};
  vf c1_2 = {0};
  vf c2_0 = {0};
  vf c2_1 = {0};
  vf c2_2 = {0};
  vf c3_0 = {0};
  vf c3_1 = {0};
  vf c3_2 = {0};
  vf c4_0 = {0};
  vf c4_1 = {0};
  vf c4_2 = {0};
  __builtin_prefetch(s + 0, 1);
  __builtin_prefetch(s + 16, 1);
  __builtin_prefetch(s + 32, 1);
  __builtin_prefetch(s + 47, 1);
  __builtin_prefetch(s + 70, 1);
  __builtin_prefetch(s + 86, 1);
  __builtin_prefetch(s + 102, 1);
  __builtin_prefetch(s + 117, 1);
  __builtin_prefetch(s + 140, 1);
  __builtin_prefetch(s + 156, 1);
  __builtin_prefetch(s + 172, 1);
  __builtin_prefetch(s + 187, 1);
  __builtin_prefetch(s + 210, 1);
  __builtin_prefetch(s + 226, 1);
  __builtin_prefetch(s + 242, 1);
  __builtin_prefetch(s + 257, 1);
  __builtin_prefetch(s + 280, 1);
  __builtin_prefetch(s + 296, 1);
  __builtin_prefetch(s + 312, 1);
  __builtin_prefetch(s + 327, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 64 ? k0_most : 64; k0 < k0_end; k0++) {
  {
  const float *ak = a + k0;
  const float *bk = b + 70 * k0;
  const vf b0 = tw_load_float32(bk + 0);
  __builtin_prefetch(bk + 560);
  const vf b1 = tw_load_float32(bk + 16);
  __builtin_prefetch(bk + 576);
  const vf b2 = tw_load_float32(bk + 32);
  __builtin_prefetch(bk + 592);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  const vf a1 = tw_splat_float32(ak + 80);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  c1_2 += a1 * b2;
  const vf a2 = tw_splat_float32(ak + 160);
  c2_0 += a2 * b0;
  c2_1 += a2 * b1;
  c2_2 += a2 * b2;
  const vf a3 = tw_splat_float32(ak + 240);
  c3_0 += a3 * b0;
  c3_1 += a3 * b1;
  c3_2 += a3 * b2;
  const vf a4 = tw_splat_float32(ak + 320);
  c4_0 += a4 * b0;
  c4_1 += a4 * b1;
  c4_2 += a4 * b2;
  }
}
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c0_2 += tw_load_float32(s + 32);
    c1_0 += tw_load_float32(s + 70);
    c1_1 += tw_load_float32(s + 86);
    c1_2 += tw_load_float32(s + 102);
    c2_0 += tw_load_float32(s + 140);
    c2_1 += tw_load_float32(s + 156);
    c2_2 += tw_load_float32(s + 172);
    c3_0 += tw_load_float32(s + 210);
    c3_1 += tw_load_float32(s + 226);
    c3_2 += tw_load_float32(s + 242);
    c4_0 += tw_load_float32(s + 280);
    c4_1 += tw_load_float32(s + 296);
    c4_2 += tw_load_float32(s + 312);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 32, c0_2);
  tw_store_float32(s + 70, c1_0);
  tw_store_float32(s + 86, c1_1);
  tw_store_float32(s + 102, c1_2);
  tw_store_float32(s + 140, c2_0);
  tw_store_float32(s + 156, c2_1);
  tw_store_float32(s + 172, c2_2);
  tw_store_float32(s + 210, c3_0);
  tw_store_float32(s + 226, c3_1);
  tw_store_float32(s + 242, c3_2);
  tw_store_float32(s + 280, c4_0);
  tw_store_float32(s + 296, c4_1);
  tw_store_float32(s + 312, c4_2);
}
static __attribute__((noinline)) void tw_c5c951ca3e441d71_5x22(
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
  __builtin_prefetch(s + 0, 1);
  __builtin_prefetch(s + 16, 1);
  __builtin_prefetch(s + 21, 1);
  __builtin_prefetch(s + 70, 1);
  __builtin_prefetch(s + 86, 1);
  __builtin_prefetch(s + 91, 1);
  __builtin_prefetch(s + 140, 1);
  __builtin_prefetch(s + 156, 1);
  __builtin_prefetch(s + 161, 1);
  __builtin_prefetch(s + 210, 1);
  __builtin_prefetch(s + 226, 1);
  __builtin_prefetch(s + 231, 1);
  __builtin_prefetch(s + 280, 1);
  __builtin_prefetch(s + 296, 1);
  __builtin_prefetch(s + 301, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 64 ? k0_most : 64; k0 < k0_end; k0++) {
  {
  const float *ak = a + k0;
  const float *bk = b + 70 * k0;
  const vf b0 = tw_load_float32(bk + 0);
  const vf b1 = tw_load_first_float32(bk + 16, 6);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  const vf a1 = tw_splat_float32(ak + 80);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  const vf a2 = tw_splat_float32(ak + 160);
  c2_0 += a2 * b0;
  c2_1 += a2 * b1;
  const vf a3 = tw_splat_float32(ak + 240);
  c3_0 += a3 * b0;
  c3_1 += a3 * b1;
  const vf a4 = tw_splat_float32(ak + 320);
  c4_0 += a4 * b0;
  c4_1 += a4 * b1;
  }
}
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_first_float32(s + 16, 6);
    c1_0 += tw_load_float32(s + 70);
    c1_1 += tw_load_first_float32(s + 86, 6);
    c2_0 += tw_load_float32(s + 140);
    c2_1 += tw_load_first_float32(s + 156, 6);
    c3_0 += tw_load_float32(s + 210);
    c3_1 += tw_load_first_float32(s + 226, 6);
    c4_0 += tw_load_float32(s + 280);
    c4_1 += tw_load_first_float32(s + 296, 6);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_first_float32(s + 16, c0_1, 6);
  tw_store_float32(s + 70, c1_0);
  tw_store_first_float32(s + 86, c1_1, 6);
  tw_store_float32(s + 140, c2_0);
  tw_store_first_float32(s + 156, c2_1, 6);
  tw_store_float32(s + 210, c3_0);
  tw_store_first_float32(s + 226, c3_1, 6);
  tw_store_float32(s + 280, c4_0);
  tw_store_first_float32(s + 296, c4_1, 6);
}
static inline void tw_c5c951ca3e441d71_tile(
    const float *a, const float *b, float *s,
    long rows, long columns, long depth, int accumulate) {
  if (columns < 48) tw_c5c951ca3e441d71_5x22(a, b, s, depth, accumulate);
  else tw_c5c951ca3e441d71_5x48(a, b, s, depth, accumulate);
}
static void tw_c5c951ca3e441d71_work(void *context, int worker) {
  const tw_call *call = context;
  const float *l = call->buffers[0];
  const float *r = call->buffers[1];
  float *c = call->buffers[2];
  float *own = (float *)call->workspace + 0;
  float *pl = (void *)own, *pr = pl + 8016;
  float *sums = own + 8016;
const long row0 = 0, column0 = 0;
const long chunk_rows = tw_least(100 - row0, 100);
const long chunk_columns = tw_least(70 - column0, 96);
if (0 < chunk_columns) {
  const long j = 0, k = 0;
  const long columns = tw_least(chunk_columns - j, 96);
  const long depth = tw_least(50 - k, 64);
  if (0 < chunk_rows) {
    const long i = 0;
    const long rows = tw_least(chunk_rows - i, 100);
    tw_c5c951ca3e441d71_left(l + 50 * row0 + 50 * i + k, pl, rows, depth);
    for (long t0 = 0, t0_most = (rows + 4) / 5, t0_end = t0_most < 20 ? t0_most : 20; t0 < t0_end; t0++) {
      for (long t1 = 0, t1_most = (columns + 47) / 48, t1_end = t1_most < 2 ? t1_most : 2; t1 < t1_end; t1++) {
        tw_c5c951ca3e441d71_tile(pl + 400 * t0, r + 70 * k + column0 + j + 48 * t1, c + 70 * row0 + 70 * i + 350 * t0 + column0 + j + 48 * t1, rows - (5 * t0), columns - (48 * t1), depth, k > 0);
      }
    }
  }
}
}
void tw_c5c951ca3e441d71(
    void *const *buffers, void *workspace, const tw_runtime *runtime) {
  tw_call call = {buffers, workspace};
  tw_c5c951ca3e441d71_work(&call, 0);
}
