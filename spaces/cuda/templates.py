"""The templates of CUDA kernels, by the names under which schedules have them."""

from tilewright.spaces.template_list import TemplateList

TEMPLATES = TemplateList(
    "tilewright.spaces.cuda",
    {
        "hopper": "hopper:Hopper",
        "hopper_pairs": "hopper_pairs:HopperPairs",
        "mma": "mma:Mma",
        "simt": "simt:Simt",
        "thin": "thin:CudaThin",
        "low_bit": "low_bit:CudaLowBit",
        "low_bit_ring": "low_bit_ring:LowBitRing",
        "low_bit_raised": "low_bit_ring:LowBitRaised",
        "low_bit_dots": "low_bit_dots:CudaLowBitDots",
        "chained_hopper": "chained_hopper:ChainedHopper",
        "chained": "chained:CudaChained",
        "chained_deep": "chained_deep:ChainedDeep",
        "chunked": "chunked:CudaChunked",
        "pairwise": "pairwise:CudaPairwise",
        "hopper_reduced": "hopper_reduced:HopperReduced",
        "ragged": "ragged:CudaRagged",
        "ragged_turned": "ragged:CudaTurnedRagged",
        "scan": "scan:CudaScan",
        "stepped": "stepped:CudaStepped",
        "rows": "rows:CudaRows",
        "kept": "kept:CudaKept",
        "windows": "windows:CudaWindows",
        "map": "maps:CudaMap",
        "packed": "packed:CudaPacked",
        "phased": "staged:CudaPhased",
        "staged": "staged:CudaStaged",
        "divided": "staged:CudaDivided",
        "staged_loops": "staged:StagedLoops",
        "loops": "loops:CudaLoops",
    },
)
