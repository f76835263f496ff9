"""The templates of CUDA kernels."""

from spaces.cuda.hopper import Hopper
from spaces.cuda.mma import Mma
from spaces.cuda.simt import Simt
from spaces.cuda.thin import CudaThin
from spaces.template import Template

TEMPLATES: tuple[type[Template], ...] = (Hopper, Mma, Simt, CudaThin)
