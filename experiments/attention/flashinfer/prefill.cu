// FlashInfer's kernels for Hopper, of one sequence.
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>
#include <flashinfer/attention/hopper/variants.cuh>

using namespace flashinfer;

using Kind = cutlass::bfloat16_t;
using Params = SinglePrefillParams<Kind, Kind, Kind>;
constexpr int kDepth = DEPTH;

template <MaskMode Mask, bool HasWindow, class Variant>
int start(Params &p, cudaStream_t stream) {
  return (int)SinglePrefillWithKVCacheDispatched<kDepth, kDepth, Mask, HasWindow, Variant>(p, stream);
}

// arrays: q [h,i,d], k and v [kv,j,d], y [h,i,d]; sizes: h, kv, i, j, whether it is causal, and how
// many positions a query sees, 0 if all; softcap: 0 if there is none
extern "C" int prefill(void *const *arrays, const long *sizes, float scale, float softcap, cudaStream_t stream) {
  const long h = sizes[0], kv = sizes[1], i = sizes[2], j = sizes[3], window = sizes[5];
  Params p = {};
  p.q_ptr = (Kind *)arrays[0];
  p.k_ptr = (Kind *)arrays[1];
  p.v_ptr = (Kind *)arrays[2];
  p.o_ptr = (Kind *)arrays[3];
  p.additional_params.sm_scale = scale;
  p.additional_params.logits_soft_cap = softcap;
  p.q_stride_n = p.k_stride_n = p.v_stride_n = p.o_stride_n = kDepth;
  p.q_stride_h = p.o_stride_h = i * kDepth;
  p.k_stride_h = p.v_stride_h = j * kDepth;
  p.qo_len = i;
  p.kv_len = j;
  p.num_qo_heads = h;
  p.num_kv_heads = kv;
  p.group_size = h / kv;
  p.window_left = window ? window - 1 : -1;
  p.causal = sizes[4];
  if (!p.causal) return start<MaskMode::kNone, false, StandardAttention>(p, stream);
  if (window) return start<MaskMode::kCausal, true, LogitsSoftCap>(p, stream);
  if (softcap > 0) return start<MaskMode::kCausal, false, LogitsSoftCap>(p, stream);
  return start<MaskMode::kCausal, false, StandardAttention>(p, stream);
}
