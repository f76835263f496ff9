#!/bin/sh
# build.sh FLASH CUTLASS OUT [NAME_DEPTH ...]: libraries of FlashAttention-3's kernels for bfloat16 on
# Hopper, from the sources of github.com/Dao-AILab/flash-attention and of the CUTLASS that it names.
# Flags are those of hopper/setup.py there; forms that nothing here asks for are left out.
set -eu
here=$(dirname "$0") flash=$1 cutlass=$2 out=$3
shift 3
off=""
for form in BACKWARD PAGEDKV APPENDKV LOCAL SOFTCAP VARLEN FP8; do
  off="$off -DFLASHATTENTION_DISABLE_$form"
done
for each in ${*:-prefill_128 prefill_64 decode_128}; do
  nvcc -O3 -std=c++17 --use_fast_math -DNDEBUG -DCUTLASS_DEBUG_TRACE_LEVEL=0 \
    -DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED -DCUTLASS_ENABLE_GDC_FOR_SM90 $off \
    -DDEPTH="${each#*_}" -gencode arch=compute_90a,code=sm_90a --expt-relaxed-constexpr \
    --expt-extended-lambda -I"$flash/hopper" -I"$cutlass/include" -Xcompiler -fPIC -shared \
    "$here/${each%_*}.cu" -o "$out/$each.so"
done
