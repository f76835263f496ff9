// One query: heads that share keys as rows of one product, keys in parts that a second kernel merges.
#include "parameters.h"
#include "flash_fwd_combine_launch_template.h"
#include "heuristics.h"

template <bool Split> void run(Flash_fwd_params &p, cudaStream_t stream) {
  run_flash_fwd<90, kDepth, kDepth, 1, Kind, Kind, false, false, false, false, false, false, false,
                true, Split, false>(p, stream);
}

// Parts of the keys: get_num_splits of flash_api.cpp.
extern "C" int parts(const long *sizes) {
  constexpr auto tile = tile_size_fwd_sm90(kDepth, kDepth, false, false);
  const int rows = sizes[3] * (sizes[1] / sizes[2]), keys = sizes[4];
  const int across = (rows + std::get<0>(tile) - 1) / std::get<0>(tile);
  const int along = (keys + std::get<1>(tile) - 1) / std::get<1>(tile);
  const int blocks = sizes[0] * sizes[2] * across, bytes = keys * 2 * kDepth * sizeof(Kind);
  return num_splits_heuristic(blocks, sizes[6], along, across, bytes, false, 128);
}

// arrays: further the sums of parts [parts,b,h,i,d] and their logarithms [parts,b,h,i], in float32
extern "C" int decode(void *const *arrays, const long *sizes, float scale, cudaStream_t stream) {
  Flash_fwd_params p = parameters(arrays, sizes, scale);
  const long rows = p.seqlen_q, heads = p.h * rows, all = p.b * heads;
  p.pack_gqa = true;
  p.num_splits = parts(sizes);
  p.oaccum_ptr = arrays[6];
  p.softmax_lseaccum_ptr = arrays[7];
  p.oaccum_row_stride = kDepth;
  p.oaccum_head_stride = rows * kDepth;
  p.oaccum_batch_stride = heads * kDepth;
  p.oaccum_split_stride = all * kDepth;
  p.lseaccum_head_stride = rows;
  p.lseaccum_batch_stride = heads;
  p.lseaccum_split_stride = all;
  cudaMemsetAsync(arrays[5], 0, sizeof(int), stream);
  if (p.num_splits == 1) {
    run<false>(p, stream);
  } else {
    run<true>(p, stream);
    run_mha_fwd_combine_<Kind, float, (kDepth <= 64 ? 64 : 128)>(p, stream, true);
  }
  return (int)cudaGetLastError();
}
