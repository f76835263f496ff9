/* matmul m=100 n=70 k=50 dtype=float32 out=float32 a=row b=row c=row
   contraction: multiply=fma tile_rows=6 tile_vectors=2 row_workers=1 column_workers=1 order=columns_outer pack_left=False pack_right=False block_depth=256 block_rows=128 block_columns=128 unroll=1 prefetch=8 */
static __attribute__((noinline)) void tw_04c94f683e115657_6x32(
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
  const long start = depth < 18 ? depth : 18 + (depth - 18) % 1;
  for (long f0 = 0, f0_most = start, f0_end = f0_most < 19 ? f0_most : 19; f0 < f0_end; f0++) {
    __builtin_prefetch(s + 70 * (f0 / 3) + 16 * (f0 % 3), 1);
    const float *ak = a + f0;
    const float *bk = b + 70 * f0;
    const vf b0 = tw_load_float32(bk + 0);
    __builtin_prefetch(bk + 560);
    const vf b1 = tw_load_float32(bk + 16);
    __builtin_prefetch(bk + 576);
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 += a1 * b0;
    c1_1 += a1 * b1;
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 += a2 * b0;
    c2_1 += a2 * b1;
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 += a3 * b0;
    c3_1 += a3 * b1;
    const vf a4 = tw_splat_float32(ak + 200);
    c4_0 += a4 * b0;
    c4_1 += a4 * b1;
    const vf a5 = tw_splat_float32(ak + 250);
    c5_0 += a5 * b0;
    c5_1 += a5 * b1;
  }
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 50 ? k0_most : 50; k0 < k0_end; k0++) {
    {
    const float *ak = a + start + k0;
    const float *bk = b + 70 * start + 70 * k0;
    const vf b0 = tw_load_float32(bk + 0);
    __builtin_prefetch(bk + 560);
    const vf b1 = tw_load_float32(bk + 16);
    __builtin_prefetch(bk + 576);
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 += a1 * b0;
    c1_1 += a1 * b1;
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 += a2 * b0;
    c2_1 += a2 * b1;
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 += a3 * b0;
    c3_1 += a3 * b1;
    const vf a4 = tw_splat_float32(ak + 200);
    c4_0 += a4 * b0;
    c4_1 += a4 * b1;
    const vf a5 = tw_splat_float32(ak + 250);
    c5_0 += a5 * b0;
    c5_1 += a5 * b1;
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
}
static __attribute__((noinline)) void tw_04c94f683e115657_6x6(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c1_0 = {0};
  vf c2_0 = {0};
  vf c3_0 = {0};
  vf c4_0 = {0};
  vf c5_0 = {0};
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 50 ? k0_most : 50; k0 < k0_end; k0++) {
    {
    const float *ak = a + start + k0;
    const float *bk = b + 70 * start + 70 * k0;
    const vf b0 = tw_load_first_float32(bk + 0, 6);
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 += a0 * b0;
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 += a1 * b0;
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 += a2 * b0;
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 += a3 * b0;
    const vf a4 = tw_splat_float32(ak + 200);
    c4_0 += a4 * b0;
    const vf a5 = tw_splat_float32(ak + 250);
    c5_0 += a5 * b0;
    }
  }
  if (accumulate) {
    c0_0 += tw_load_first_float32(s + 0, 6);
    c1_0 += tw_load_first_float32(s + 70, 6);
    c2_0 += tw_load_first_float32(s + 140, 6);
    c3_0 += tw_load_first_float32(s + 210, 6);
    c4_0 += tw_load_first_float32(s + 280, 6);
    c5_0 += tw_load_first_float32(s + 350, 6);
  }
  tw_store_first_float32(s + 0, c0_0, 6);
  tw_store_first_float32(s + 70, c1_0, 6);
  tw_store_first_float32(s + 140, c2_0, 6);
  tw_store_first_float32(s + 210, c3_0, 6);
  tw_store_first_float32(s + 280, c4_0, 6);
  tw_store_first_float32(s + 350, c5_0, 6);
}
static __attribute__((noinline)) void tw_04c94f683e115657_4x32(
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
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 50 ? k0_most : 50; k0 < k0_end; k0++) {
    {
    const float *ak = a + start + k0;
    const float *bk = b + 70 * start + 70 * k0;
    const vf b0 = tw_keep(tw_load_float32(bk + 0));
    const vf b1 = tw_keep(tw_load_float32(bk + 16));
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 += a1 * b0;
    c1_1 += a1 * b1;
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 += a2 * b0;
    c2_1 += a2 * b1;
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 += a3 * b0;
    c3_1 += a3 * b1;
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
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 70, c1_0);
  tw_store_float32(s + 86, c1_1);
  tw_store_float32(s + 140, c2_0);
  tw_store_float32(s + 156, c2_1);
  tw_store_float32(s + 210, c3_0);
  tw_store_float32(s + 226, c3_1);
}
static __attribute__((noinline)) void tw_04c94f683e115657_4x6(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c1_0 = {0};
  vf c2_0 = {0};
  vf c3_0 = {0};
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 50 ? k0_most : 50; k0 < k0_end; k0++) {
    {
    const float *ak = a + start + k0;
    const float *bk = b + 70 * start + 70 * k0;
    const vf b0 = tw_keep(tw_load_first_float32(bk + 0, 6));
    const vf a0 = tw_splat_float32(ak + 0);
    c0_0 += a0 * b0;
    const vf a1 = tw_splat_float32(ak + 50);
    c1_0 += a1 * b0;
    const vf a2 = tw_splat_float32(ak + 100);
    c2_0 += a2 * b0;
    const vf a3 = tw_splat_float32(ak + 150);
    c3_0 += a3 * b0;
    }
  }
  if (accumulate) {
    c0_0 += tw_load_first_float32(s + 0, 6);
    c1_0 += tw_load_first_float32(s + 70, 6);
    c2_0 += tw_load_first_float32(s + 140, 6);
    c3_0 += tw_load_first_float32(s + 210, 6);
  }
  tw_store_first_float32(s + 0, c0_0, 6);
  tw_store_first_float32(s + 70, c1_0, 6);
  tw_store_first_float32(s + 140, c2_0, 6);
  tw_store_first_float32(s + 210, c3_0, 6);
}
static inline void tw_04c94f683e115657_tile(
    const float *a, const float *b, float *s,
    long rows, long columns, long depth, int accumulate) {
  if (rows < 6 && columns < 32) tw_04c94f683e115657_4x6(a, b, s, depth, accumulate);
  else if (columns < 32) tw_04c94f683e115657_6x6(a, b, s, depth, accumulate);
  else if (rows < 6) tw_04c94f683e115657_4x32(a, b, s, depth, accumulate);
  else tw_04c94f683e115657_6x32(a, b, s, depth, accumulate);
}
static void tw_04c94f683e115657_work(void *context, int worker) {
  const tw_call *call = context;
  const float *l = call->buffers[0];
  const float *r = call->buffers[1];
  float *c = call->buffers[2];
  float *own = (float *)call->workspace + 0;
  float *pl = (void *)own, *pr = pl + 0;
  float *sums = own + 0;
const long row0 = 0, column0 = 0;
const long chunk_rows = tw_least(100 - row0, 102);
const long chunk_columns = tw_least(70 - column0, 96);
if (0 < chunk_columns) {
  const long j = 0, k = 0;
  const long columns = tw_least(chunk_columns - j, 96);
  const long depth = tw_least(50 - k, 64);
  if (0 < chunk_rows) {
    const long i = 0;
    const long rows = tw_least(chunk_rows - i, 102);
    for (long t0 = 0, t0_most = (columns + 31) / 32, t0_end = t0_most < 3 ? t0_most : 3; t0 < t0_end; t0++) {
      for (long t1 = 0, t1_most = (rows + 5) / 6, t1_end = t1_most < 17 ? t1_most : 17; t1 < t1_end; t1++) {
        tw_04c94f683e115657_tile(l + 50 * row0 + 50 * i + 300 * t1 + k, r + 70 * k + column0 + j + 32 * t0, c + 70 * row0 + 70 * i + 420 * t1 + column0 + j + 32 * t0, rows - (6 * t1), columns - (32 * t0), depth, k > 0);
      }
    }
  }
}
}
void tw_04c94f683e115657(
    void *const *buffers, void *workspace, const tw_runtime *runtime) {
  tw_call call = {buffers, workspace};
  tw_04c94f683e115657_work(&call, 0);
}
