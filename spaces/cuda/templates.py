"""The templates of CUDA kernels."""

from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.chained_deep.template import ChainedDeep
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.hopper_pairs.template import HopperPairs
from tilewright.spaces.cuda.hopper_reduced.template import HopperReduced
from tilewright.spaces.cuda.kept.template import CudaKept
from tilewright.spaces.cuda.loops.template import CudaLoops
from tilewright.spaces.cuda.maps.template import CudaMap
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.packed.template import CudaPacked
from tilewright.spaces.cuda.rows.template import CudaRows
from tilewright.spaces.cuda.simt.template import Simt
from tilewright.spaces.cuda.staged.template import CudaStaged, StagedLoops
from tilewright.spaces.cuda.thin.template import CudaThin
from tilewright.spaces.cuda.windows.template import CudaWindows
from tilewright.spaces.template import Template

TEMPLATES: tuple[type[Template], ...] = (
    Hopper, HopperPairs, Mma, Simt, CudaThin, ChainedHopper, CudaChained, ChainedDeep,
    HopperReduced, CudaRows, CudaKept, CudaWindows, CudaMap, CudaPacked, CudaStaged,
    StagedLoops, CudaLoops,
)  # fmt: skip
