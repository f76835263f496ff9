/* matmul m=61 n=90 k=600 dtype=bfloat16 out=bfloat16 a=col b=col c=row epilogue="relu(x + bias[n]) * scale"
   contraction: multiply=fma tile_rows=5 tile_vectors=3 row_workers=1 column_workers=4 order=rows_outer pack_left=True pack_right=True block_depth=256 block_rows=128 block_columns=64 unroll=4 prefetch=8 */
static __attribute__((noinline)) void tw_0f16ae550eeefe1a_left(const unsigned short *restrict p, float *restrict q, long rows, long depth) {
  for (long i0 = 0, i0_most = (rows + 4) / 5, i0_end = i0_most < 13 ? i0_most : 13; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = depth, i1_end = i1_most < 224 ? i1_most : 224; i1 < i1_end; i1++) {
      const long left = rows - (5 * i0) < 5 ? rows - (5 * i0) : 5;
      if (0 < left) {
        tw_store_float32(q + 1120 * i0 + 5 * i1, tw_load_most_bfloat16(p + 5 * i0 + 61 * i1, left - 0));
      }
    }
  }
}
static __attribute__((noinline)) void tw_0f16ae550eeefe1a_right(const unsigned short *restrict p, float *restrict q, long depth, long columns) {
  if (0 < columns) {
    for (long i0 = 0, i0_most = (depth + 15) / 16, i0_end = i0_most < 14 ? i0_most : 14; i0 < i0_end; i0++) {
      const long left = columns - 0;
      if (0 < left) {
        tw_transpose_bfloat16(p + 16 * i0, 600, left - 0, depth - (16 * i0), q + 768 * i0, 48);
      }
      if (16 < left) {
        tw_transpose_bfloat16(p + 16 * i0 + 9600, 600, left - 16, depth - (16 * i0), q + 768 * i0 + 16, 48);
      }
      if (32 < left) {
        tw_transpose_bfloat16(p + 16 * i0 + 19200, 600, left - 32, depth - (16 * i0), q + 768 * i0 + 32, 48);
      }
    }
  }
}
static __attribute__((noinline)) void tw_0f16ae550eeefe1a_5x48(
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
  __builtin_prefetch(s + 48, 1);
  __builtin_prefetch(s + 64, 1);
  __builtin_prefetch(s + 80, 1);
  __builtin_prefetch(s + 95, 1);
  __builtin_prefetch(s + 96, 1);
  __builtin_prefetch(s + 112, 1);
  __builtin_prefetch(s + 128, 1);
  __builtin_prefetch(s + 143, 1);
  __builtin_prefetch(s + 144, 1);
  __builtin_prefetch(s + 160, 1);
  __builtin_prefetch(s + 176, 1);
  __builtin_prefetch(s + 191, 1);
  __builtin_prefetch(s + 192, 1);
  __builtin_prefetch(s + 208, 1);
  __builtin_prefetch(s + 224, 1);
  __builtin_prefetch(s + 239, 1);
  const long whole = depth - depth % 4;
for (long k0 = 0, k0_most = (whole + 3) / 4, k0_end = k0_most < 56 ? k0_most : 56; k0 < k0_end; k0++) {
  {
  const float *ak = a + 20 * k0;
  const float *bk = b + 192 * k0;
  const vf b0 = tw_load_float32(bk + 0);
  __builtin_prefetch(bk + 384);
  const vf b1 = tw_load_float32(bk + 16);
  __builtin_prefetch(bk + 400);
  const vf b2 = tw_load_float32(bk + 32);
  __builtin_prefetch(bk + 416);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  const vf a1 = tw_splat_float32(ak + 1);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  c1_2 += a1 * b2;
  const vf a2 = tw_splat_float32(ak + 2);
  c2_0 += a2 * b0;
  c2_1 += a2 * b1;
  c2_2 += a2 * b2;
  const vf a3 = tw_splat_float32(ak + 3);
  c3_0 += a3 * b0;
  c3_1 += a3 * b1;
  c3_2 += a3 * b2;
  const vf a4 = tw_splat_float32(ak + 4);
  c4_0 += a4 * b0;
  c4_1 += a4 * b1;
  c4_2 += a4 * b2;
  }
  {
  const float *ak = a + 20 * k0 + 5;
  const float *bk = b + 192 * k0 + 48;
  const vf b0 = tw_load_float32(bk + 0);
  __builtin_prefetch(bk + 384);
  const vf b1 = tw_load_float32(bk + 16);
  __builtin_prefetch(bk + 400);
  const vf b2 = tw_load_float32(bk + 32);
  __builtin_prefetch(bk + 416);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  const vf a1 = tw_splat_float32(ak + 1);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  c1_2 += a1 * b2;
  const vf a2 = tw_splat_float32(ak + 2);
  c2_0 += a2 * b0;
  c2_1 += a2 * b1;
  c2_2 += a2 * b2;
  const vf a3 = tw_splat_float32(ak + 3);
  c3_0 += a3 * b0;
  c3_1 += a3 * b1;
  c3_2 += a3 * b2;
  const vf a4 = tw_splat_float32(ak + 4);
  c4_0 += a4 * b0;
  c4_1 += a4 * b1;
  c4_2 += a4 * b2;
  }
  {
  const float *ak = a + 20 * k0 + 10;
  const float *bk = b + 192 * k0 + 96;
  const vf b0 = tw_load_float32(bk + 0);
  __builtin_prefetch(bk + 384);
  const vf b1 = tw_load_float32(bk + 16);
  __builtin_prefetch(bk + 400);
  const vf b2 = tw_load_float32(bk + 32);
  __builtin_prefetch(bk + 416);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  const vf a1 = tw_splat_float32(ak + 1);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  c1_2 += a1 * b2;
  const vf a2 = tw_splat_float32(ak + 2);
  c2_0 += a2 * b0;
  c2_1 += a2 * b1;
  c2_2 += a2 * b2;
  const vf a3 = tw_splat_float32(ak + 3);
  c3_0 += a3 * b0;
  c3_1 += a3 * b1;
  c3_2 += a3 * b2;
  const vf a4 = tw_splat_float32(ak + 4);
  c4_0 += a4 * b0;
  c4_1 += a4 * b1;
  c4_2 += a4 * b2;
  }
  {
  const float *ak = a + 20 * k0 + 15;
  const float *bk = b + 192 * k0 + 144;
  const vf b0 = tw_load_float32(bk + 0);
  __builtin_prefetch(bk + 384);
  const vf b1 = tw_load_float32(bk + 16);
  __builtin_prefetch(bk + 400);
  const vf b2 = tw_load_float32(bk + 32);
  __builtin_prefetch(bk + 416);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  const vf a1 = tw_splat_float32(ak + 1);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  c1_2 += a1 * b2;
  const vf a2 = tw_splat_float32(ak + 2);
  c2_0 += a2 * b0;
  c2_1 += a2 * b1;
  c2_2 += a2 * b2;
  const vf a3 = tw_splat_float32(ak + 3);
  c3_0 += a3 * b0;
  c3_1 += a3 * b1;
  c3_2 += a3 * b2;
  const vf a4 = tw_splat_float32(ak + 4);
  c4_0 += a4 * b0;
  c4_1 += a4 * b1;
  c4_2 += a4 * b2;
  }
}
for (long t0 = 0, t0_most = depth - whole, t0_end = t0_most < 3 ? t0_most : 3; t0 < t0_end; t0++) {
  const float *ak = a + 5 * whole + 5 * t0;
  const float *bk = b + 48 * whole + 48 * t0;
  const vf b0 = tw_load_float32(bk + 0);
  __builtin_prefetch(bk + 384);
  const vf b1 = tw_load_float32(bk + 16);
  __builtin_prefetch(bk + 400);
  const vf b2 = tw_load_float32(bk + 32);
  __builtin_prefetch(bk + 416);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  const vf a1 = tw_splat_float32(ak + 1);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  c1_2 += a1 * b2;
  const vf a2 = tw_splat_float32(ak + 2);
  c2_0 += a2 * b0;
  c2_1 += a2 * b1;
  c2_2 += a2 * b2;
  const vf a3 = tw_splat_float32(ak + 3);
  c3_0 += a3 * b0;
  c3_1 += a3 * b1;
  c3_2 += a3 * b2;
  const vf a4 = tw_splat_float32(ak + 4);
  c4_0 += a4 * b0;
  c4_1 += a4 * b1;
  c4_2 += a4 * b2;
}
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c0_2 += tw_load_float32(s + 32);
    c1_0 += tw_load_float32(s + 48);
    c1_1 += tw_load_float32(s + 64);
    c1_2 += tw_load_float32(s + 80);
    c2_0 += tw_load_float32(s + 96);
    c2_1 += tw_load_float32(s + 112);
    c2_2 += tw_load_float32(s + 128);
    c3_0 += tw_load_float32(s + 144);
    c3_1 += tw_load_float32(s + 160);
    c3_2 += tw_load_float32(s + 176);
    c4_0 += tw_load_float32(s + 192);
    c4_1 += tw_load_float32(s + 208);
    c4_2 += tw_load_float32(s + 224);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 32, c0_2);
  tw_store_float32(s + 48, c1_0);
  tw_store_float32(s + 64, c1_1);
  tw_store_float32(s + 80, c1_2);
  tw_store_float32(s + 96, c2_0);
  tw_store_float32(s + 112, c2_1);
  tw_store_float32(s + 128, c2_2);
  tw_store_float32(s + 144, c3_0);
  tw_store_float32(s + 160, c3_1);
  tw_store_float32(s + 176, c3_2);
  tw_store_float32(s + 192, c4_0);
  tw_store_float32(s + 208, c4_1);
  tw_store_float32(s + 224, c4_2);
}
static __attribute__((noinline)) void tw_0f16ae550eeefe1a_5x42(
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
  __builtin_prefetch(s + 41, 1);
  __builtin_prefetch(s + 48, 1);
  __builtin_prefetch(s + 64, 1);
  __builtin_prefetch(s + 80, 1);
  __builtin_prefetch(s + 89, 1);
  __builtin_prefetch(s + 96, 1);
  __builtin_prefetch(s + 112, 1);
  __builtin_prefetch(s + 128, 1);
  __builtin_prefetch(s + 137, 1);
  __builtin_prefetch(s + 144, 1);
  __builtin_prefetch(s + 160, 1);
  __builtin_prefetch(s + 176, 1);
  __builtin_prefetch(s + 185, 1);
  __builtin_prefetch(s + 192, 1);
  __builtin_prefetch(s + 208, 1);
  __builtin_prefetch(s + 224, 1);
  __builtin_prefetch(s + 233, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 224 ? k0_most : 224; k0 < k0_end; k0++) {
  {
  const float *ak = a + 5 * k0;
  const float *bk = b + 48 * k0;
  const vf b0 = tw_load_float32(bk + 0);
  const vf b1 = tw_load_float32(bk + 16);
  const vf b2 = tw_load_float32(bk + 32);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  const vf a1 = tw_splat_float32(ak + 1);
  c1_0 += a1 * b0;
  c1_1 += a1 * b1;
  c1_2 += a1 * b2;
  const vf a2 = tw_splat_float32(ak + 2);
  c2_0 += a2 * b0;
  c2_1 += a2 * b1;
  c2_2 += a2 * b2;
  const vf a3 = tw_splat_float32(ak + 3);
  c3_0 += a3 * b0;
  c3_1 += a3 * b1;
  c3_2 += a3 * b2;
  const vf a4 = tw_splat_float32(ak + 4);
  c4_0 += a4 * b0;
  c4_1 += a4 * b1;
  c4_2 += a4 * b2;
  }
}
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c0_2 += tw_load_first_float32(s + 32, 10);
    c1_0 += tw_load_float32(s + 48);
    c1_1 += tw_load_float32(s + 64);
    c1_2 += tw_load_first_float32(s + 80, 10);
    c2_0 += tw_load_float32(s + 96);
    c2_1 += tw_load_float32(s + 112);
    c2_2 += tw_load_first_float32(s + 128, 10);
    c3_0 += tw_load_float32(s + 144);
    c3_1 += tw_load_float32(s + 160);
    c3_2 += tw_load_first_float32(s + 176, 10);
    c4_0 += tw_load_float32(s + 192);
    c4_1 += tw_load_float32(s + 208);
    c4_2 += tw_load_first_float32(s + 224, 10);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_first_float32(s + 32, c0_2, 10);
  tw_store_float32(s + 48, c1_0);
  tw_store_float32(s + 64, c1_1);
  tw_store_first_float32(s + 80, c1_2, 10);
  tw_store_float32(s + 96, c2_0);
  tw_store_float32(s + 112, c2_1);
  tw_store_first_float32(s + 128, c2_2, 10);
  tw_store_float32(s + 144, c3_0);
  tw_store_float32(s + 160, c3_1);
  tw_store_first_float32(s + 176, c3_2, 10);
  tw_store_float32(s + 192, c4_0);
  tw_store_float32(s + 208, c4_1);
  tw_store_first_float32(s + 224, c4_2, 10);
}
static __attribute__((noinline)) void tw_0f16ae550eeefe1a_1x48(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  vf c0_2 = {0};
  __builtin_prefetch(s + 0, 1);
  __builtin_prefetch(s + 16, 1);
  __builtin_prefetch(s + 32, 1);
  __builtin_prefetch(s + 47, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 224 ? k0_most : 224; k0 < k0_end; k0++) {
  {
  const float *ak = a + 5 * k0;
  const float *bk = b + 48 * k0;
  const vf b0 = tw_load_float32(bk + 0);
  const vf b1 = tw_load_float32(bk + 16);
  const vf b2 = tw_load_float32(bk + 32);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  }
}
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c0_2 += tw_load_float32(s + 32);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 32, c0_2);
}
static __attribute__((noinline)) void tw_0f16ae550eeefe1a_1x42(
    const float *restrict a, const float *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  vf c0_2 = {0};
  __builtin_prefetch(s + 0, 1);
  __builtin_prefetch(s + 16, 1);
  __builtin_prefetch(s + 32, 1);
  __builtin_prefetch(s + 41, 1);
  const long whole = depth - depth % 1;
for (long k0 = 0, k0_most = whole, k0_end = k0_most < 224 ? k0_most : 224; k0 < k0_end; k0++) {
  {
  const float *ak = a + 5 * k0;
  const float *bk = b + 48 * k0;
  const vf b0 = tw_load_float32(bk + 0);
  const vf b1 = tw_load_float32(bk + 16);
  const vf b2 = tw_load_float32(bk + 32);
  const vf a0 = tw_splat_float32(ak + 0);
  c0_0 += a0 * b0;
  c0_1 += a0 * b1;
  c0_2 += a0 * b2;
  }
}
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c0_2 += tw_load_first_float32(s + 32, 10);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_first_float32(s + 32, c0_2, 10);
}
static inline void tw_0f16ae550eeefe1a_tile(
    const float *a, const float *b, float *s,
    long rows, long columns, long depth, int accumulate) {
  if (rows < 5 && columns < 48) tw_0f16ae550eeefe1a_1x42(a, b, s, depth, accumulate);
  else if (columns < 48) tw_0f16ae550eeefe1a_5x42(a, b, s, depth, accumulate);
  else if (rows < 5) tw_0f16ae550eeefe1a_1x48(a, b, s, depth, accumulate);
  else tw_0f16ae550eeefe1a_5x48(a, b, s, depth, accumulate);
}
static __attribute__((noinline)) void tw_0f16ae550eeefe1a_finish(const float *s, unsigned short *c, const unsigned short *e_bias, const unsigned short *e_scale, long rows, long columns) {
  for (long i0 = 0, i0_most = rows, i0_end = i0_most < 5 ? i0_most : 5; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = (columns + 15) / 16, i1_end = i1_most < 3 ? i1_most : 3; i1 < i1_end; i1++) {
      const long left = columns - (16 * i1);
      vf x = tw_load_most_float32(s + 48 * i0 + 16 * i1, left);
      x = tw_relu(x + tw_load_most_bfloat16(e_bias + 16 * i1, left)) * tw_splat_bfloat16(e_scale + 0);
      tw_store_most_bfloat16(c + 90 * i0 + 16 * i1, x, left);
    }
  }
}
static void tw_0f16ae550eeefe1a_work(void *context, int worker) {
  const tw_call *call = context;
  const unsigned short *l = call->buffers[0];
  const unsigned short *r = call->buffers[1];
  const unsigned short *e_bias = call->buffers[2];
  const unsigned short *e_scale = call->buffers[3];
  unsigned short *c = call->buffers[4];
  float *own = (float *)call->workspace + (28672 * worker);
  float *pl = (void *)own, *pr = pl + 14576;
  float *sums = own + 25344;
if (worker < 2) {
  const long row0 = 0, column0 = (48 * worker);
  const long chunk_rows = tw_least(61 - row0, 65);
  const long chunk_columns = tw_least(90 - column0, 48);
  if (0 < chunk_columns) {
    for (long b0 = 0; b0 < 3; b0++) {
      const long j = 0, k = (224 * b0);
      const long columns = tw_least(chunk_columns - j, 48);
      const long depth = tw_least(600 - k, 224);
      tw_0f16ae550eeefe1a_right(r + k + 600 * column0 + 600 * j, pr, depth, columns);
      if (0 < chunk_rows) {
        const long i = 0;
        const long rows = tw_least(chunk_rows - i, 65);
        tw_0f16ae550eeefe1a_left(l + row0 + i + 61 * k, pl, rows, depth);
        if (0 < columns) {
          for (long t0 = 0, t0_most = (rows + 4) / 5, t0_end = t0_most < 13 ? t0_most : 13; t0 < t0_end; t0++) {
            tw_0f16ae550eeefe1a_tile(pl + 1120 * t0, pr + 0, sums + 48 * i + 240 * t0 + j, rows - (5 * t0), columns - 0, depth, k > 0);
            if (k + depth == 600) tw_0f16ae550eeefe1a_finish(sums + 48 * i + 240 * t0 + j, c + 90 * row0 + 90 * i + 450 * t0 + column0 + j, e_bias + column0 + j, e_scale + 0, rows - (5 * t0), columns - 0);
          }
        }
      }
    }
  }
}
}
void tw_0f16ae550eeefe1a(
    void *const *buffers, void *workspace, const tw_runtime *runtime) {
  tw_call call = {buffers, workspace};
  runtime->parallel(runtime->pool, 4, tw_0f16ae550eeefe1a_work, &call);
}
