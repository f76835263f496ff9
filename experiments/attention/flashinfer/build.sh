#!/bin/sh
# build.sh FLASHINFER CUTLASS CCCL OUT: FlashInfer's kernels for bfloat16 and heads of 128 on Hopper,
# from the sources of github.com/flashinfer-ai/flashinfer, and the CUTLASS and CCCL that it names.
set -eu
nvcc -O3 -std=c++17 --use_fast_math -DNDEBUG -DCUTLASS_DEBUG_TRACE_LEVEL=0 \
  -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED -DCUTLASS_ENABLE_GDC_FOR_SM90 -DFLASHINFER_ENABLE_F16 \
  -DFLASHINFER_ENABLE_BF16 -DDEPTH=128 -gencode arch=compute_90a,code=sm_90a \
  --expt-relaxed-constexpr --expt-extended-lambda -I"$1/include" -I"$2/include" \
  -I"$2/tools/util/include" -I"$3/libcudacxx/include" -I"$3/cub" -I"$3/thrust" \
  -Xcompiler -fPIC -shared "$(dirname "$0")/prefill.cu" -o "$4/flashinfer_128.so"
