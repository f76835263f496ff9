/* matmul m=100 n=70 k=50 dtype=float32 out=float32 a=row b=row c=row
   contraction: multiply=fma tile_rows=14 tile_vectors=2 row_workers=1 column_workers=1 order=columns_outer pack_left=True pack_right=True block_depth=64 block_rows=64 block_columns=128 unroll=1 prefetch=0 */
static __attribute__((noinline)) void tw_5dc4ac0a98fa3ceb_left(const float *restrict p, float *restrict q, long rows, long depth) {
  for (long i0 = 0, i0_most = rows, i0_end = i0_most < 56 ? i0_most : 56; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = (depth + 15) / 16, i1_end = i1_most < 4 ? i1_most : 4; i1 < i1_end; i1++) {
      tw_store_float32(q + 16 * i1 + 80 * i0, tw_load_most_float32(p + 50 * i0 + 16 * i1, depth - (16 * i1)));
    }
  }
}
static __attribute__((noinline)) void tw_5dc4ac0a98fa3ceb_right(const float *restrict p, float *restrict q, long depth, long columns) {
  for (long i0 = 0, i0_most = (columns + 31) / 32, i0_end = i0_most < 3 ? i0_most : 3; i0 < i0_end; i0++) {
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
static __attribute__((noinline)) void tw_5dc4ac0a98fa3ceb_14x32(
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
  vf c10_0 = {0};
  vf c10_1 = {0};
  vf c11_0 = {0};
  vf c11_1 = {0};
  vf c12_0 = {0};
  vf c12_1 = {0};
  vf c13_0 = {0};
  vf c13_1 = {0};
  __builtin_prefetch(s + 0, 1);
  __builtin_prefetch(s + 16, 1);
  __builtin_prefetch(s + 31, 1);
  __builtin_prefetch(s + 70, 1);
  __builtin_prefetch(s + 86, 1);
  __builtin_prefetch(s + 101, 1);
  __builtin_prefetch(s + 140, 1);
  __builtin_prefetch(s + 156, 1);
  __builtin_prefetch(s + 171, 1);
  __builtin_prefetch(s + 210, 1);
  __builtin_prefetch(s + 226, 1);
  __builtin_prefetch(s + 241, 1);
  __builtin_prefetch(s + 280, 1);
  __builtin_prefetch(s + 296, 1);
  __builtin_prefetch(s + 311, 1);
  __builtin_prefetch(s + 350, 1);
  __builtin_prefetch(s + 366, 1);
  __builtin_prefetch(s + 381, 1);
  __builtin_prefetch(s + 420, 1);
  __builtin_prefetch(s + 436, 1);
  __builtin_prefetch(s + 451, 1);
  __builtin_prefetch(s + 490, 1);
  __builtin_prefetch(s + 506, 1);
  __builtin_prefetch(s + 521, 1);
  __builtin_prefetch(s + 560, 1);
  __builtin_prefetch(s + 576, 1);
  __builtin_prefetch(s + 591, 1);
  __builtin_prefetch(s + 630, 1);
  __builtin_prefetch(s + 646, 1);
  __builtin_prefetch(s + 661, 1);
  __builtin_prefetch(s + 700, 1);
  __builtin_prefetch(s + 716, 1);
  __builtin_prefetch(s + 731, 1);
  __builtin_prefetch(s + 770, 1);
  __builtin_prefetch(s + 786, 1);
  __builtin_prefetch(s + 801, 1);
  __builtin_prefetch(s + 840, 1);
  __builtin_prefetch(s + 856, 1);
  __builtin_prefetch(s + 871, 1);
  __builtin_prefetch(s + 910, 1);
  __builtin_prefetch(s + 926, 1);
  __builtin_prefetch(s + 941, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 64 ? k0_most : 64; k0 < k0_end; k0++) {
  {
  const float *ak = a + k0;
  const float *bk = b + 32 * k0;
  const vf b0 = tw_load_float32(bk + 0);
  const vf b1 = tw_load_float32(bk + 16);
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
  const vf a5 = tw_splat_float32(ak + 400);
  c5_0 += a5 * b0;
  c5_1 += a5 * b1;
  const vf a6 = tw_splat_float32(ak + 480);
  c6_0 += a6 * b0;
  c6_1 += a6 * b1;
  const vf a7 = tw_splat_float32(ak + 560);
  c7_0 += a7 * b0;
  c7_1 += a7 * b1;
  const vf a8 = tw_splat_float32(ak + 640);
  c8_0 += a8 * b0;
  c8_1 += a8 * b1;
  const vf a9 = tw_splat_float32(ak + 720);
  c9_0 += a9 * b0;
  c9_1 += a9 * b1;
  const vf a10 = tw_splat_float32(ak + 800);
  c10_0 += a10 * b0;
  c10_1 += a10 * b1;
  const vf a11 = tw_splat_float32(ak + 880);
  c11_0 += a11 * b0;
  c11_1 += a11 * b1;
  const vf a12 = tw_splat_float32(ak + 960);
  c12_0 += a12 * b0;
  c12_1 += a12 * b1;
  const vf a13 = tw_splat_float32(ak + 1040);
  c13_0 += a13 * b0;
  c13_1 += a13 * b1;
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
    c10_0 += tw_load_float32(s + 700);
    c10_1 += tw_load_float32(s + 716);
    c11_0 += tw_load_float32(s + 770);
    c11_1 += tw_load_float32(s + 786);
    c12_0 += tw_load_float32(s + 840);
    c12_1 += tw_load_float32(s + 856);
    c13_0 += tw_load_float32(s + 910);
    c13_1 += tw_load_float32(s + 926);
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
  tw_store_float32(s + 700, c10_0);
  tw_store_float32(s + 716, c10_1);
  tw_store_float32(s + 770, c11_0);
  tw_store_float32(s + 786, c11_1);
  tw_store_float32(s + 840, c12_0);
  tw_store_float32(s + 856, c12_1);
  tw_store_float32(s + 910, c13_0);
  tw_store_float32(s + 926, c13_1);
}
static __attribute__((noinline)) void tw_5dc4ac0a98fa3ceb_14x6(
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
  vf c10_0 = {0};
  vf c11_0 = {0};
  vf c12_0 = {0};
  vf c13_0 = {0};
  __builtin_prefetch(s + 0, 1);
  __builtin_prefetch(s + 5, 1);
  __builtin_prefetch(s + 70, 1);
  __builtin_prefetch(s + 75, 1);
  __builtin_prefetch(s + 140, 1);
  __builtin_prefetch(s + 145, 1);
  __builtin_prefetch(s + 210, 1);
  __builtin_prefetch(s + 215, 1);
  __builtin_prefetch(s + 280, 1);
  __builtin_prefetch(s + 285, 1);
  __builtin_prefetch(s + 350, 1);
  __builtin_prefetch(s + 355, 1);
  __builtin_prefetch(s + 420, 1);
  __builtin_prefetch(s + 425, 1);
  __builtin_prefetch(s + 490, 1);
  __builtin_prefetch(s + 495, 1);
  __builtin_prefetch(s + 560, 1);
  __builtin_prefetch(s + 565, 1);
  __builtin_prefetch(s + 630, 1);
  __builtin_prefetch(s + 635, 1);
  __builtin_prefetch(s + 700, 1);
  __builtin_prefetch(s + 705, 1);
  __builtin_prefetch(s + 770, 1);
  __builtin_prefetch(s + 775, 1);
  __builtin_prefetch(s + 840, 1);
  __builtin_prefetch(s + 845, 1);
  __builtin_prefetch(s + 910, 1);
  __builtin_prefetch(s + 915, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 64 ? k0_most : 64; k0 < k0_end; k0++) {
  {
  const float *ak = a + k0;
  const float *bk = b + 32 * k0;
  const vf b0 = tw_load_float32(bk + 0);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  const vf a1 = tw_splat_float32(ak + 80);
  c1_0 += a1 * b0;
  const vf a2 = tw_splat_float32(ak + 160);
  c2_0 += a2 * b0;
  const vf a3 = tw_splat_float32(ak + 240);
  c3_0 += a3 * b0;
  const vf a4 = tw_splat_float32(ak + 320);
  c4_0 += a4 * b0;
  const vf a5 = tw_splat_float32(ak + 400);
  c5_0 += a5 * b0;
  const vf a6 = tw_splat_float32(ak + 480);
  c6_0 += a6 * b0;
  const vf a7 = tw_splat_float32(ak + 560);
  c7_0 += a7 * b0;
  const vf a8 = tw_splat_float32(ak + 640);
  c8_0 += a8 * b0;
  const vf a9 = tw_splat_float32(ak + 720);
  c9_0 += a9 * b0;
  const vf a10 = tw_splat_float32(ak + 800);
  c10_0 += a10 * b0;
  const vf a11 = tw_splat_float32(ak + 880);
  c11_0 += a11 * b0;
  const vf a12 = tw_splat_float32(ak + 960);
  c12_0 += a12 * b0;
  const vf a13 = tw_splat_float32(ak + 1040);
  c13_0 += a13 * b0;
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
    c10_0 += tw_load_first_float32(s + 700, 6);
    c11_0 += tw_load_first_float32(s + 770, 6);
    c12_0 += tw_load_first_float32(s + 840, 6);
    c13_0 += tw_load_first_float32(s + 910, 6);
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
  tw_store_first_float32(s + 700, c10_0, 6);
  tw_store_first_float32(s + 770, c11_0, 6);
  tw_store_first_float32(s + 840, c12_0, 6);
  tw_store_first_float32(s + 910, c13_0, 6);
}
static __attribute__((noinline)) void tw_5dc4ac0a98fa3ceb_2x32(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  vf c1_0 = {0};
  vf c1_1 = {0};
  __builtin_prefetch(s + 0, 1);
  __builtin_prefetch(s + 16, 1);
  __builtin_prefetch(s + 31, 1);
  __builtin_prefetch(s + 70, 1);
  __builtin_prefetch(s + 86, 1);
  __builtin_prefetch(s + 101, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 64 ? k0_most : 64; k0 < k0_end; k0++) {
  {
  const float *ak = a + k0;
  const float *bk = b + 32 * k0;
  const vf b0 = tw_keep(tw_load_float32(bk + 0));
  const vf b1 = tw_keep(tw_load_float32(bk + 16));
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  const vf a1 = tw_splat_float32(ak + 80);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  }
}
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c1_0 += tw_load_float32(s + 70);
    c1_1 += tw_load_float32(s + 86);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 70, c1_0);
  tw_store_float32(s + 86, c1_1);
}
static __attribute__((noinline)) void tw_5dc4ac0a98fa3ceb_2x6(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c1_0 = {0};
  __builtin_prefetch(s + 0, 1);
  __builtin_prefetch(s + 5, 1);
  __builtin_prefetch(s + 70, 1);
  __builtin_prefetch(s + 75, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 64 ? k0_most : 64; k0 < k0_end; k0++) {
  {
  const float *ak = a + k0;
  const float *bk = b + 32 * k0;
  const vf b0 = tw_keep(tw_load_float32(bk + 0));
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  const vf a1 = tw_splat_float32(ak + 80);
  c1_0 += a1 * b0;
  }
}
  if (accumulate) {
    c0_0 += tw_load_first_float32(s + 0, 6);
    c1_0 += tw_load_first_float32(s + 70, 6);
  }
  tw_store_first_float32(s + 0, c0_0, 6);
  tw_store_first_float32(s + 70, c1_0, 6);
}
static inline void tw_5dc4ac0a98fa3ceb_tile(
    const float *a, const float *b, float *s,
    long rows, long columns, long depth, int accumulate) {
  if (rows < 14 && columns < 32) tw_5dc4ac0a98fa3ceb_2x6(a, b, s, depth, accumulate);
  else if (columns < 32) tw_5dc4ac0a98fa3ceb_14x6(a, b, s, depth, accumulate);
  else if (rows < 14) tw_5dc4ac0a98fa3ceb_2x32(a, b, s, depth, accumulate);
  else tw_5dc4ac0a98fa3ceb_14x32(a, b, s, depth, accumulate);
}
static void tw_5dc4ac0a98fa3ceb_work(void *context, int worker) {
  const tw_call *call = context;
  const float *l = call->buffers[0];
  const float *r = call->buffers[1];
  float *c = call->buffers[2];
  float *own = (float *)call->workspace + 0;
  float *pl = (void *)own, *pr = pl + 4496;
  float *sums = own + 10656;
const long row0 = 0, column0 = 0;
const long chunk_rows = tw_least(100 - row0, 112);
const long chunk_columns = tw_least(70 - column0, 96);
if (0 < chunk_columns) {
  const long j = 0, k = 0;
  const long columns = tw_least(chunk_columns - j, 96);
  const long depth = tw_least(50 - k, 64);
  tw_5dc4ac0a98fa3ceb_right(r + 70 * k + column0 + j, pr, depth, columns);
  for (long r0 = 0, r0_most = (chunk_rows + 55) / 56, r0_end = r0_most < 2 ? r0_most : 2; r0 < r0_end; r0++) {
    const long i = (56 * r0);
    const long rows = tw_least(chunk_rows - i, 56);
    tw_5dc4ac0a98fa3ceb_left(l + 50 * row0 + 50 * i + k, pl, rows, depth);
    for (long t0 = 0, t0_most = (columns + 31) / 32, t0_end = t0_most < 3 ? t0_most : 3; t0 < t0_end; t0++) {
      for (long t1 = 0, t1_most = (rows + 13) / 14, t1_end = t1_most < 4 ? t1_most : 4; t1 < t1_end; t1++) {
        tw_5dc4ac0a98fa3ceb_tile(pl + 1120 * t1, pr + 2048 * t0, c + 70 * row0 + 70 * i + 980 * t1 + column0 + j + 32 * t0, rows - (14 * t1), columns - (32 * t0), depth, k > 0);
      }
    }
  }
}
}
void tw_5dc4ac0a98fa3ceb(
    void *const *buffers, void *workspace, const tw_runtime *runtime) {
  tw_call call = {buffers, workspace};
  tw_5dc4ac0a98fa3ceb_work(&call, 0);
}
