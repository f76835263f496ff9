// What FlashAttention-3's kernels ask for, from addresses and sizes.
#include "flash_fwd_launch_template.h"

using Kind = cutlass::bfloat16_t;
constexpr int kDepth = DEPTH;

// Called for lengths that vary in a batch alone, which nothing here asks for.
void prepare_varlen_num_blocks(Flash_fwd_params &, cudaStream_t, bool, int, int, bool) {}

// arrays: q [b,h,i,d], k and v [b,kv,j,d], y [b,h,i,d], logarithms [b,h,i], a counter;
// sizes: b, h, kv, i, j, whether it is causal, multiprocessors
inline Flash_fwd_params parameters(void *const *arrays, const long *sizes, float scale) {
  const long b = sizes[0], h = sizes[1], kv = sizes[2], i = sizes[3], j = sizes[4];
  Flash_fwd_params p = {};
  p.q_ptr = arrays[0];
  p.k_ptr = arrays[1];
  p.v_ptr = arrays[2];
  p.o_ptr = arrays[3];
  p.softmax_lse_ptr = arrays[4];
  p.tile_count_semaphore = (int *)arrays[5];
  p.q_row_stride = p.k_row_stride = p.v_row_stride = p.o_row_stride = kDepth;
  p.q_head_stride = p.o_head_stride = i * kDepth;
  p.k_head_stride = p.v_head_stride = j * kDepth;
  p.q_batch_stride = p.o_batch_stride = h * i * kDepth;
  p.k_batch_stride = p.v_batch_stride = kv * j * kDepth;
  p.v_dim_stride = 1;
  p.h = h;
  p.h_k = kv;
  p.b = p.b_k = b;
  p.seqlen_q = i;
  p.seqlen_k = j;
  p.seqlen_q_rounded = (i + 127) / 128 * 128;
  p.seqlen_k_rounded = (j + 127) / 128 * 128;
  p.d = p.dv = p.d_rounded = p.dv_rounded = kDepth;
  p.scale_softmax = scale;
  p.is_causal = sizes[5];
  p.is_bf16 = true;
  p.window_size_left = -1;
  p.window_size_right = p.is_causal ? 0 : -1;
  p.num_splits = 1;
  p.arch = 90;
  p.num_sm = sizes[6];
  return p;
}
