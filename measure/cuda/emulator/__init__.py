"""Runs generated CUDA kernels on the CPU: the same source, one fibre per CUDA thread.

:class:`Emulator` compiles a kernel's text with the host compiler in front of ``runtime.h`` and
``spaces/cuda/intrinsics/host.h`` and runs it in a process of its own, which ends at the first
fault: a deadlock, an access out of bounds, a read of uninitialised shared memory, a misused or
half-used barrier, a missing fence. Asynchronous copies and matrix instructions take effect at once
(eager), as late as the PTX ISA allows (lazy), or at random together with the order of the threads.

What it does not see: races within a block that its orders of threads do not reach, and races in
global memory of which no block reads what another has stored.
"""

from tilewright.measure.cuda.emulator.emulator import (
    INTERLEAVINGS,
    Emulated,
    Emulator,
    Interleaving,
)
from tilewright.measure.cuda.emulator.verify import verify

__all__ = ["INTERLEAVINGS", "Emulated", "Emulator", "Interleaving", "verify"]
