/* matmul m=61 n=90 k=600 dtype=bfloat16 out=bfloat16 a=col b=col c=row epilogue="relu(x + bias[n]) * scale"
   contraction: multiply=fma tile_rows=12 tile_vectors=2 row_workers=1 column_workers=4 order=columns_outer pack_left=False pack_right=True block_depth=384 block_rows=32 block_columns=64 unroll=2 prefetch=0 */
static __attribute__((noinline)) void tw_98e62c7ea88dc064_right(const unsigned short *restrict p, float *restrict q, long depth, long columns) {
  if (0 < columns) {
    for (long i0 = 0, i0_most = (depth + 15) / 16, i0_end = i0_most < 20 ? i0_most : 20; i0 < i0_end; i0++) {
      const long left = columns - 0;
      if (0 < left) {
        tw_transpose_bfloat16(p + 16 * i0, 600, left - 0, depth - (16 * i0), q + 512 * i0, 32);
      }
      if (16 < left) {
        tw_transpose_bfloat16(p + 16 * i0 + 9600, 600, left - 16, depth - (16 * i0), q + 512 * i0 + 16, 32);
      }
    }
  }
}
static __attribute__((noinline)) void tw_98e62c7ea88dc064_12x32(
    const unsigned short *restrict a, const float *restrict b, float *restrict s,
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
  const long start = depth < 24 ? depth : 24 + (depth - 24) % 2;
  for (long f0 = 0, f0_most = start, f0_end = f0_most < 26 ? f0_most : 26; f0 < f0_end; f0++) {
    __builtin_prefetch(s + 16 * f0, 1);
    const unsigned short *ak = a + 61 * f0;
    const float *bk = b + 32 * f0;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_bfloat16(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    const vf a1 = tw_splat_bfloat16(ak + 1);
    c1_0 += a1 * b0;
    c1_1 += a1 * b1;
    const vf a2 = tw_splat_bfloat16(ak + 2);
    c2_0 += a2 * b0;
    c2_1 += a2 * b1;
    const vf a3 = tw_splat_bfloat16(ak + 3);
    c3_0 += a3 * b0;
    c3_1 += a3 * b1;
    const vf a4 = tw_splat_bfloat16(ak + 4);
    c4_0 += a4 * b0;
    c4_1 += a4 * b1;
    const vf a5 = tw_splat_bfloat16(ak + 5);
    c5_0 += a5 * b0;
    c5_1 += a5 * b1;
    const vf a6 = tw_splat_bfloat16(ak + 6);
    c6_0 += a6 * b0;
    c6_1 += a6 * b1;
    const vf a7 = tw_splat_bfloat16(ak + 7);
    c7_0 += a7 * b0;
    c7_1 += a7 * b1;
    const vf a8 = tw_splat_bfloat16(ak + 8);
    c8_0 += a8 * b0;
    c8_1 += a8 * b1;
    const vf a9 = tw_splat_bfloat16(ak + 9);
    c9_0 += a9 * b0;
    c9_1 += a9 * b1;
    const vf a10 = tw_splat_bfloat16(ak + 10);
    c10_0 += a10 * b0;
    c10_1 += a10 * b1;
    const vf a11 = tw_splat_bfloat16(ak + 11);
    c11_0 += a11 * b0;
    c11_1 += a11 * b1;
  }
  for (long k0 = 0, k0_most = (depth - start + 1) / 2, k0_end = k0_most < 300 ? k0_most : 300; k0 < k0_end; k0++) {
    {
    const unsigned short *ak = a + 61 * start + 122 * k0;
    const float *bk = b + 32 * start + 64 * k0;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_bfloat16(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    const vf a1 = tw_splat_bfloat16(ak + 1);
    c1_0 += a1 * b0;
    c1_1 += a1 * b1;
    const vf a2 = tw_splat_bfloat16(ak + 2);
    c2_0 += a2 * b0;
    c2_1 += a2 * b1;
    const vf a3 = tw_splat_bfloat16(ak + 3);
    c3_0 += a3 * b0;
    c3_1 += a3 * b1;
    const vf a4 = tw_splat_bfloat16(ak + 4);
    c4_0 += a4 * b0;
    c4_1 += a4 * b1;
    const vf a5 = tw_splat_bfloat16(ak + 5);
    c5_0 += a5 * b0;
    c5_1 += a5 * b1;
    const vf a6 = tw_splat_bfloat16(ak + 6);
    c6_0 += a6 * b0;
    c6_1 += a6 * b1;
    const vf a7 = tw_splat_bfloat16(ak + 7);
    c7_0 += a7 * b0;
    c7_1 += a7 * b1;
    const vf a8 = tw_splat_bfloat16(ak + 8);
    c8_0 += a8 * b0;
    c8_1 += a8 * b1;
    const vf a9 = tw_splat_bfloat16(ak + 9);
    c9_0 += a9 * b0;
    c9_1 += a9 * b1;
    const vf a10 = tw_splat_bfloat16(ak + 10);
    c10_0 += a10 * b0;
    c10_1 += a10 * b1;
    const vf a11 = tw_splat_bfloat16(ak + 11);
    c11_0 += a11 * b0;
    c11_1 += a11 * b1;
    }
    {
    const unsigned short *ak = a + 61 * start + 122 * k0 + 61;
    const float *bk = b + 32 * start + 64 * k0 + 32;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_bfloat16(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    const vf a1 = tw_splat_bfloat16(ak + 1);
    c1_0 += a1 * b0;
    c1_1 += a1 * b1;
    const vf a2 = tw_splat_bfloat16(ak + 2);
    c2_0 += a2 * b0;
    c2_1 += a2 * b1;
    const vf a3 = tw_splat_bfloat16(ak + 3);
    c3_0 += a3 * b0;
    c3_1 += a3 * b1;
    const vf a4 = tw_splat_bfloat16(ak + 4);
    c4_0 += a4 * b0;
    c4_1 += a4 * b1;
    const vf a5 = tw_splat_bfloat16(ak + 5);
    c5_0 += a5 * b0;
    c5_1 += a5 * b1;
    const vf a6 = tw_splat_bfloat16(ak + 6);
    c6_0 += a6 * b0;
    c6_1 += a6 * b1;
    const vf a7 = tw_splat_bfloat16(ak + 7);
    c7_0 += a7 * b0;
    c7_1 += a7 * b1;
    const vf a8 = tw_splat_bfloat16(ak + 8);
    c8_0 += a8 * b0;
    c8_1 += a8 * b1;
    const vf a9 = tw_splat_bfloat16(ak + 9);
    c9_0 += a9 * b0;
    c9_1 += a9 * b1;
    const vf a10 = tw_splat_bfloat16(ak + 10);
    c10_0 += a10 * b0;
    c10_1 += a10 * b1;
    const vf a11 = tw_splat_bfloat16(ak + 11);
    c11_0 += a11 * b0;
    c11_1 += a11 * b1;
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c1_0 += tw_load_float32(s + 32);
    c1_1 += tw_load_float32(s + 48);
    c2_0 += tw_load_float32(s + 64);
    c2_1 += tw_load_float32(s + 80);
    c3_0 += tw_load_float32(s + 96);
    c3_1 += tw_load_float32(s + 112);
    c4_0 += tw_load_float32(s + 128);
    c4_1 += tw_load_float32(s + 144);
    c5_0 += tw_load_float32(s + 160);
    c5_1 += tw_load_float32(s + 176);
    c6_0 += tw_load_float32(s + 192);
    c6_1 += tw_load_float32(s + 208);
    c7_0 += tw_load_float32(s + 224);
    c7_1 += tw_load_float32(s + 240);
    c8_0 += tw_load_float32(s + 256);
    c8_1 += tw_load_float32(s + 272);
    c9_0 += tw_load_float32(s + 288);
    c9_1 += tw_load_float32(s + 304);
    c10_0 += tw_load_float32(s + 320);
    c10_1 += tw_load_float32(s + 336);
    c11_0 += tw_load_float32(s + 352);
    c11_1 += tw_load_float32(s + 368);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 32, c1_0);
  tw_store_float32(s + 48, c1_1);
  tw_store_float32(s + 64, c2_0);
  tw_store_float32(s + 80, c2_1);
  tw_store_float32(s + 96, c3_0);
  tw_store_float32(s + 112, c3_1);
  tw_store_float32(s + 128, c4_0);
  tw_store_float32(s + 144, c4_1);
  tw_store_float32(s + 160, c5_0);
  tw_store_float32(s + 176, c5_1);
  tw_store_float32(s + 192, c6_0);
  tw_store_float32(s + 208, c6_1);
  tw_store_float32(s + 224, c7_0);
  tw_store_float32(s + 240, c7_1);
  tw_store_float32(s + 256, c8_0);
  tw_store_float32(s + 272, c8_1);
  tw_store_float32(s + 288, c9_0);
  tw_store_float32(s + 304, c9_1);
  tw_store_float32(s + 320, c10_0);
  tw_store_float32(s + 336, c10_1);
  tw_store_float32(s + 352, c11_0);
  tw_store_float32(s + 368, c11_1);
}
static __attribute__((noinline)) void tw_98e62c7ea88dc064_12x26(
    const unsigned short *restrict a, const float *restrict b, float *restrict s,
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
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 600 ? k0_most : 600; k0 < k0_end; k0++) {
    {
    const unsigned short *ak = a + 61 * start + 61 * k0;
    const float *bk = b + 32 * start + 32 * k0;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_bfloat16(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    const vf a1 = tw_splat_bfloat16(ak + 1);
    c1_0 += a1 * b0;
    c1_1 += a1 * b1;
    const vf a2 = tw_splat_bfloat16(ak + 2);
    c2_0 += a2 * b0;
    c2_1 += a2 * b1;
    const vf a3 = tw_splat_bfloat16(ak + 3);
    c3_0 += a3 * b0;
    c3_1 += a3 * b1;
    const vf a4 = tw_splat_bfloat16(ak + 4);
    c4_0 += a4 * b0;
    c4_1 += a4 * b1;
    const vf a5 = tw_splat_bfloat16(ak + 5);
    c5_0 += a5 * b0;
    c5_1 += a5 * b1;
    const vf a6 = tw_splat_bfloat16(ak + 6);
    c6_0 += a6 * b0;
    c6_1 += a6 * b1;
    const vf a7 = tw_splat_bfloat16(ak + 7);
    c7_0 += a7 * b0;
    c7_1 += a7 * b1;
    const vf a8 = tw_splat_bfloat16(ak + 8);
    c8_0 += a8 * b0;
    c8_1 += a8 * b1;
    const vf a9 = tw_splat_bfloat16(ak + 9);
    c9_0 += a9 * b0;
    c9_1 += a9 * b1;
    const vf a10 = tw_splat_bfloat16(ak + 10);
    c10_0 += a10 * b0;
    c10_1 += a10 * b1;
    const vf a11 = tw_splat_bfloat16(ak + 11);
    c11_0 += a11 * b0;
    c11_1 += a11 * b1;
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_first_float32(s + 16, 10);
    c1_0 += tw_load_float32(s + 32);
    c1_1 += tw_load_first_float32(s + 48, 10);
    c2_0 += tw_load_float32(s + 64);
    c2_1 += tw_load_first_float32(s + 80, 10);
    c3_0 += tw_load_float32(s + 96);
    c3_1 += tw_load_first_float32(s + 112, 10);
    c4_0 += tw_load_float32(s + 128);
    c4_1 += tw_load_first_float32(s + 144, 10);
    c5_0 += tw_load_float32(s + 160);
    c5_1 += tw_load_first_float32(s + 176, 10);
    c6_0 += tw_load_float32(s + 192);
    c6_1 += tw_load_first_float32(s + 208, 10);
    c7_0 += tw_load_float32(s + 224);
    c7_1 += tw_load_first_float32(s + 240, 10);
    c8_0 += tw_load_float32(s + 256);
    c8_1 += tw_load_first_float32(s + 272, 10);
    c9_0 += tw_load_float32(s + 288);
    c9_1 += tw_load_first_float32(s + 304, 10);
    c10_0 += tw_load_float32(s + 320);
    c10_1 += tw_load_first_float32(s + 336, 10);
    c11_0 += tw_load_float32(s + 352);
    c11_1 += tw_load_first_float32(s + 368, 10);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_first_float32(s + 16, c0_1, 10);
  tw_store_float32(s + 32, c1_0);
  tw_store_first_float32(s + 48, c1_1, 10);
  tw_store_float32(s + 64, c2_0);
  tw_store_first_float32(s + 80, c2_1, 10);
  tw_store_float32(s + 96, c3_0);
  tw_store_first_float32(s + 112, c3_1, 10);
  tw_store_float32(s + 128, c4_0);
  tw_store_first_float32(s + 144, c4_1, 10);
  tw_store_float32(s + 160, c5_0);
  tw_store_first_float32(s + 176, c5_1, 10);
  tw_store_float32(s + 192, c6_0);
  tw_store_first_float32(s + 208, c6_1, 10);
  tw_store_float32(s + 224, c7_0);
  tw_store_first_float32(s + 240, c7_1, 10);
  tw_store_float32(s + 256, c8_0);
  tw_store_first_float32(s + 272, c8_1, 10);
  tw_store_float32(s + 288, c9_0);
  tw_store_first_float32(s + 304, c9_1, 10);
  tw_store_float32(s + 320, c10_0);
  tw_store_first_float32(s + 336, c10_1, 10);
  tw_store_float32(s + 352, c11_0);
  tw_store_first_float32(s + 368, c11_1, 10);
}
static __attribute__((noinline)) void tw_98e62c7ea88dc064_1x32(
    const unsigned short *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 600 ? k0_most : 600; k0 < k0_end; k0++) {
    {
    const unsigned short *ak = a + 61 * start + 61 * k0;
    const float *bk = b + 32 * start + 32 * k0;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_bfloat16(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
}
static __attribute__((noinline)) void tw_98e62c7ea88dc064_1x26(
    const unsigned short *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 600 ? k0_most : 600; k0 < k0_end; k0++) {
    {
    const unsigned short *ak = a + 61 * start + 61 * k0;
    const float *bk = b + 32 * start + 32 * k0;
    const vf b0 = tw_load_float32(bk + 0);
    const vf b1 = tw_load_float32(bk + 16);
    const vf a0 = tw_splat_bfloat16(ak + 0);
    c0_0 += a0 * b0;
    c0_1 += a0 * b1;
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_first_float32(s + 16, 10);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_first_float32(s + 16, c0_1, 10);
}
static inline void tw_98e62c7ea88dc064_tile(
    const unsigned short *a, const float *b, float *s,
    long rows, long columns, long depth, int accumulate) {
  if (rows < 12 && columns < 32) tw_98e62c7ea88dc064_1x26(a, b, s, depth, accumulate);
  else if (columns < 32) tw_98e62c7ea88dc064_12x26(a, b, s, depth, accumulate);
  else if (rows < 12) tw_98e62c7ea88dc064_1x32(a, b, s, depth, accumulate);
  else tw_98e62c7ea88dc064_12x32(a, b, s, depth, accumulate);
}
static __attribute__((noinline)) void tw_98e62c7ea88dc064_finish(const float *s, unsigned short *c, const unsigned short *e_bias, const unsigned short *e_scale, long rows, long columns) {
  for (long i0 = 0, i0_most = rows, i0_end = i0_most < 12 ? i0_most : 12; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = (columns + 15) / 16, i1_end = i1_most < 2 ? i1_most : 2; i1 < i1_end; i1++) {
      const long left = columns - (16 * i1);
      const vf x = tw_load_most_float32(s + 32 * i0 + 16 * i1, left);
      tw_store_most_bfloat16(c + 90 * i0 + 16 * i1, tw_relu(x + tw_load_most_bfloat16(e_bias + 16 * i1, left)) * tw_splat_bfloat16(e_scale + 0), left);
    }
  }
}
static void tw_98e62c7ea88dc064_work(void *context, int worker) {
  const tw_call *call = context;
  const unsigned short *l = call->buffers[0];
  const unsigned short *r = call->buffers[1];
  const unsigned short *e_bias = call->buffers[2];
  const unsigned short *e_scale = call->buffers[3];
  unsigned short *c = call->buffers[4];
  float *own = (float *)call->workspace + (13312 * worker);
  float *pl = (void *)own, *pr = pl + 0;
  float *sums = own + 10256;
if (worker < 3) {
  const long row0 = 0, column0 = (32 * worker);
  const long chunk_rows = tw_least(61 - row0, 72);
  const long chunk_columns = tw_least(90 - column0, 32);
  if (0 < chunk_columns) {
    for (long b0 = 0; b0 < 2; b0++) {
      const long j = 0, k = (320 * b0);
      const long columns = tw_least(chunk_columns - j, 32);
      const long depth = tw_least(600 - k, 320);
      tw_98e62c7ea88dc064_right(r + k + 600 * column0 + 600 * j, pr, depth, columns);
      for (long r0 = 0, r0_most = (chunk_rows + 23) / 24, r0_end = r0_most < 3 ? r0_most : 3; r0 < r0_end; r0++) {
        const long i = (24 * r0);
        const long rows = tw_least(chunk_rows - i, 24);
        if (0 < columns) {
          for (long t0 = 0, t0_most = (rows + 11) / 12, t0_end = t0_most < 2 ? t0_most : 2; t0 < t0_end; t0++) {
            tw_98e62c7ea88dc064_tile(l + row0 + i + 12 * t0 + 61 * k, pr + 0, sums + 32 * i + 384 * t0 + j, rows - (12 * t0), columns - 0, depth, k > 0);
            if (k + depth == 600) tw_98e62c7ea88dc064_finish(sums + 32 * i + 384 * t0 + j, c + 90 * row0 + 90 * i + 1080 * t0 + column0 + j, e_bias + column0 + j, e_scale + 0, rows - (12 * t0), columns - 0);
          }
        }
      }
    }
  }
}
}
void tw_98e62c7ea88dc064(
    void *const *buffers, void *workspace, const tw_runtime *runtime) {
  tw_call call = {buffers, workspace};
  runtime->parallel(runtime->pool, 4, tw_98e62c7ea88dc064_work, &call);
}
