/* matmul m=61 n=90 k=600 dtype=bfloat16 out=bfloat16 a=col b=col c=row epilogue="relu(x + bias[n]) * scale[]"
   contraction: multiply=dot tile_rows=6 tile_vectors=4 row_workers=2 column_workers=1 order=rows_outer pack_left=True pack_right=True block_depth=384 block_rows=32 block_columns=128 unroll=1 prefetch=True */
static __attribute__((noinline)) void tw_7ec33d48b6eb3cf2_left(const unsigned short *restrict p, tw_pair *restrict q, long rows, long depth) {
  for (long i0 = 0, i0_most = (rows + 5) / 6, i0_end = i0_most < 3 ? i0_most : 3; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = depth, i1_end = i1_most < 160 ? i1_most : 160; i1 < i1_end; i1++) {
      const long left = rows - (6 * i0) < 6 ? rows - (6 * i0) : 6;
      if (0 < left) {
        tw_store_bfloat16x2(q + 960 * i0 + 6 * i1, tw_load_pairs(p + 6 * i0 + 122 * i1, 61, left - 0));
      }
    }
  }
}
static __attribute__((noinline)) void tw_7ec33d48b6eb3cf2_right(const tw_pair *restrict p, tw_pair *restrict q, long depth, long columns) {
  for (long i0 = 0, i0_most = (columns + 63) / 64, i0_end = i0_most < 2 ? i0_most : 2; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = (depth + 15) / 16, i1_end = i1_most < 10 ? i1_most : 10; i1 < i1_end; i1++) {
      const long left = columns - (64 * i0);
      if (0 < left) {
        tw_transpose_bfloat16x2(p + 16 * i1 + 19200 * i0, 300, left - 0, depth - (16 * i1), q + 10240 * i0 + 1024 * i1, 64);
      }
      if (16 < left) {
        tw_transpose_bfloat16x2(p + 16 * i1 + 19200 * i0 + 4800, 300, left - 16, depth - (16 * i1), q + 10240 * i0 + 1024 * i1 + 16, 64);
      }
      if (32 < left) {
        tw_transpose_bfloat16x2(p + 16 * i1 + 19200 * i0 + 9600, 300, left - 32, depth - (16 * i1), q + 10240 * i0 + 1024 * i1 + 32, 64);
      }
      if (48 < left) {
        tw_transpose_bfloat16x2(p + 16 * i1 + 19200 * i0 + 14400, 300, left - 48, depth - (16 * i1), q + 10240 * i0 + 1024 * i1 + 48, 64);
      }
    }
  }
}
static __attribute__((noinline)) void tw_7ec33d48b6eb3cf2_6x64(
    const tw_pair *restrict a, const tw_pair *restrict b, float *restrict s,
    long depth, int accumulate, const unsigned short *next) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  vf c0_2 = {0};
  vf c0_3 = {0};
  vf c1_0 = {0};
  vf c1_1 = {0};
  vf c1_2 = {0};
  vf c1_3 = {0};
  vf c2_0 = {0};
  vf c2_1 = {0};
  vf c2_2 = {0};
  vf c2_3 = {0};
  vf c3_0 = {0};
  vf c3_1 = {0};
  vf c3_2 = {0};
  vf c3_3 = {0};
  vf c4_0 = {0};
  vf c4_1 = {0};
  vf c4_2 = {0};
  vf c4_3 = {0};
  vf c5_0 = {0};
  vf c5_1 = {0};
  vf c5_2 = {0};
  vf c5_3 = {0};
  const long start = depth < 110 ? depth : 110 + (depth - 110) % 1;
  for (long f0 = 0, f0_most = start, f0_end = f0_most < 111 ? f0_most : 111; f0 < f0_end; f0++) {
    if (f0 < 24) {
    __builtin_prefetch(s + 128 * (f0 / 4) + 16 * (f0 % 4), 1);
    }
    __builtin_prefetch(next + 600 * (f0 / 10) + 32 * (f0 % 10), 0, 2);
    const tw_pair *ak = a + 6 * f0;
    const tw_pair *bk = b + 64 * f0;
    const vf b0 = tw_load_bfloat16x2(bk + 0);
    const vf b1 = tw_load_bfloat16x2(bk + 16);
    const vf b2 = tw_load_bfloat16x2(bk + 32);
    const vf b3 = tw_load_bfloat16x2(bk + 48);
    const vf a0 = tw_splat_bfloat16x2(ak + 0);
    c0_0 = tw_dot_pairs(c0_0, a0, b0);
    c0_1 = tw_dot_pairs(c0_1, a0, b1);
    c0_2 = tw_dot_pairs(c0_2, a0, b2);
    c0_3 = tw_dot_pairs(c0_3, a0, b3);
    const vf a1 = tw_splat_bfloat16x2(ak + 1);
    c1_0 = tw_dot_pairs(c1_0, a1, b0);
    c1_1 = tw_dot_pairs(c1_1, a1, b1);
    c1_2 = tw_dot_pairs(c1_2, a1, b2);
    c1_3 = tw_dot_pairs(c1_3, a1, b3);
    const vf a2 = tw_splat_bfloat16x2(ak + 2);
    c2_0 = tw_dot_pairs(c2_0, a2, b0);
    c2_1 = tw_dot_pairs(c2_1, a2, b1);
    c2_2 = tw_dot_pairs(c2_2, a2, b2);
    c2_3 = tw_dot_pairs(c2_3, a2, b3);
    const vf a3 = tw_splat_bfloat16x2(ak + 3);
    c3_0 = tw_dot_pairs(c3_0, a3, b0);
    c3_1 = tw_dot_pairs(c3_1, a3, b1);
    c3_2 = tw_dot_pairs(c3_2, a3, b2);
    c3_3 = tw_dot_pairs(c3_3, a3, b3);
    const vf a4 = tw_splat_bfloat16x2(ak + 4);
    c4_0 = tw_dot_pairs(c4_0, a4, b0);
    c4_1 = tw_dot_pairs(c4_1, a4, b1);
    c4_2 = tw_dot_pairs(c4_2, a4, b2);
    c4_3 = tw_dot_pairs(c4_3, a4, b3);
    const vf a5 = tw_splat_bfloat16x2(ak + 5);
    c5_0 = tw_dot_pairs(c5_0, a5, b0);
    c5_1 = tw_dot_pairs(c5_1, a5, b1);
    c5_2 = tw_dot_pairs(c5_2, a5, b2);
    c5_3 = tw_dot_pairs(c5_3, a5, b3);
  }
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 160 ? k0_most : 160; k0 < k0_end; k0++) {
    {
    const tw_pair *ak = a + 6 * start + 6 * k0;
    const tw_pair *bk = b + 64 * start + 64 * k0;
    const vf b0 = tw_load_bfloat16x2(bk + 0);
    const vf b1 = tw_load_bfloat16x2(bk + 16);
    const vf b2 = tw_load_bfloat16x2(bk + 32);
    const vf b3 = tw_load_bfloat16x2(bk + 48);
    const vf a0 = tw_splat_bfloat16x2(ak + 0);
    c0_0 = tw_dot_pairs(c0_0, a0, b0);
    c0_1 = tw_dot_pairs(c0_1, a0, b1);
    c0_2 = tw_dot_pairs(c0_2, a0, b2);
    c0_3 = tw_dot_pairs(c0_3, a0, b3);
    const vf a1 = tw_splat_bfloat16x2(ak + 1);
    c1_0 = tw_dot_pairs(c1_0, a1, b0);
    c1_1 = tw_dot_pairs(c1_1, a1, b1);
    c1_2 = tw_dot_pairs(c1_2, a1, b2);
    c1_3 = tw_dot_pairs(c1_3, a1, b3);
    const vf a2 = tw_splat_bfloat16x2(ak + 2);
    c2_0 = tw_dot_pairs(c2_0, a2, b0);
    c2_1 = tw_dot_pairs(c2_1, a2, b1);
    c2_2 = tw_dot_pairs(c2_2, a2, b2);
    c2_3 = tw_dot_pairs(c2_3, a2, b3);
    const vf a3 = tw_splat_bfloat16x2(ak + 3);
    c3_0 = tw_dot_pairs(c3_0, a3, b0);
    c3_1 = tw_dot_pairs(c3_1, a3, b1);
    c3_2 = tw_dot_pairs(c3_2, a3, b2);
    c3_3 = tw_dot_pairs(c3_3, a3, b3);
    const vf a4 = tw_splat_bfloat16x2(ak + 4);
    c4_0 = tw_dot_pairs(c4_0, a4, b0);
    c4_1 = tw_dot_pairs(c4_1, a4, b1);
    c4_2 = tw_dot_pairs(c4_2, a4, b2);
    c4_3 = tw_dot_pairs(c4_3, a4, b3);
    const vf a5 = tw_splat_bfloat16x2(ak + 5);
    c5_0 = tw_dot_pairs(c5_0, a5, b0);
    c5_1 = tw_dot_pairs(c5_1, a5, b1);
    c5_2 = tw_dot_pairs(c5_2, a5, b2);
    c5_3 = tw_dot_pairs(c5_3, a5, b3);
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c0_2 += tw_load_float32(s + 32);
    c0_3 += tw_load_float32(s + 48);
    c1_0 += tw_load_float32(s + 128);
    c1_1 += tw_load_float32(s + 144);
    c1_2 += tw_load_float32(s + 160);
    c1_3 += tw_load_float32(s + 176);
    c2_0 += tw_load_float32(s + 256);
    c2_1 += tw_load_float32(s + 272);
    c2_2 += tw_load_float32(s + 288);
    c2_3 += tw_load_float32(s + 304);
    c3_0 += tw_load_float32(s + 384);
    c3_1 += tw_load_float32(s + 400);
    c3_2 += tw_load_float32(s + 416);
    c3_3 += tw_load_float32(s + 432);
    c4_0 += tw_load_float32(s + 512);
    c4_1 += tw_load_float32(s + 528);
    c4_2 += tw_load_float32(s + 544);
    c4_3 += tw_load_float32(s + 560);
    c5_0 += tw_load_float32(s + 640);
    c5_1 += tw_load_float32(s + 656);
    c5_2 += tw_load_float32(s + 672);
    c5_3 += tw_load_float32(s + 688);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 32, c0_2);
  tw_store_float32(s + 48, c0_3);
  tw_store_float32(s + 128, c1_0);
  tw_store_float32(s + 144, c1_1);
  tw_store_float32(s + 160, c1_2);
  tw_store_float32(s + 176, c1_3);
  tw_store_float32(s + 256, c2_0);
  tw_store_float32(s + 272, c2_1);
  tw_store_float32(s + 288, c2_2);
  tw_store_float32(s + 304, c2_3);
  tw_store_float32(s + 384, c3_0);
  tw_store_float32(s + 400, c3_1);
  tw_store_float32(s + 416, c3_2);
  tw_store_float32(s + 432, c3_3);
  tw_store_float32(s + 512, c4_0);
  tw_store_float32(s + 528, c4_1);
  tw_store_float32(s + 544, c4_2);
  tw_store_float32(s + 560, c4_3);
  tw_store_float32(s + 640, c5_0);
  tw_store_float32(s + 656, c5_1);
  tw_store_float32(s + 672, c5_2);
  tw_store_float32(s + 688, c5_3);
}
static __attribute__((noinline)) void tw_7ec33d48b6eb3cf2_6x26(
    const tw_pair *restrict a, const tw_pair *restrict b, float *restrict s,
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
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 160 ? k0_most : 160; k0 < k0_end; k0++) {
    {
    const tw_pair *ak = a + 6 * start + 6 * k0;
    const tw_pair *bk = b + 64 * start + 64 * k0;
    const vf b0 = tw_load_bfloat16x2(bk + 0);
    const vf b1 = tw_load_bfloat16x2(bk + 16);
    const vf a0 = tw_splat_bfloat16x2(ak + 0);
    c0_0 = tw_dot_pairs(c0_0, a0, b0);
    c0_1 = tw_dot_pairs(c0_1, a0, b1);
    const vf a1 = tw_splat_bfloat16x2(ak + 1);
    c1_0 = tw_dot_pairs(c1_0, a1, b0);
    c1_1 = tw_dot_pairs(c1_1, a1, b1);
    const vf a2 = tw_splat_bfloat16x2(ak + 2);
    c2_0 = tw_dot_pairs(c2_0, a2, b0);
    c2_1 = tw_dot_pairs(c2_1, a2, b1);
    const vf a3 = tw_splat_bfloat16x2(ak + 3);
    c3_0 = tw_dot_pairs(c3_0, a3, b0);
    c3_1 = tw_dot_pairs(c3_1, a3, b1);
    const vf a4 = tw_splat_bfloat16x2(ak + 4);
    c4_0 = tw_dot_pairs(c4_0, a4, b0);
    c4_1 = tw_dot_pairs(c4_1, a4, b1);
    const vf a5 = tw_splat_bfloat16x2(ak + 5);
    c5_0 = tw_dot_pairs(c5_0, a5, b0);
    c5_1 = tw_dot_pairs(c5_1, a5, b1);
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_first_float32(s + 16, 10);
    c1_0 += tw_load_float32(s + 128);
    c1_1 += tw_load_first_float32(s + 144, 10);
    c2_0 += tw_load_float32(s + 256);
    c2_1 += tw_load_first_float32(s + 272, 10);
    c3_0 += tw_load_float32(s + 384);
    c3_1 += tw_load_first_float32(s + 400, 10);
    c4_0 += tw_load_float32(s + 512);
    c4_1 += tw_load_first_float32(s + 528, 10);
    c5_0 += tw_load_float32(s + 640);
    c5_1 += tw_load_first_float32(s + 656, 10);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_first_float32(s + 16, c0_1, 10);
  tw_store_float32(s + 128, c1_0);
  tw_store_first_float32(s + 144, c1_1, 10);
  tw_store_float32(s + 256, c2_0);
  tw_store_first_float32(s + 272, c2_1, 10);
  tw_store_float32(s + 384, c3_0);
  tw_store_first_float32(s + 400, c3_1, 10);
  tw_store_float32(s + 512, c4_0);
  tw_store_first_float32(s + 528, c4_1, 10);
  tw_store_float32(s + 640, c5_0);
  tw_store_first_float32(s + 656, c5_1, 10);
}
static __attribute__((noinline)) void tw_7ec33d48b6eb3cf2_1x64(
    const tw_pair *restrict a, const tw_pair *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  vf c0_2 = {0};
  vf c0_3 = {0};
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 160 ? k0_most : 160; k0 < k0_end; k0++) {
    {
    const tw_pair *ak = a + 6 * start + 6 * k0;
    const tw_pair *bk = b + 64 * start + 64 * k0;
    const vf b0 = tw_load_bfloat16x2(bk + 0);
    const vf b1 = tw_load_bfloat16x2(bk + 16);
    const vf b2 = tw_load_bfloat16x2(bk + 32);
    const vf b3 = tw_load_bfloat16x2(bk + 48);
    const vf a0 = tw_splat_bfloat16x2(ak + 0);
    c0_0 = tw_dot_pairs(c0_0, a0, b0);
    c0_1 = tw_dot_pairs(c0_1, a0, b1);
    c0_2 = tw_dot_pairs(c0_2, a0, b2);
    c0_3 = tw_dot_pairs(c0_3, a0, b3);
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_float32(s + 16);
    c0_2 += tw_load_float32(s + 32);
    c0_3 += tw_load_float32(s + 48);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_float32(s + 16, c0_1);
  tw_store_float32(s + 32, c0_2);
  tw_store_float32(s + 48, c0_3);
}
static __attribute__((noinline)) void tw_7ec33d48b6eb3cf2_1x26(
    const tw_pair *restrict a, const tw_pair *restrict b, float *restrict s,
    long depth, int accumulate) {
  vf c0_0 = {0};
  vf c0_1 = {0};
  const long start = depth < 0 ? depth : 0 + (depth - 0) % 1;
  for (long k0 = 0, k0_most = depth - start, k0_end = k0_most < 160 ? k0_most : 160; k0 < k0_end; k0++) {
    {
    const tw_pair *ak = a + 6 * start + 6 * k0;
    const tw_pair *bk = b + 64 * start + 64 * k0;
    const vf b0 = tw_load_bfloat16x2(bk + 0);
    const vf b1 = tw_load_bfloat16x2(bk + 16);
    const vf a0 = tw_splat_bfloat16x2(ak + 0);
    c0_0 = tw_dot_pairs(c0_0, a0, b0);
    c0_1 = tw_dot_pairs(c0_1, a0, b1);
    }
  }
  if (accumulate) {
    c0_0 += tw_load_float32(s + 0);
    c0_1 += tw_load_first_float32(s + 16, 10);
  }
  tw_store_float32(s + 0, c0_0);
  tw_store_first_float32(s + 16, c0_1, 10);
}
static inline void tw_7ec33d48b6eb3cf2_tile(
    const tw_pair *a, const tw_pair *b, float *s,
    long rows, long columns, long depth, int accumulate, const unsigned short *next) {
  if (rows < 6 && columns < 64) tw_7ec33d48b6eb3cf2_1x26(a, b, s, depth, accumulate);
  else if (columns < 64) tw_7ec33d48b6eb3cf2_6x26(a, b, s, depth, accumulate);
  else if (rows < 6) tw_7ec33d48b6eb3cf2_1x64(a, b, s, depth, accumulate);
  else tw_7ec33d48b6eb3cf2_6x64(a, b, s, depth, accumulate, next);
}
static __attribute__((noinline)) void tw_7ec33d48b6eb3cf2_finish(const float *s, unsigned short *c, const unsigned short *e_bias, const unsigned short *e_scale, long rows, long columns) {
  for (long i0 = 0, i0_most = rows, i0_end = i0_most < 6 ? i0_most : 6; i0 < i0_end; i0++) {
    for (long i1 = 0, i1_most = (columns + 15) / 16, i1_end = i1_most < 4 ? i1_most : 4; i1 < i1_end; i1++) {
      const long left = columns - (16 * i1);
      const vf x = tw_load_most_float32(s + 128 * i0 + 16 * i1, left);
      tw_store_most_bfloat16(c + 90 * i0 + 16 * i1, tw_relu(x + tw_load_most_bfloat16(e_bias + 16 * i1, left)) * tw_splat_bfloat16(e_scale + 0), left);
    }
  }
}
static void tw_7ec33d48b6eb3cf2_work(void *context, int worker) {
  const tw_call *call = context;
  const unsigned short *l = call->buffers[0];
  const tw_pair *r = call->buffers[1];
  const unsigned short *e_bias = call->buffers[2];
  const unsigned short *e_scale = call->buffers[3];
  unsigned short *c = call->buffers[4];
  float *own = (float *)call->workspace + (28672 * worker);
  tw_pair *pl = (void *)own, *pr = pl + 2896;
  float *sums = own + 23392;
const long row0 = (36 * worker), column0 = 0;
const long chunk_rows = tw_least(61 - row0, 36);
const long chunk_columns = tw_least(90 - column0, 128);
if (0 < chunk_columns) {
  for (long b0 = 0; b0 < 2; b0++) {
    const long j = 0, k = (160 * b0);
    const long columns = tw_least(chunk_columns - j, 128);
    const long depth = tw_least(300 - k, 160);
    tw_7ec33d48b6eb3cf2_right(r + k + 300 * column0 + 300 * j, pr, depth, columns);
    const unsigned short *next = (const unsigned short *)r + (300 - k - depth > 0 ? 2 * k + 600 * column0 + 600 * j + 320 : 600 * column0 + 600 * j + 76800);
    for (long r0 = 0, r0_most = (chunk_rows + 17) / 18, r0_end = r0_most < 2 ? r0_most : 2; r0 < r0_end; r0++) {
      const long i = (18 * r0);
      const long rows = tw_least(chunk_rows - i, 18);
      tw_7ec33d48b6eb3cf2_left(l + row0 + i + 122 * k, pl, rows, depth);
      for (long t0 = 0, t0_most = (rows + 5) / 6, t0_end = t0_most < 3 ? t0_most : 3; t0 < t0_end; t0++) {
        for (long t1 = 0, t1_most = (columns + 63) / 64, t1_end = t1_most < 2 ? t1_most : 2; t1 < t1_end; t1++) {
          tw_7ec33d48b6eb3cf2_tile(pl + 960 * t0, pr + 10240 * t1, sums + 128 * i + 768 * t0 + j + 64 * t1, rows - (6 * t0), columns - (64 * t1), depth, k > 0, next + 38400 * t1 + (i + 6 * t0) / 6 * 64 / 6 * 600);
          if (k + depth == 300) tw_7ec33d48b6eb3cf2_finish(sums + 128 * i + 768 * t0 + j + 64 * t1, c + 90 * row0 + 90 * i + 540 * t0 + column0 + j + 64 * t1, e_bias + column0 + j + 64 * t1, e_scale + 0, rows - (6 * t0), columns - (64 * t1));
        }
      }
    }
  }
}
}
void tw_7ec33d48b6eb3cf2(
    void *const *buffers, void *workspace, const tw_runtime *runtime) {
  tw_call call = {buffers, workspace};
  runtime->parallel(runtime->pool, 2, tw_7ec33d48b6eb3cf2_work, &call);
}
