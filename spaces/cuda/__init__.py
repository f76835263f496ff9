"""The CUDA target: hardware as data, and the templates that generate CUDA C++."""

from spaces.cuda.hopper import Hopper
from spaces.cuda.mma import Mma
from spaces.cuda.simt import Simt
from spaces.cuda.thin import CudaThin

TEMPLATES = (Hopper, Mma, Simt, CudaThin)
