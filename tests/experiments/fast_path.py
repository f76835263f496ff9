"""Says in a process whose fast path of MKL is open what it answers, and what its children have."""

import ctypes
import os
import sys

from experiments.mkl import open_fast_path

open_fast_path("tests.experiments.fast_path")
answer = ctypes.CDLL(None).mkl_serv_intel_cpu_true()
print(answer, os.environ.get("LD_PRELOAD", "nothing"), *sys.argv[1:])
