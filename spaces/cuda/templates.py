"""The templates of CUDA kernels."""

from spaces.cuda.chained.template import CudaChained
from spaces.cuda.chained_deep.template import ChainedDeep
from spaces.cuda.chained_hopper.template import ChainedHopper
from spaces.cuda.hopper.template import Hopper
from spaces.cuda.hopper_pairs.template import HopperPairs
from spaces.cuda.hopper_reduced.template import HopperReduced
from spaces.cuda.kept.template import CudaKept
from spaces.cuda.loops.template import CudaLoops
from spaces.cuda.maps.template import CudaMap
from spaces.cuda.mma.template import Mma
from spaces.cuda.packed.template import CudaPacked
from spaces.cuda.rows.template import CudaRows
from spaces.cuda.simt.template import Simt
from spaces.cuda.staged.template import CudaStaged, StagedLoops
from spaces.cuda.thin.template import CudaThin
from spaces.cuda.windows.template import CudaWindows
from spaces.template import Template

TEMPLATES: tuple[type[Template], ...] = (
    Hopper, HopperPairs, Mma, Simt, CudaThin, ChainedHopper, CudaChained, ChainedDeep,
    HopperReduced, CudaRows, CudaKept, CudaWindows, CudaMap, CudaPacked, CudaStaged,
    StagedLoops, CudaLoops,
)  # fmt: skip
